"""``oasis compare``: the policies side by side, on an instance or on elastic jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import oasis
from baselines.registry import CONTROLLERS
from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.interrupt import CtrlC
from experiments.cli.progress import counter, solver_progress
from experiments.cli.results import Delivery, deliver_comparison, read_workload
from experiments.evaluation import comparison as compared
from experiments.evaluation.comparison import SLOT_SECONDS, Comparison, compare
from experiments.evaluation.policies import (
    OASIS,
    POLICIES,
    RECOURSE,
    RIVALS,
    SEED,
    entry_of,
    having,
)
from experiments.evaluation.provenance import file_reference, instance_reference
from oasis.model.errors import InputError, located_at
from oasis.model.summary import how_many
from oasis.simulator import Policy, Workload
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from offline import OfflineResult

SOLVING = tuple(field.name for field in fields(flags.Solving))
WORTH = (OASIS, RECOURSE)  # they weigh jobs by what they are worth


def _names(on: oasis.Instance | Workload) -> list[str]:
    """Return the policies to run where the user names none: all that can run on `on`."""
    if not isinstance(on, Workload):
        return list(RIVALS)
    if all(job.has_utility for job in on.jobs):
        return [*RIVALS, *CONTROLLERS]
    console.note(f"left out: {' and '.join(WORTH)}, which need a utility for each job")
    return [name for name in (*RIVALS, *CONTROLLERS) if name not in WORTH]


def command(
    *,
    file: flags.InstanceFile,
    policies: Annotated[
        Any,
        f"Separated by commas, of: {', '.join(POLICIES)}. "
        f"[default: {', '.join(RIVALS)}; on elastic jobs the controllers too]",
        flags.policies_of(tuple(POLICIES)),
    ] = None,
    policy_seed: flags.PolicySeed = None,
    seeds: Annotated[
        int,
        "Run policies that draw at random with this number of seeds, from --policy-seed "
        "on, and print means ± half of the 95 % interval. On elastic jobs only 1.",
        flags.COUNT | {"max": 10_000},
    ] = 1,
    assignments: flags.Set = None,
    ratio: Annotated[
        bool,
        "Also solve the instance offline, once, and say which share of the optimum each "
        "policy earned: a number where the optimum is proven, otherwise an interval.",
    ] = False,
    how: flags.Solving,
    slot_seconds: Annotated[
        float | None,
        "Elastic jobs: length of the slots in which oasis and recourse plan, and of the "
        f"bound. [default: {SLOT_SECONDS:g}]",
        {"metavar": "SECONDS", "min": 1.0},
    ] = None,
    delivery: Delivery,
) -> int:
    """Run several policies on one instance, or on elastic jobs, and put their figures side by side.

    Mean and p95: slots from arrival to completion, of the jobs that finished. A policy that
    finishes few jobs may look quick, so both are marked (*) where jobs did not finish, and a line
    below says how many. Done: number of jobs that finished. Waste: share of the work that was done
    for jobs that never finished. Decision: median time of one decision.

    FILE may also be a JSON file of elastic jobs and their machines (docs: simulator). Times are
    then in seconds, and utilities stand beside a bound that no policy can exceed (docs:
    controllers).

    FIFO, RRH, SRTF and LAS draw at random how many workers each job gets. The table shows one draw;
    --policy-seed shows another, and --seeds 10 the means of ten.

    With --ratio, the instance is solved once for all policies, with the limits of oasis ratio;
    without a proof the exit code is 3. On elastic jobs nothing is solved: the optimum is between
    the best of the policies and the bound.

    Ctrl-C keeps the policies that are done, and says which are missing; the exit code is 3.

    Example: oasis compare instance.json --policies oasis,fifo,drf --ratio
    """
    limits = how.given()
    on = read_workload(file)
    if isinstance(on, Workload):
        flags.refuse_given(
            delivery.context, SOLVING, "is for instances: nothing is solved on elastic jobs"
        )
        if seeds > 1:
            raise InputError("--seeds", "expected 1 on elastic jobs; --policy-seed chooses it")
        # Before the policies run, not after.
        if ratio and not all(job.has_utility for job in on.jobs):
            raise InputError("--ratio", f"expected a utility for each job of {file}")
    elif slot_seconds is not None:
        raise InputError("--slot-seconds", "is for elastic jobs, an instance has slots of its own")
    elif not ratio:
        flags.refuse_given(delivery.context, SOLVING, "expected --ratio beside it")
    names = policies or _names(on)
    chosen = flags.choose_options(names, assignments, shared={SEED: policy_seed})
    if isinstance(on, Workload):
        from experiments.evaluation.elastic_jobs import compare_elastic  # noqa: PLC0415 (an extra)

        seconds, steps = slot_seconds or SLOT_SECONDS, len(chosen) * len(on.jobs)
        with located_at(source=file), counter("comparing", steps) as advance:
            comparison = compare_elastic(on, chosen, slot_seconds=seconds, on_settled=advance)
        comparison = compared.with_best_known(comparison) if ratio else comparison
        document = comparison.to_dict() | {"trace": file_reference(file)}
        machines, most = (comparison.about[name] for name in ("machines", "bound"))
        bound = "" if most is None else f"; utility at most {most:.6g}"
        jobs, machines = how_many(len(on.jobs), "elastic job"), how_many(machines, "machine")
        title = f"{jobs} on {machines}; seconds{bound}"
        return deliver_comparison(comparison, document, title, delivery)
    drawn = {name: _seeds(name, chosen[name], seeds) for name in having(SEED, names) if seeds > 1}
    if seeds > 1 and not drawn:
        seeded = ", ".join(having(SEED))
        raise InputError("--seeds", f"expected one of {seeded} among the policies")
    comparison, best = run_policies(on, chosen, drawn)
    if ratio and not comparison.missing:
        offline = solve_from(on, best, how.method, how.solver_seed, limits)
        comparison = compared.with_optimum(comparison, offline)
    document = comparison.to_dict() | {"instance": instance_reference(on, str(file))}
    over = f"; mean over {seeds} seeds of {', '.join(drawn)}" if drawn else ""
    return deliver_comparison(
        comparison, document, f"{how_many(len(on.jobs), 'job')}{over}", delivery
    )


def run_policies(
    instance: oasis.Instance,
    chosen: Mapping[str, Mapping[str, Any]],
    drawn: Mapping[str, list[int]],
) -> tuple[Comparison, Run | None]:
    """Compare policies with options `chosen` over their seeds `drawn`; also return the best run."""
    best: Run | None = None

    def keep(run: Run) -> None:
        nonlocal best
        best = run if best is None or run.total_utility > best.total_utility else best

    makers = {name: partial(_make, name, instance, options) for name, options in chosen.items()}
    runs = sum(len(drawn.get(name, [0])) for name in chosen)
    with counter("comparing", runs * len(instance.jobs)) as advance:
        comparison = compare(instance, makers, drawn, on_decision=advance, on_run=keep)
    rows = {
        name: {**row, **entry_of(name).recorded(chosen[name], row["parameters"])}
        for name, row in comparison.policies.items()
    }
    return replace(comparison, policies=rows), best


def solve_from(
    instance: oasis.Instance, best: Run | None, method: str, seed: int, limits: Mapping[str, Any]
) -> OfflineResult:
    """Solve `instance` offline from run `best`; after Ctrl-C return what is proven by then."""
    from offline import WarmStart, solve  # noqa: PLC0415 (needs an extra)

    start = None if best is None else WarmStart(best.schedules, value=best.total_utility)
    with CtrlC() as ctrl_c, solver_progress(ctrl_c.check) as on_progress, ctrl_c.raising():
        return solve(
            instance, method, warm_start=start, on_progress=on_progress, seed=seed, **limits
        )


def _seeds(name: str, chosen: Mapping[str, Any], count: int) -> list[int]:
    """Return `count` consecutive seeds for policy `name`, from the seed in its options on."""
    # From the chosen seed on, so that the first of several runs is the one without --seeds.
    first = int(entry_of(name).resolve(chosen)[SEED])
    return list(range(first, first + count))


def _make(
    name: str, instance: oasis.Instance, chosen: Mapping[str, Any], seed: int | None = None
) -> Policy:
    """Build policy `name` with the options `chosen`; `seed` replaces theirs unless it is None."""
    return entry_of(name).make(instance, chosen if seed is None else {**chosen, SEED: seed})
