"""``oasis compare``: the policies side by side, on an instance or on elastic jobs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.elastic_table import (
    compare_on_elastic,
    deliver_elastic,
    is_elastic_workload,
)
from experiments.cli.flags import comma_list
from experiments.cli.options import AsJson, InstanceFile, Picture, ResultFile
from experiments.cli.policy_options import PolicySeed, Set, choose_options, known_policy
from experiments.cli.reading import read_instance
from experiments.cli.results import deliver
from experiments.evaluation.comparison import compare
from experiments.evaluation.elastic_comparison import SLOT_SECONDS
from experiments.evaluation.policies import POLICIES, RIVALS, SEED, entry_of
from experiments.evaluation.provenance import instance_reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    ("policy", False),
    ("utility", True),
    ("admitted", True),
    ("done", True),
    ("waste", True),
    ("mean", True),
    ("p95", True),
    ("busiest", False),
    ("decision", True),
)


def command(
    file: InstanceFile,
    policies: Annotated[
        str | None,
        typer.Option(
            help=f"Some of {', '.join(POLICIES)}, with commas between. "
            f"[default: {','.join(RIVALS)}; on elastic jobs the controllers too]"
        ),
    ] = None,
    policy_seed: PolicySeed = None,
    assignments: Set = None,
    slot_seconds: Annotated[
        float | None,
        typer.Option(
            help="Elastic jobs: length of the slots in which oasis and recourse plan, and of the "
            f"bound. [default: {SLOT_SECONDS:g}]",
            min=1.0,
            show_default=False,
        ),
    ] = None,
    output: ResultFile = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Run several policies on one instance, or on elastic jobs, and put their figures side by side.

    Mean and p95 are times from arrival to the end of the work of the jobs that finished, in slots;
    a policy that finishes only few jobs may look quick. Done: how many finished. Waste: share of
    the work done that came to nothing, because its job never finished. Decision: median time of one
    decision.

    A JSON file of elastic jobs and their machines (docs: simulator) may take the place of the
    instance: times are seconds then, and beside the utilities is a bound that no policy can exceed
    (docs: controllers).

    FIFO, RRH, SRTF and LAS draw at random how many workers each job gets. The table shows one draw;
    --policy-seed shows another, and a sweep averages over many.

    Example: oasis compare instance.json --policies oasis,fifo,drf
    """
    if is_elastic_workload(file):
        comparison = compare_on_elastic(file, policies, policy_seed, assignments, slot_seconds)
        deliver_elastic(comparison, as_json=as_json, output=output, plot=plot)
        return
    if slot_seconds is not None:
        raise ValueError("--slot-seconds: is for elastic jobs, an instance has slots of its own")
    listed = comma_list(",".join(RIVALS) if policies is None else policies, "--policies")
    names = [known_policy(name, "--policies") for name in listed]
    chosen = choose_options(names, assignments, shared={SEED: policy_seed})
    instance = read_instance(file)
    makers = {name: partial(entry_of(name).make, instance, chosen[name]) for name in names}
    with console.counter("comparing", len(makers) * len(instance.jobs)) as advance:
        comparison = compare(instance, makers, on_decision=advance)
    document = comparison.to_dict() | {"instance": instance_reference(instance, str(file))}

    def show() -> None:
        rows = [_row(name, figures) for name, figures in comparison.policies.items()]
        console.print_rows(COLUMNS, rows, title=f"{len(instance.jobs)} jobs")

    def draw() -> Figure:
        from experiments.plotting import comparison_page  # noqa: PLC0415 (needs an extra)

        return comparison_page(comparison)

    deliver(document, show, as_json=as_json, output=output, plot=plot, draw=draw)


def _row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    shares = [
        (share, f"{group} {resource}")
        for group, resources in figures["utilisation"].items()
        for resource, share in resources.items()
        if share is not None
    ]
    share, busiest = max(shares, default=(None, ""))
    return (
        name,
        console.number(figures["total_utility"]),
        str(figures["admitted"]),
        str(figures["finished"]),
        _whole(figures["wasted_share"]),
        _short(figures["mean_completion"]),
        _short(figures["p95_completion"]),
        f"{_whole(share)} {busiest}",
        console.seconds(figures["decision_seconds"]["median"]),
    )


def _whole(share: float | None) -> str:
    """A share in whole percent: the table must fit 80 columns."""
    return "-" if share is None else f"{100 * share:.0f}%"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
