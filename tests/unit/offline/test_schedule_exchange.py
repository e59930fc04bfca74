"""What a state knows goes to the compact model while HiGHS solves it, and the reverse."""

from __future__ import annotations

import pytest

import oasis
from oasis.solvers.budget import Budget
from offline import solve_brute_force
from offline.model.arrays import OfflineArrays
from offline.model.compact import CompactModel
from offline.model.milp import ScheduleExchange
from offline.state import Phase, SolveState

TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)
MODEL = CompactModel(OfflineArrays.of(TINY))
OPTIMUM = solve_brute_force(TINY)


def exchange() -> tuple[ScheduleExchange, SolveState]:
    state = SolveState(Budget())
    state.found(0.0, {}, "nothing")
    state.phase = Phase.COMPACT
    return ScheduleExchange(TINY, MODEL, state), state


def test_better_schedules_are_given_once() -> None:
    here, state = exchange()
    assert here.better(-float("inf")) is None, "what the solve began with is known"
    state.found(OPTIMUM.objective, OPTIMUM.schedules, "others")
    assert here.better(OPTIMUM.objective) is None
    values = here.better(OPTIMUM.objective / 2)
    assert values == MODEL.values_of(OPTIMUM.schedules)
    assert here.better(OPTIMUM.objective / 2) is None


def test_what_is_found_counts_once_it_is_verified() -> None:
    here, state = exchange()
    here.found(MODEL.values_of(OPTIMUM.schedules))
    assert state.incumbent == pytest.approx(OPTIMUM.objective)
    assert oasis.verify(TINY, state.schedules) == state.incumbent
    assert here.better(0.0) is None, "it came from there"


def test_what_exceeds_a_capacity_does_not_count() -> None:
    here, state = exchange()
    full = {v.name: float(v.upBound) for c in MODEL.jobs for v in c.workers.values()}
    done = {next(iter(c.done.values())).name: 1.0 for c in MODEL.jobs}
    here.found(full | done)
    assert state.incumbent == 0.0
