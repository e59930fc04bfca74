"""The decomposition and the compact model on one instance: at once, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oasis.model.instance import Instance
from oasis.solvers import SolveProgress, Status
from offline.benders.params import BendersParams
from offline.benders.solve import BENDERS
from offline.method import Method, P
from offline.model.milp import MILP, CompactParams
from offline.params import Amount, Params, Share
from offline.processes import Helper, ProcessTask, has_second_core
from offline.result import OfflineResult
from offline.state import Phase, SolveState, Start, WarmStart


@dataclass(frozen=True, slots=True)
class BothParams(Params):
    """How the method "both" shares the time between its two parts.

    Parameters
    ----------
    benders : BendersParams
        What steers the decomposition.
    milp : CompactParams
        What steers the compact model.
    head_start : float
        Seconds that the decomposition has alone before the compact model joins it in a process
        of its own, where both run at once. Most instances of a few servers are proven by then.
    first_share : float
        Share of the limit that the decomposition gets where the two run one after the other; the
        compact model has the rest.

    Examples
    --------
    >>> from offline import BothParams
    >>> BothParams.from_dict({"milp": {"presolve": False}}).milp.presolve
    False
    """

    benders: BendersParams = field(default_factory=BendersParams)
    milp: CompactParams = field(default_factory=CompactParams)
    head_start: Amount = 3.0
    first_share: Share = 0.8


def solve_both(
    instance: Instance,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    params: BothParams | Mapping[str, Any] | None = None,
    warm_start: Start = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> OfflineResult:
    """Solve the offline problem by decomposition and compact model together; see `offline.solve`.

    ``result.objective_by`` and ``result.bound_by`` say which of the two found the schedules and
    proved the bound; ``result.parameters`` has ``processes`` where a second one was started, and
    ``compact_model_failed`` with the reason if that failed and the decomposition went on alone.

    Examples
    --------
    >>> import oasis
    >>> from offline import solve_both
    >>> instance = oasis.generate("testbed", jobs=4, worker_servers=2, ps_servers=2, seed=1)
    >>> solve_both(instance).status
    <Status.OPTIMAL: 'optimal'>
    """
    return BOTH.solve(
        instance,
        time_limit,
        work_limit=work_limit,
        gap=gap,
        no_improvement=no_improvement,
        seed=seed,
        params=params,
        warm_start=warm_start,
        on_progress=on_progress,
    )


def _run(
    instance: Instance, start: WarmStart, state: SolveState, params: BothParams, seed: int
) -> Status:
    if state.budget.is_repeatable or not has_second_core():
        return _in_turn(instance, start, state, params, seed)
    task = ProcessTask("compact model", Phase.COMPACT, params.milp, seed)
    benders = replace(params.benders, second_process=False)
    with Helper(instance, state, task, params.head_start):
        return BENDERS.run(instance, start, state, benders, seed)


def _in_turn(
    instance: Instance, start: WarmStart, state: SolveState, params: BothParams, seed: int
) -> Status:
    """The decomposition with its share of the limit, then the compact model with the rest."""
    steps: tuple[tuple[Method[Any], Any, float], ...] = (
        (BENDERS, params.benders, params.first_share),
        (MILP, params.milp, 1.0),
    )
    for method, steering, share in steps:
        if state.is_proven or state.budget.passed:
            break
        _part(method, steering, share, instance, start, state, seed)
    return Status.OPTIMAL if state.is_proven else state.budget.status


def _part(
    method: Method[P],
    params: P,
    share: float,
    instance: Instance,
    start: WarmStart,
    state: SolveState,
    seed: int,
) -> None:
    """Run a method with a share of what is left; `state` learns at once what it learns."""

    def pass_on(_: SolveProgress | None = None) -> None:
        if part.phase != state.phase:
            state.enter(part.phase)
        state.take_over(part)

    part = SolveState(state.budget.share(share))
    part.take_over(state)
    part.on_progress = pass_on
    try:
        method.run(instance, start, part, params, seed)
    finally:
        pass_on()


BOTH = Method("both", BothParams, _run, needs_prices=True)
