"""From a plan of the master to schedules, on instances that can be followed by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pulp
import pytest

from oasis.certify.verify import verify
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget, WorkLimit
from offline.benders import primal as module
from offline.benders.master import CountModel
from offline.benders.primal import (
    PlanComparison,
    PlanLimits,
    PrimalHeuristic,
    close_plan,
    whole_plan,
)
from offline.benders.slot_model import Fill
from offline.benders.subproblem import Separation, adjust
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.state import SolveState
from tests import builders

CLUSTER = builders.cluster(gpus=3.0, servers=2)


def job(name: str, gpus: float, value: float, workers: int = 1, slots: int = 1) -> Job:
    return builders.job(name, 0, slots, value, slots - 1.0, workers, gpus=gpus)


instance = partial(builders.instance, horizon=1, on=CLUSTER)


def model(*jobs: Job, horizon: int = 1, whole: bool = True) -> CountModel:
    made = CountModel(OfflineArrays.of(instance(*jobs, horizon=horizon)))
    if whole:
        made.require(pulp.LpInteger, pulp.LpInteger)
    return made


# Three items of 2 on two servers of 3: by total capacity all fit, one by one only two.
THREE = tuple(job(name, 2.0, value) for name, value in (("a", 5.0), ("b", 4.0), ("c", 3.0)))


def heuristic(*jobs: Job, horizon: int = 1) -> PrimalHeuristic:
    problem = instance(*jobs, horizon=horizon)
    arrays = OfflineArrays.of(problem)
    made = CountModel(arrays)
    state = SolveState(Budget())
    best = BestSolution(PartialSolution(arrays, {}), state, partial(verify, problem))
    free = [np.zeros((horizon, n, 1)) for n in (2, 1)]
    duals = DualValues.of(arrays, *free)
    rng = np.random.default_rng(0)
    return PrimalHeuristic(made, Separation(made), best, duals, rng)


# -- plans -----------------------------------------------------------------------------------------


def test_cuts_that_are_found_after_a_plan_hold_in_the_next() -> None:
    made = model(*THREE)
    first = close_plan(made, {}, Budget())
    assert Separation(made).cut(first.values, Budget())
    assert close_plan(made, {}, Budget()).objective == pytest.approx(9.0)


def test_limits_hold_for_this_plan_alone() -> None:
    made = model(*THREE)
    near = made.near({1: 0}, 0)
    rows = len(made.read().rows)
    first = close_plan(made, near, Budget())
    assert len(made.read().rows) == rows
    assert first.objective is not None
    assert close_plan(made, {}, Budget()).objective == pytest.approx(12.0)


def test_relax_and_fix_ends_with_a_step_that_finds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0

    def nothing(*_: object) -> Solution:
        nonlocal calls
        calls += 1
        return Solution(Status.TIME_LIMIT, None, 9.0, float("inf"), {})

    monkeypatch.setattr(module, "close_plan", nothing)
    made = model(*THREE, horizon=4)
    found = whole_plan(made, {}, Budget(), PlanLimits(slots_at_once=1), [], 0.0, range(4))
    assert found.status is Status.TIME_LIMIT
    assert calls == 1


def test_ctrl_c_while_planning_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Solution(Status.INTERRUPTED, None, 0.0, 0.0, {})
    monkeypatch.setattr(module.highs, "solve", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        close_plan(model(*THREE), {}, Budget())


def test_the_size_of_a_unit_is_its_largest_share_of_all_servers() -> None:
    """Of six GPUs; of parameter servers these jobs ask for nothing."""
    made = model(job("a", 2.0, 5.0), job("b", 3.0, 5.0))
    assert made.sizes("worker") == pytest.approx([2.0 / 6.0, 3.0 / 6.0])
    assert made.sizes("ps").tolist() == [0.0, 0.0]


def test_the_scale_of_distances_is_what_the_known_plan_takes() -> None:
    made = model(*THREE)
    known = made.values_of({name: Schedule(name, [[0, 0, 1]], []) for name in "ab"})
    compared = PlanComparison.of(made.read(), known, made.size_of)
    assert compared.scale == pytest.approx(4.0 / 6.0)


# -- placing a plan --------------------------------------------------------------------------------


def merged_plan(*names: str) -> dict[str, Schedule]:
    """One worker of each job in slot 0, on the one server that the master knows."""
    return {name: Schedule(name, [[0, 0, 1]], []) for name in names}


def test_a_plan_that_fits_is_placed_whole() -> None:
    primal = heuristic(*THREE)
    assert primal.place(merged_plan("a", "c"), Budget()) == []
    assert primal.best.value == pytest.approx(8.0)  # there is no room for b beside them
    schedules = primal.best.solution.by_id
    servers = sorted(schedule.workers[0, 1] for schedule in schedules.values())
    assert servers == [0, 1]


def test_counts_that_do_not_fit_are_told_with_their_slots() -> None:
    primal = heuristic(*THREE)
    (misfit,) = primal.place(merged_plan("a", "b", "c"), Budget())
    assert misfit.group == "worker"
    assert misfit.slots == [0]
    assert misfit.counts.tolist() == [1, 1, 1]
    assert primal.best.value == pytest.approx(9.0)  # the two worthier ones found their places


def test_what_does_not_fit_is_proven_before_any_other_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cuts are to have the time of a plan that is placed exactly."""
    primal = heuristic(*THREE)

    def searched(*_: object) -> None:
        raise AssertionError("the shortfall search has taken the time of the cuts")

    monkeypatch.setattr(primal.shortfall, "search", searched)
    (misfit,) = primal.place(merged_plan("a", "b", "c"), Budget(), float("inf"))
    assert misfit.placed.sum() == 2


def test_jobs_that_lack_work_find_room_where_there_is_some() -> None:
    """None of two has a place yet, and each of the two servers has room for one."""
    primal = heuristic(*THREE[:2])
    primal._offer(Fill.of([primal.shortfall.slots.empty()], np.zeros(2, np.int64)))
    assert primal.best.value == pytest.approx(9.0)


def test_a_job_that_finds_some_of_its_places_gets_none_of_them() -> None:
    """Beside the job of 3 GPUs there is room for one of the two workers of the other."""
    primal = heuristic(job("wide", 2.0, 1.0, workers=2), job("big", 3.0, 9.0))
    plan = {"wide": Schedule("wide", [[0, 0, 2]], []), "big": Schedule("big", [[0, 0, 1]], [])}
    (misfit,) = primal.place(plan, Budget())
    assert misfit.counts.tolist() == [2, 1]
    assert list(primal.best.solution.by_id) == ["big"]
    assert primal.best.value == pytest.approx(9.0)


def test_a_slot_that_loses_a_unit_keeps_the_places_of_the_others() -> None:
    """Known units of the first item stay on both servers; the second has room beside them."""
    capacity, demand = np.array([[3.0], [3.0]]), np.array([[2.0], [1.0]])
    known = np.array([[1, 1], [0, 0]])
    found = adjust(capacity, demand, known, np.array([2, 2]))
    assert found is not None
    assert found.tolist() == [[1, 1], [1, 1]]
    fewer = adjust(capacity, demand, known, np.array([1, 3]))
    assert fewer is not None
    assert (fewer.sum(axis=1).tolist(), int(fewer[0, 0])) == ([1, 3], 1)
    assert adjust(capacity, demand, known, np.array([2, 3])) is None


def test_a_slot_of_the_same_counts_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    long = tuple(job(name, 2.0, 5.0, slots=3) for name in "ab")
    primal = heuristic(*long, horizon=3)
    asked = []
    monkeypatch.setattr(module, "adjusted", lambda *_: None)
    place = module.place_by_patterns
    monkeypatch.setattr(
        module, "place_by_patterns", lambda *given: asked.append(given) or place(*given)
    )
    rows = [[slot, 0, 1] for slot in range(3)]
    assert primal.place({name: Schedule(name, rows, []) for name in "ab"}, Budget()) == []
    assert len(asked) == 1  # for the workers; of the parameter servers there are none
    assert primal.best.value == pytest.approx(10.0)


def test_denser_jobs_are_worth_more_where_not_all_fit() -> None:
    primal = heuristic(job("thin", 3.0, 1.0), job("dense", 1.0, 9.0), job("mid", 2.0, 4.0))
    order = [primal.model.jobs[k].job.id for k in np.argsort(primal._worth)]
    assert order == ["thin", "mid", "dense"]
    assert (primal._worth.min(), primal._worth.max()) == (1.0, 10.0)


def test_a_single_job_has_the_least_worth() -> None:
    assert heuristic(job("a", 2.0, 5.0))._worth.tolist() == [1.0]


def test_a_misfit_leaves_so_much_room_free_as_it_lacked() -> None:
    """One of three items of 2 was not placed: 2 of 6 GPUs; at least the least squeeze."""
    primal = heuristic(*THREE)
    (misfit,) = primal.place(merged_plan("a", "b", "c"), Budget())
    room: dict[tuple[str, int], float] = {}
    primal._squeeze(room, misfit)
    assert room == {("worker", 0): pytest.approx(1 - 2 / 6)}
    primal._squeeze(room, misfit)
    assert room == {("worker", 0): pytest.approx(1 - 4 / 6)}


def test_the_search_ends_with_the_best_schedules() -> None:
    primal = heuristic(*THREE)
    added = primal.search({}, Budget())
    assert added >= 1  # the counts (1, 1, 1) are cut off
    assert primal.best.value == pytest.approx(9.0)


def test_a_search_without_time_plans_nothing() -> None:
    primal = heuristic(*THREE)
    assert primal.search({}, WorkLimit(0.0).start()) == 0
    assert primal.best.value == 0.0
