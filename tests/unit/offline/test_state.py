"""The interval so far: who gets the credit, what the history keeps, what it refuses."""

from __future__ import annotations

import json
import math

import pytest

import oasis
from oasis.solvers import TRUST, SolveProgress, Status
from oasis.solvers.budget import Budget
from offline import result as results
from offline import solve
from offline.column_generation.bound import configuration_bound
from offline.result import Milestone, OfflineResult
from offline.state import SolveState, conclude, trivial_bound

EXAMPLE = oasis.generate("testbed", jobs=4, seed=3)
ONLINE = oasis.simulate(EXAMPLE, oasis.OASiS.from_instance(EXAMPLE))


class Clock(Budget):
    """A budget whose clock the test sets."""

    now = 0.0

    @property
    def elapsed(self) -> float:
        return Clock.now

    seconds = elapsed


def test_what_is_found_and_proved_is_credited_to_the_phase_of_that_moment() -> None:
    seen: list[SolveProgress] = []
    state = SolveState(Budget(), seen.append)
    state.enter("first")
    state.record_bound(ONLINE.total_utility)
    state.record_solution(0.0, {})
    state.enter("second")
    state.record_solution(ONLINE.total_utility, ONLINE.schedules)
    state.record_solution(ONLINE.total_utility, {})  # no better: not taken
    state.record_bound(1e7)
    result = state.result(EXAMPLE, Status.TIME_LIMIT, "m", {})
    assert (result.objective_by, result.bound_by) == ("second", "first")
    assert result.schedules == ONLINE.schedules
    assert result.objective == pytest.approx(ONLINE.total_utility)
    assert [p.phase for p in seen] == ["first"] * 3 + ["second"] * 2
    assert [m.objective for m in result.history] == [None, 0.0, ONLINE.total_utility]


def test_what_a_solver_says_is_shown_but_is_no_solution_and_is_forgotten_once_refused() -> None:
    state = SolveState(Clock())
    for Clock.now in (1.0, 2.0, 3.0):
        state.record_progress(SolveProgress(0.0, 5.0 + Clock.now, 1e6 - Clock.now, math.inf))
    assert (state.incumbent, state.bound, state.history[-1].objective) == (None, 1e6 - 3.0, 8.0)
    assert state.result(EXAMPLE, Status.TIME_LIMIT, "m", {}).objective == 0.0
    state.withdraw()
    assert {m.objective for m in state.history} == {None}
    state.record_solution(1.0, {})
    Clock.now = 4.0
    state.record_progress(SolveProgress(0.0, 9.0, 20.0, math.inf))
    state.withdraw()
    Clock.now = 5.0
    state.record_bound(19.0)
    objectives = [m.objective for m in state.history]
    known = objectives.index(1.0)
    assert set(objectives[:known]) == {None}
    assert set(objectives[known:]) == {1.0}
    assert (state.history[-1].upper_bound, state.incumbent) == (19.0, 1.0)
    Clock.now = 0.0


@pytest.mark.parametrize("bound_first", [True, False])
def test_a_bound_just_below_a_schedule_is_its_value_and_one_further_below_is_refused(
    bound_first: bool,
) -> None:
    def told(bound: float) -> OfflineResult:
        state = SolveState(Budget())
        state.enter("LP")
        if bound_first:
            state.record_bound(bound)
        state.record_solution(ONLINE.total_utility, ONLINE.schedules)
        state.record_bound(bound)
        return state.result(EXAMPLE, Status.TIME_LIMIT, "m", {})

    result = told(ONLINE.total_utility * (1 - 0.9 * TRUST))
    assert result.status is Status.OPTIMAL
    assert result.upper_bound == result.objective == ONLINE.total_utility
    with pytest.raises(oasis.SolverError, match=r"LP claims the bound .*; a schedule is worth"):
        told(ONLINE.total_utility * (1 - 1.1 * TRUST))


def test_history_is_as_fine_as_a_hundredth_of_the_time_and_keeps_the_last() -> None:
    state = SolveState(Clock())
    for k in range(10_000):
        Clock.now = 1e-3 * k
        state.record_bound(1e6 - k)
    seconds = [milestone.seconds for milestone in state.history]
    assert len(seconds) < 1000
    assert seconds == sorted(seconds)
    assert state.history[-1].upper_bound == 1e6 - 9999
    for moment in (0.5, 2.0, 7.77):
        known = max(m.seconds for m in state.history if m.seconds <= moment)
        assert known >= moment * 0.98


def test_a_result_is_plain_data_with_its_gap_and_that_at_each_moment() -> None:
    history = Milestone(1.0, None, math.inf), Milestone(2.0, 4.0, 8.0)
    result = OfflineResult(Status.TIME_LIMIT, 1.0, 2.0, {}, "milp", 0.0, history=history)
    assert [result.gap_at(s) for s in (0.5, 1.5, 2.0, 99.0)] == [math.inf, math.inf, 1.0, 1.0]
    document = result.to_dict()
    assert (document["gap"], document["version"]) == (1.0, results.__version__)
    assert document["history"][0] == {"seconds": 1.0, "objective": None, "upper_bound": None}
    assert json.loads(json.dumps(document)) == document


def test_ctrl_c_leaves_the_trivial_bound_and_nothing_admitted_if_nothing_else_is_known() -> None:
    def work() -> Status:
        raise KeyboardInterrupt

    result = conclude(EXAMPLE, SolveState(Budget()), work, "milp", {"seed": 1})
    assert (result.status, result.objective) == (Status.INTERRUPTED, 0.0)
    assert result.upper_bound == trivial_bound(EXAMPLE)
    assert (result.bound_by, result.objective_by) == ("every job at its best", "")
    assert result.parameters == {"seed": 1}


def test_ctrl_c_during_the_online_run_leaves_what_it_has_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit, calls = oasis.OASiS.submit, []

    def interrupted(self: oasis.OASiS, job: oasis.Job) -> oasis.Decision:
        calls.append(job.id)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return submit(self, job)

    monkeypatch.setattr(oasis.OASiS, "submit", interrupted)
    result = solve(EXAMPLE)
    assert result.status is Status.INTERRUPTED
    decided = {d.job_id: d.schedule for d in ONLINE.decisions[:2] if d.schedule is not None}
    assert decided
    assert result.schedules == decided
    assert result.objective <= ONLINE.total_utility <= result.upper_bound
    assert oasis.verify(EXAMPLE, result) == result.objective


def test_a_bound_by_the_configuration_lp_takes_seconds_or_none() -> None:
    assert configuration_bound(EXAMPLE, time_limit=0.0).bound == math.inf
    bounds = [configuration_bound(EXAMPLE, time_limit=limit) for limit in (None, math.inf)]
    bounds.append(configuration_bound(EXAMPLE, work_limit=math.inf))
    assert {result.status for result in bounds} == {Status.OPTIMAL}
    assert len({result.bound for result in bounds}) == 1
