"""What a state knows goes to the compact model while HiGHS solves it, and the reverse."""

from __future__ import annotations

import pytest

import oasis
from oasis.solvers.budget import Budget
from offline import solve
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel, ScheduleExchange
from offline.state import Phase, SolveState

TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
MODEL = CompactModel(OfflineArrays.of(TINY))
OPTIMUM = solve(TINY, "bruteforce")
ONE_OF_THEM = next(iter(OPTIMUM.schedules))


def exchange() -> tuple[ScheduleExchange, SolveState]:
    state = SolveState(Budget())
    state.record_solution(0.0, {}, "nothing")
    state.phase = Phase.COMPACT
    return ScheduleExchange(TINY, MODEL, state), state


def test_better_schedules_are_given_once() -> None:
    here, state = exchange()
    assert here.better(-float("inf")) is None, "what the solve began with is known"
    state.record_solution(OPTIMUM.objective, OPTIMUM.schedules, "others")
    assert here.better(OPTIMUM.objective) is None
    values = here.better(OPTIMUM.objective / 2)
    assert values == MODEL.values_of(OPTIMUM.schedules)
    assert here.better(OPTIMUM.objective / 2) is None


def test_what_is_found_counts_once_it_is_verified() -> None:
    here, state = exchange()
    here.record(MODEL.values_of(OPTIMUM.schedules))
    assert state.incumbent == pytest.approx(OPTIMUM.objective)
    assert oasis.verify(TINY, state.schedules) == state.incumbent
    assert here.better(0.0) is None, "it came from there"


def test_what_others_found_is_given_though_worse_schedules_come_from_there() -> None:
    here, state = exchange()
    state.record_solution(OPTIMUM.objective, OPTIMUM.schedules, "others")
    worse = {ONE_OF_THEM: OPTIMUM.schedules[ONE_OF_THEM]}
    value = oasis.verify(TINY, worse)
    assert 0 < value < OPTIMUM.objective
    here.record(MODEL.values_of(worse))
    assert state.schedules is OPTIMUM.schedules, "they are better"
    assert here.better(value) == MODEL.values_of(OPTIMUM.schedules)


def test_what_does_less_than_the_work_of_a_job_ends_the_solve_with_its_error() -> None:
    here, state = exchange()
    values = dict(MODEL.values_of(OPTIMUM.schedules))
    workers = [v.name for c in MODEL.jobs for v in c.workers.values() if values.get(v.name)]
    values[workers[0]] -= 1.0
    with pytest.raises(oasis.SolverError, match="HiGHS returned an infeasible solution: "):
        here.record(values)
    assert state.incumbent == 0.0


def test_what_exceeds_a_capacity_does_not_count() -> None:
    here, state = exchange()
    full = {v.name: float(v.upBound) for c in MODEL.jobs for v in c.workers.values()}
    done = {next(iter(c.done.values())).name: 1.0 for c in MODEL.jobs}
    here.record(full | done)
    assert state.incumbent == 0.0
