"""The decomposition and the compact model together: whichever proves it first.

Neither is faster on all small instances: where identical servers make the one slow, the other is
quick, and the reverse. With a second core and a limit in seconds the compact model runs in a
process of its own (`offline.processes.helper`), and both share schedules and bounds. With one core,
or where the same result is asked for on every machine (a limit in work), the decomposition has its
share of the limit first, and the compact model goes on from what that knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from oasis.model.instance import Instance
from oasis.solvers import SolveProgress, Status
from offline.benders.solve import BENDERS
from offline.both.params import BothParams
from offline.method import Method, P
from offline.model.milp import MILP
from offline.processes.helper import Helper, Task, has_second_core
from offline.result import OfflineResult
from offline.state import Phase, SolveState
from offline.warm_start import Start, WarmStart


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
    task = Task("compact model", Phase.COMPACT, params.milp, seed)
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
