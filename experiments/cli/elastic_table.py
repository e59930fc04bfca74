"""``oasis compare`` on a file of elastic jobs: what is run, and the table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from baselines.registry import CONTROLLERS
from experiments.cli import console
from experiments.cli.delivery import Delivery
from experiments.cli.policy_options import choose_options, known_policies
from experiments.cli.reading import errors_name
from experiments.evaluation.comparison import SLOT_SECONDS, Comparison
from experiments.evaluation.policies import OASIS, RECOURSE, RIVALS, SEED
from experiments.evaluation.provenance import file_reference
from experiments.evaluation.tables import ELASTIC, elastic_rows, unfinished_notes
from oasis.simulator import ElasticWorkload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORTH = (OASIS, RECOURSE)  # they weigh jobs by what they are worth


def compare_on_elastic(
    made: ElasticWorkload,
    file: Path,
    policies: str | None,
    policy_seed: int | None,
    assignments: list[str] | None,
    slot_seconds: float | None,
) -> Comparison:
    """Run the policies that were asked for on the jobs of `made`, with a bar."""
    from experiments.evaluation.elastic_comparison import (  # noqa: PLC0415 (needs an extra)
        compare_elastic,
    )

    names = _names(made, policies)
    chosen = choose_options(names, assignments, shared={SEED: policy_seed})
    with (
        console.counter("comparing", len(names) * len(made.workload.jobs)) as advance,
        errors_name(file),
    ):
        return compare_elastic(
            made,
            chosen,
            slot_seconds=SLOT_SECONDS if slot_seconds is None else slot_seconds,
            on_settled=advance,
            keep_interrupted=True,
        )


def _names(made: ElasticWorkload, policies: str | None) -> list[str]:
    """Those asked for; else all, without those that need utilities where a job has none."""
    if policies is not None:
        return known_policies(policies, "--policies")
    if all(job.has_utility for job in made.workload.jobs):
        return [*RIVALS, *CONTROLLERS]
    console.note(f"left out: {' and '.join(WORTH)}, which need a utility for each job")
    return [name for name in (*RIVALS, *CONTROLLERS) if name not in WORTH]


def deliver_elastic(comparison: Comparison, file: Path, delivery: Delivery) -> None:
    """Print the table or the document, and write what was asked for."""
    about = comparison.about
    bound = "" if about["bound"] is None else f"; utility at most {about['bound']:.6g}"
    title = f"{about['jobs']} elastic jobs on {about['machines']} machines; seconds{bound}"

    def show() -> None:
        console.print_rows(ELASTIC, elastic_rows(comparison), title=title)
        for note in unfinished_notes(comparison):
            console.print_text(note)

    def draw() -> Figure:
        from experiments.plotting import comparison_page  # noqa: PLC0415 (needs an extra)

        return comparison_page(comparison)

    document = comparison.to_dict() | {"trace": file_reference(file)}
    delivery(document, show, draw)
