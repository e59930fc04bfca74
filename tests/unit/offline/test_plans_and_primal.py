"""From a plan of the master to schedules, on instances that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pulp
import pytest

from oasis.certify.verify import verify
from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant, Deadline
from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget, WorkLimit
from offline import solve
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
from offline.benders.subproblem import Separation, adjusted
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.state import SolveState
from tests import builders

CLUSTER = Cluster(
    ("gpu",),
    (Server("w0", {"gpu": 3.0}), Server("w1", {"gpu": 3.0})),
    (Server("p", {"gpu": 1.0}),),
    slot_seconds=1.0,
)
ONE = Cluster(("gpu",), (Server("w", {"gpu": 6.0}),), (Server("p", {"gpu": 1.0}),), 1.0)


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


def test_the_master_plans_by_total_capacity() -> None:
    solution = close_plan(model(*THREE), {}, Budget())
    assert solution.objective == pytest.approx(12.0)
    assert solution.status is Status.OPTIMAL


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


def test_a_slot_with_less_room_holds_less() -> None:
    """Four jobs of 2 on six GPUs: three of them; on two thirds of that, two; on nothing, none."""
    four = (*THREE, job("d", 2.0, 2.0))
    for share, value in ((1.0, 12.0), (2 / 3, 9.0), (0.0, 0.0)):
        made = model(*four)
        rows = [made.within({("worker", 0): share})]
        solution = close_plan(made, {}, Budget(), rows)
        assert solution.objective == pytest.approx(value)


def test_relax_and_fix_makes_all_counts_whole_a_few_slots_at_a_time() -> None:
    jobs = tuple(job(f"j{k}", 1.5, 5.0, workers=2, slots=2) for k in range(2))
    steps: list[tuple[range, range]] = []
    made = model(*jobs, horizon=4, whole=False)
    require_whole = made.require_whole

    def noted(workers: range, ps: range) -> None:
        steps.append((workers, ps))
        require_whole(workers, ps)

    made.require_whole = noted  # type: ignore[method-assign]
    solution = whole_plan(made, {}, Budget(), PlanLimits(slots_at_once=3), [], 0.0, range(4))
    assert steps == [(range(3), range(3)), (range(4), range(4))]
    assert solution.objective == pytest.approx(10.0)
    for slot in range(4):
        counts = made.counts(solution.values, "worker", slot)
        assert counts == pytest.approx(np.rint(counts))


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
    stopped: Any = SimpleNamespace(status=Status.INTERRUPTED, values={})
    monkeypatch.setattr(module.highs, "solve", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        close_plan(model(*THREE), {}, Budget())


def test_the_closest_plan_changes_no_more_than_its_rows_ask_for() -> None:
    """One of three equal jobs must join the one that runs: the others stay as they are."""
    made = model(*(job(f"j{k}", 1.0, 5.0) for k in range(3)))
    known = made.values_of({"j1": Schedule("j1", [[0, 0, 1]], [])})
    solution = close_plan(made, {}, Budget(), [made.worth(10.0, 10.0)], known=known)
    counts = made.counts(solution.values, "worker", 0)
    assert (counts.sum(), counts[1]) == (pytest.approx(2.0), pytest.approx(1.0))


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


@pytest.mark.parametrize(("radius", "runs"), [(0.9, [0, 1]), (1.1, [0, 2]), (2.1, [0, 2])])
def test_no_more_changes_than_the_radius_allows(radius: float, runs: list[int]) -> None:
    """Two of three jobs of equal size fit: for another one of them, half of the units leave."""
    jobs = (job("j0", 3.0, 5.0), job("j1", 3.0, 4.0), job("j2", 3.0, 6.0))
    made = model(*jobs)
    made.require(pulp.LpInteger, pulp.LpInteger)
    known = made.values_of({name: Schedule(name, [[0, 0, 1]], []) for name in ("j0", "j1")})
    solution = close_plan(made, {}, Budget(), known=known, radius=radius)
    assert np.flatnonzero(made.counts(solution.values, "worker", 0)).tolist() == runs


def test_counts_outside_of_the_slots_are_kept() -> None:
    """Both jobs have slots 0 and 1; slot 0 stays with the one that runs in it."""
    pair = tuple(
        replace(job(name, 6.0, value), utility=Deadline(value, 1.0))
        for name, value in (("a", 5.0), ("b", 9.0))
    )
    made = CountModel(OfflineArrays.of(Instance(2, ONE, pair)))
    made.require(pulp.LpInteger, pulp.LpInteger)
    known = made.values_of({"a": Schedule("a", [[0, 0, 1]], [])})
    solution = close_plan(made, made.fixed_outside(known, range(1, 2)), Budget())
    assert [made.counts(solution.values, "worker", t).tolist() for t in (0, 1)] == [[1, 0], [0, 1]]
    assert solution.objective == pytest.approx(14.0)


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
    found = adjusted(capacity, demand, known, np.array([2, 2]))
    assert found is not None
    assert found.tolist() == [[1, 1], [1, 1]]
    fewer = adjusted(capacity, demand, known, np.array([1, 3]))
    assert fewer is not None
    assert (fewer.sum(axis=1).tolist(), int(fewer[0, 0])) == ([1, 3], 1)
    assert adjusted(capacity, demand, known, np.array([2, 3])) is None


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


# -- the method of column generation ---------------------------------------------------------------


def test_column_generation_encloses_the_optimum_of_the_three() -> None:
    """The optimum is 9; the configuration LP counts on servers as they are, so it sees that too."""
    problem = instance(*THREE)
    result = solve(problem, "colgen", work_limit=0.02)
    assert result.objective == pytest.approx(9.0)
    assert result.upper_bound >= 9.0 - 1e-6
    assert verify(problem, result.schedules) == pytest.approx(9.0)


def test_column_generation_is_repeatable_by_work_and_keeps_a_better_start() -> None:
    jobs = [job(f"j{k}", 1.0 + k % 2, 3.0 + k, slots=1 + k % 3) for k in range(6)]
    problem = instance(*jobs, horizon=4)
    first, second = (solve(problem, "colgen", work_limit=0.05, seed=3) for _ in range(2))
    assert first.schedules == second.schedules
    assert (first.objective, first.upper_bound) == (second.objective, second.upper_bound)
    again = solve(problem, "colgen", work_limit=0.0, warm_start=first.schedules)
    assert again.objective >= first.objective - 1e-9


def test_jobs_that_are_worth_nothing_are_left_out() -> None:
    idle = replace(job("idle", 1.0, 1.0), utility=Constant(0.0))
    result = solve(instance(idle), "colgen", work_limit=0.1)
    assert (result.objective, dict(result.schedules)) == (0.0, {})
