"""One round of the decomposition: what a master may spend, what is done beside it, what is kept."""

from __future__ import annotations

import math
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from oasis.model.errors import SolverError
from oasis.solvers import Solution, Status
from offline.benders import decomposition as module
from offline.benders.decomposition import (
    LAST_SHARE,
    LEVELS,
    MASTER_SHARE,
    PRIMAL_UNTIL,
    UNFINISHED,
    Decomposition,
)
from offline.params import BendersParams

PARAMS = BendersParams()
LIMIT = 100.0  # of the budget


def decomposition(left: float = LIMIT, **parts: Any) -> Any:
    """A decomposition with nothing behind it but a budget that notes which shares it gave."""
    run = Decomposition.__new__(Decomposition)
    shares: list[float] = []
    budget = SimpleNamespace(
        limit=LIMIT,
        left=left,
        share=shares.append,
        shares=shares,
        passed=False,
        is_repeatable=False,
        elapsed=0.0,
    )
    state = SimpleNamespace(bound=20.0, enter=lambda phase: None, record_bound=lambda bound: None)
    state.record_solver_bound = None
    best = SimpleNamespace(value=10.0, is_proven=False, catch_up=lambda: None)
    fields = {"params": PARAMS, "budget": budget, "state": state, "best": best, "_level": 0}
    fields["_least_bounds"] = [math.inf] * len(LEVELS)
    fields |= {"_near": [], "_tolerance": 0.25, "replanning": None, "_helper": None}
    for name, value in (fields | parts).items():
        setattr(run, name, value)
    return run


@pytest.mark.parametrize(
    ("gained", "bound", "share"), [(2.5, 20.0, 0.25), (0.25, 10.5, 0.5), (0.0, 10.0, 0.0)]
)
def test_looking_around_tells_which_share_of_the_open_interval_it_has_closed(
    gained: float, bound: float, share: float
) -> None:
    def search(budget: Any) -> None:
        run.best.value += gained

    run = decomposition(parts=SimpleNamespace(searches=SimpleNamespace(search=search)))
    run.state.bound, run.budget.within = bound, lambda limit: limit
    assert run.look_around() == share


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_only_a_master_in_whole_counts_is_solved_to_the_end(level: int) -> None:
    asked: list[float] = []

    def master(tolerance: float) -> Any:
        asked.append(tolerance)
        return SimpleNamespace(values={})

    run = decomposition(_level=level, _master_and_meanwhile=master)
    run.cycle()
    assert asked == [0.0 if level == len(LEVELS) - 1 else 0.25]


@pytest.mark.parametrize(("cuts", "tolerance"), [(1, 0.125), (0, 0.0)])
def test_each_master_is_twice_as_exact_and_exact_where_nothing_was_cut(
    cuts: int, tolerance: float
) -> None:
    def master(_: float) -> Any:
        run.state.bound = 11.0  # of an interval from 10 to 20
        return SimpleNamespace(values={"x": 1.0}, status=Status.TIME_LIMIT)

    plan = SimpleNamespace(completions=lambda values: {7: 1}, near=lambda plan, window: ["row"])
    run = decomposition(_master_and_meanwhile=master, model=plan)
    run.refine, run.search_near_plan = lambda solution, budget: cuts, lambda: 0
    run.cycle()
    assert (run._tolerance, run._level) == (tolerance, 0)
    assert run._near == ["row"]


@pytest.mark.parametrize("near", [[], ["row"]])
@pytest.mark.parametrize("part", [0.01, 0.99, 1.01, 100.0])
def test_the_last_master_gets_all_that_is_left_and_plans_only_while_there_is_time(
    part: float, near: list[str]
) -> None:
    done = SimpleNamespace(is_done=True, progress=None)
    left = part * LAST_SHARE * LIMIT
    run = decomposition(left, _near=near, _start=lambda *_: nullcontext(done))
    searched: list[str] = []
    run.search_near_plan = lambda: searched.append("near")
    run.look_around, run._finish = lambda: 0.0, lambda master: master
    assert run._master_and_meanwhile(0.0) is done
    assert run.budget.shares == [1.0 if part < 1.0 else MASTER_SHARE]
    is_time = left > PRIMAL_UNTIL * LIMIT
    assert searched == (["near"] if near and is_time else [])


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_master_that_was_stopped_counts_only_where_time_may(is_repeatable: bool) -> None:
    stopped: list[bool] = []
    solution = Solution(Status.INTERRUPTED, None, 15.0, math.inf, {})
    master = SimpleNamespace(stop=lambda: stopped.append(True), finish=lambda saw: solution)
    proved: list[float] = []
    run = decomposition()
    run.budget.passed, run.budget.is_repeatable = True, is_repeatable
    run.state.record_bound = proved.append
    assert run._finish(master) is (UNFINISHED if is_repeatable else solution)
    assert stopped == [True]
    assert proved == ([] if is_repeatable else [15.0])


@pytest.mark.parametrize(("is_done", "looks"), [(False, 2), (True, 0)])
def test_while_it_pays_schedules_are_looked_for_beside_a_master(is_done: bool, looks: int) -> None:
    master = SimpleNamespace(is_done=True, progress=None)
    run = decomposition(_start=lambda *_: nullcontext(master), _finish=lambda master: master)
    run.budget.passed = is_done
    gains = [2 * PARAMS.pays, PARAMS.pays]
    run.look_around = lambda: gains.pop(0)
    run._master_and_meanwhile(0.0)
    assert len(gains) == 2 - looks


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_what_a_running_master_has_proved_counts_only_where_time_may(is_repeatable: bool) -> None:
    proved: list[tuple[Any, ...]] = []
    run = decomposition()
    run.budget.is_repeatable = is_repeatable
    run.state.record_bound = lambda *bound: proved.append(bound)
    for progress in (None, SimpleNamespace(bound=17.0)):
        run._note(SimpleNamespace(progress=progress))
    assert proved == ([] if is_repeatable else [(17.0, LEVELS[0].phase)])


@pytest.mark.parametrize(
    ("passed", "proven"), [(True, False), (False, True)], ids=["no time", "nothing to prove"]
)
def test_nothing_is_relaxed_without_time_or_anything_to_prove(
    passed: bool, proven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[Any] = []
    relaxation = SimpleNamespace(solve=solved.append)  # gives no solution, which ends the rounds
    monkeypatch.setattr(module, "Relaxation", lambda problem: relaxation)
    run = decomposition(model=SimpleNamespace(read=lambda: None))
    run.budget.share = lambda part: SimpleNamespace(passed=passed)
    run.best.is_proven = proven
    run.cut_the_relaxation()
    assert solved == []


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.TIME_LIMIT])
def test_a_best_plan_that_no_cut_excludes_is_forbidden(is_cut: bool, status: Status) -> None:
    forbidden: list[Any] = []
    misfit = SimpleNamespace(group="w", counts={0: 1}, slots=[2])
    model = SimpleNamespace(schedules_of=dict, arrays=SimpleNamespace(horizon=4))
    run = decomposition(
        model=model,
        primal=SimpleNamespace(place=lambda plan, budget, most: [misfit]),
        separation=SimpleNamespace(
            cut_off=lambda *_: is_cut, forbid=lambda *given: forbidden.append(given[:3])
        ),
    )
    run._place(SimpleNamespace(values={}, status=status), run.budget)
    is_forbidden = not is_cut and status is Status.OPTIMAL
    assert forbidden == ([("w", {0: 1}, [2])] if is_forbidden else [])


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_a_plan_may_not_be_worth_more_than_a_master_with_fewer_rows_allows(level: int) -> None:
    """Of whole counts a bound says nothing about fractions, but the other way round it does."""
    run = decomposition(_level=1)
    run._check(Solution(Status.GAP_LIMIT, 11.0, 12.0, 1.0, {}))
    run._level = level
    run._check(Solution(Status.GAP_LIMIT, 12.00001, 13.0, 1.0, {}))
    above = Solution(Status.GAP_LIMIT, 12.001, 13.0, 1.0, {})
    if level == 0:
        run._check(above)
    else:
        with pytest.raises(SolverError, match=r"proved 12 for a master of which a plan is worth"):
            run._check(above)
