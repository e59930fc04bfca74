"""Large neighbourhood search over counts, on instances that can be followed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Instance, Job, Server
from oasis.certify.verify import verify
from oasis.model.schedule import Schedule, placements
from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits
from oasis.solvers.budget import WorkLimit
from offline.benders import replanning
from offline.benders.master import CountModel
from offline.benders.primal import PrimalHeuristic
from offline.benders.replanning import Replanning
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
from offline.state import SolveState
from tests import builders

CLUSTER = Cluster(("gpu",), (Server("w", {"gpu": 2.0}),), (Server("p", {"gpu": 1.0}),), 1.0)


PATCH = pytest.MonkeyPatch()  # of the constants of the search


@pytest.fixture(autouse=True)
def _undo() -> Iterator[None]:
    yield
    PATCH.undo()


def job(name: str, work: int, due: int, value: float, arrival: int = 0, most: int = 2) -> Job:
    """`work` worker-slots of one GPU, at most `most` at once, worth something until slot `due`."""
    return builders.job(name, arrival, work // most, value, float(due - arrival), most)


def search(
    *jobs: Job,
    horizon: int,
    known: dict[str, Schedule] | None = None,
    span: int = BendersParams().span,
    **constants: float,
) -> Replanning:
    """A search on two GPUs that starts from `known` schedules, prices of 0 behind it."""
    problem = Instance(horizon, CLUSTER, jobs)
    arrays = OfflineArrays.of(problem)
    for name, value in {"RANDOM_SHARE": 0.0, **constants}.items():
        PATCH.setattr(replanning, name, value)
    model, state = CountModel(arrays), SolveState(WorkLimit(60.0).start())
    start = PartialSolution(arrays, known or {})
    best = BestSolution(start, state, partial(verify, problem))
    state.record_bound(model.trivial_bound)
    free = np.zeros((horizon, 1, 1))
    duals = DualValues.of(arrays, free, free)
    rng = np.random.default_rng(0)
    separation = Separation(model)
    primal = PrimalHeuristic(model, separation, best, duals, rng)
    return Replanning(model, separation, primal, best, duals, rng, span)


SMALL = tuple(job(f"s{k}", 1, 3, 1.0, most=1) for k in range(8))
BIG = job("big", 8, 3, 10.0)
FULL = {f"s{k}": Schedule(f"s{k}", placements([(k // 2, 0, 1)]), placements([])) for k in range(8)}


def test_it_frees_all_the_jobs_that_one_worth_more_needs_gone() -> None:
    """One job is worth more than the eight that fill the server: all of them must go at once."""
    free = search(*SMALL, BIG, horizon=4, known=FULL)
    free.search(free.best.state.budget.within(1.0))
    assert free.best.value == 10.0
    assert list(free.best.solution.by_id) == ["big"]


def completions(run: Replanning, limits: Limits) -> list[list[int]]:
    """Slots in which each job may complete, by limits of `CountModel.completing`."""
    return [
        [t for t, variable in c.done.items() if limits[variable.name] == (0.0, 1.0)]
        for c in run.model.jobs
    ]


def test_the_others_may_complete_earlier_but_not_later() -> None:
    known = {"a": Schedule("a", placements([(2, 0, 2)]), placements([]))}
    run = search(job("a", 2, 3, 1.0), job("b", 2, 3, 1.0), horizon=4, known=known)
    assert completions(run, run._limits_around(set(), range(4))) == [[0, 1, 2], []]
    assert completions(run, run._limits_around({1}, range(4))) == [[0, 1, 2], [0, 1, 2, 3]]
    assert completions(run, run._limits_around({0}, range(4))) == [[0, 1, 2, 3], []]


def test_of_a_long_horizon_only_a_window_is_open() -> None:
    """Jobs that complete later complete when they do; the counts before and after stay."""
    known = {
        "a": Schedule("a", placements([(1, 0, 2)]), placements([])),
        "b": Schedule("b", placements([(6, 0, 2)]), placements([])),
    }
    jobs = [job(name, 2, 7, 1.0) for name in "abc"]
    run = search(*jobs, horizon=8, known=known, span=3)
    slots = run._window(3.0)
    assert (slots, run.is_whole) == (range(2, 5), False)
    assert completions(run, run._limits_around({2}, slots)) == [[0, 1], [6], [0, 1, 2, 3, 4]]
    run.begin({}, slots)
    assert run._near["y_0_0_1"] == run._near["y_1_0_6"] == (2, 2)
    assert run._near["y_2_0_0"] == (0, 0)
    assert not [name for name in run._near if name.endswith(("_2", "_3", "_4"))]


def test_cuts_and_whole_counts_leave_what_lies_outside_of_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"a": Schedule("a", placements([(1, 0, 2)]), placements([]))}
    jobs = job("a", 2, 7, 1.0), job("b", 2, 7, 1.0, 3)
    run = search(*jobs, horizon=8, known=known, span=3, FAILURES=1)
    asked: list[Limits] = []
    monkeypatch.setattr(run.primal, "search", lambda near, *_: asked.append(near))
    run.begin(run._limits_around({1}, range(3, 6)), range(3, 6))
    run._try(run.best.state.budget)
    assert asked
    for near in asked:
        assert (near["y_0_0_1"], near["y_1_0_6"]) == ((2, 2), (0, 0))
        assert "y_1_0_4" not in near


@pytest.mark.parametrize(
    ("slot", "slots"), [(0.0, range(3)), (7.0, range(5, 8)), (4.0, range(3, 6))]
)
def test_a_window_lies_about_its_slot_within_the_horizon(slot: float, slots: range) -> None:
    assert search(BIG, horizon=8, span=3)._window(slot) == slots
    assert search(BIG, horizon=8)._window(slot) == range(8)


def test_steps_to_a_plan_ask_for_more_after_one_that_was_placed_and_for_less_after_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From 8 to a plan worth 12: a quarter of the gain, then more of what is left, then less."""
    run = search(*SMALL, BIG, horizon=4, known=FULL, FAILURES=3, MOST_AMBITION=0.3)
    run.begin({})
    asked: list[float] = []

    def placed(*given: Any) -> int:
        asked.append(given[2])
        if len(asked) == 1:
            everything = {"big": Schedule("big", placements([(t, 0, 2) for t in range(4)]), [])}
            run.best.offer(PartialSolution(run.model.arrays, everything))
        return 0

    monkeypatch.setattr(run.primal, "search", placed)
    run._walk({8: 3}, 12.0, run.best.state.budget)
    assert asked == pytest.approx([0.25 * 4, 0.3 * 2, 0.15 * 2, 0.075 * 2])


def test_a_walk_ends_where_too_little_is_left_to_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    run = search(*SMALL, BIG, horizon=4, known=FULL, LEAST_GAIN=0.5)
    run.begin({})
    asked: list[float] = []
    monkeypatch.setattr(run.primal, "search", lambda *given: asked.append(given[2]))
    run._walk({8: 3}, 12.9, run.best.state.budget)  # the bound is 18, so it must gain 5
    assert not asked
    run._walk({8: 3}, 13.1, run.best.state.budget)
    assert asked == [5.0, 5.0]


def test_jobs_are_free_about_one_that_does_not_run() -> None:
    """Where half of four may be new, both of those outside are; of the others, the nearest."""
    new = [job(f"n{k}", 2, 5, 1.0, arrival=4) for k in range(2)]
    run = search(*SMALL, *new, horizon=6, known=FULL, FIRST_JOBS=4, INVITED_SHARE=0.5, SPREAD=1)
    assert run._choose() == ({6, 7, 8, 9}, range(6))


@pytest.mark.parametrize(
    ("solution", "size"),
    [
        (Solution(Status.OPTIMAL, 9.0, 9.0, 0.0, {"u": 1.0}), 11),
        (Solution(Status.INFEASIBLE, None, -np.inf, np.inf, {}), 11),
        (Solution(Status.WORK_LIMIT, None, 9.0, np.inf, {}), 8),
    ],
)
def test_fewer_jobs_are_free_after_a_plan_that_took_too_long(solution: Solution, size: int) -> None:
    run = search(BIG, horizon=4, FIRST_JOBS=10, FEWEST_JOBS=4)
    run._adapt(solution)
    assert run._size == size


def test_no_fewer_jobs_than_the_fewest_are_free() -> None:
    run = search(BIG, horizon=4, FIRST_JOBS=5, FEWEST_JOBS=4)
    for _ in range(3):
        run._adapt(Solution(Status.WORK_LIMIT, None, 9.0, np.inf, {}))
    assert run._size == 4


def test_a_plan_in_fractions_is_approached(monkeypatch: pytest.MonkeyPatch) -> None:
    run = search(*SMALL, BIG, horizon=4, known=FULL)
    done: list[Any] = []
    monkeypatch.setattr(run, "_walk", lambda *given: done.append(given[:2]))
    run.begin(run.model.completing({c.index: range(4) for c in run.model.jobs}))
    run._try(run.best.state.budget)
    assert done == [({8: 3}, pytest.approx(10.0))]


def test_each_try_has_a_new_neighbourhood_but_the_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = search(*SMALL, BIG, horizon=4, known=FULL, LEAST_TRIES=3)
    tried: list[Limits] = []
    monkeypatch.setattr(run, "_try", lambda _: tried.append(run._near))
    asked = run.model.completing({8: range(4)})
    run.begin(asked)
    budget = run.best.state.budget
    monkeypatch.setattr(type(budget), "passed", property(lambda _: len(tried) > 0))
    monkeypatch.setattr(
        run.best.state, "budget", SimpleNamespace(passed=False, within=lambda _: None)
    )
    assert run.search(budget)
    assert [near == asked for near in tried] == [True, False, False]


def test_it_begins_where_it_is_told_to() -> None:
    """In the neighbourhood of the relaxation the big job has no slot, in the next one it has."""
    run = search(*SMALL, BIG, horizon=4)
    run.begin(run.model.completing({c.index: range(4) for c in run.model.jobs[:8]}))
    run._try(run.best.state.budget)
    assert run.best.value == 8.0
    run.search(run.best.state.budget.within(1.0))
    assert run.best.value == 10.0


def test_without_a_job_of_any_worth_there_is_nothing_to_try() -> None:
    run = search(job("late", 8, 0, 1.0), horizon=4)
    assert not run.search(run.best.state.budget)


def test_a_search_without_time_tries_nothing() -> None:
    run = search(*SMALL, BIG, horizon=4, known=FULL)
    assert run.search(run.best.state.budget.within(0.0))
    assert run.best.value == 8.0


def test_completions_of_a_relaxation_and_soon_after() -> None:
    run = search(job("a", 2, 3, 1.0), job("b", 2, 3, 1.0), horizon=6)
    values = {run.model.jobs[0].done[t].name: 0.5 for t in (1, 2)}
    assert run.model.around(values, 1) == {0: range(1, 4)}
