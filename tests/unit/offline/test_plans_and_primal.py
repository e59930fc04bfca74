"""From plans of the master to schedules: placing them, making up for work that is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pulp
import pytest

from oasis import Cluster, Instance, Job, Schedule
from oasis.model.schedule import placements
from oasis.model.utility import Sigmoid
from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits
from oasis.solvers.budget import Budget, WorkLimit
from offline.benders import primal as module
from offline.benders import replanning, slot_model
from offline.benders.master import CountModel
from offline.benders.primal import (
    PlanComparison,
    PlanLimits,
    PrimalHeuristic,
    close_plan,
    whole_plan,
)
from offline.benders.replanning import Replanning
from offline.benders.slot_model import Fill, Shortfall, SlotModel
from offline.benders.subproblem import Separation, adjust
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.params import BendersParams
from offline.state import SolveState
from tests import builders

TWO_SERVERS, ONE_SERVER = builders.cluster(gpus=3.0, servers=2), builders.cluster(gpus=2.0)


def wide(name: str, gpus: float, value: float, workers: int = 1) -> Job:
    """`workers` workers of these GPUs in the first slot."""
    return builders.job(name, 0, 1, value, 0.0, workers, gpus=gpus)


# Three items of 2 on two servers of 3: by total capacity all fit, one by one only two.
THREE = tuple(wide(name, 2.0, value) for name, value in (("a", 5.0), ("b", 4.0), ("c", 3.0)))


def heuristic(
    *jobs: Job, horizon: int = 1, on: Any = TWO_SERVERS, known: dict[str, Schedule] | None = None
) -> PrimalHeuristic:
    """One that starts from `known` schedules, prices of 0 behind it."""
    problem = Instance(horizon, on, jobs)
    arrays = OfflineArrays.of(problem)
    model, state = CountModel(arrays), SolveState(problem, WorkLimit(60.0).start())
    if known:
        state.record_solution(known)
    best = BestSolution(arrays, state)
    state.record_bound(model.trivial_bound)
    free = [np.zeros((horizon, *group.capacity.shape)) for group in (arrays.worker, arrays.ps)]
    duals = DualValues.of(arrays, *free)
    return PrimalHeuristic(model, Separation(model), best, duals, np.random.default_rng(0))


def merged_plan(*names: str) -> dict[str, Schedule]:
    """One worker of each job in slot 0, on the one server that the master knows."""
    return {name: Schedule(name, [[0, 0, 1]], []) for name in names}


# -- plans -----------------------------------------------------------------------------------------


def test_relax_and_fix_ends_with_a_step_that_finds_nothing_and_ctrl_c_is_not_swallowed(monkeypatch):
    made = heuristic(*THREE, horizon=4).model
    asked: list[Any] = []
    status = Status.TIME_LIMIT

    def nothing(*given: object, **_: object) -> Solution:
        asked.append(given)
        return Solution(status, None, 9.0, float("inf"), {})

    monkeypatch.setattr(module.highs, "solve", nothing)
    found = whole_plan(made, {}, Budget(), PlanLimits(slots_at_once=1), [], 0.0, range(4))
    assert found.status is Status.TIME_LIMIT
    assert len(asked) == 1
    status = Status.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        close_plan(made, {}, Budget())


def test_units_count_by_their_largest_share_of_all_servers_and_dense_jobs_most():
    """Of six GPUs; of parameter servers these jobs ask for nothing."""
    primal = heuristic(wide("thin", 3.0, 1.0), wide("dense", 1.0, 9.0), wide("mid", 2.0, 4.0))
    assert primal.model.sizes("worker") == pytest.approx([3.0 / 6.0, 1.0 / 6.0, 2.0 / 6.0])
    assert primal.model.sizes("ps").tolist() == [0.0, 0.0, 0.0]
    assert primal._worth.tolist() == [1.0, 10.0, 5.5]
    assert heuristic(THREE[0])._worth.tolist() == [1.0]
    model = heuristic(*THREE).model
    model.require(pulp.LpInteger, pulp.LpInteger)
    compared = PlanComparison.of(
        model.read(), model.values_of(merged_plan("a", "b")), model.size_of
    )
    assert compared.scale == pytest.approx(4.0 / 6.0), "what the known plan takes"


# -- placing a plan --------------------------------------------------------------------------------


def test_a_plan_that_fits_is_placed_whole():
    primal = heuristic(*THREE)
    assert primal.place(merged_plan("a", "c"), Budget()) == []
    assert primal.best.value == pytest.approx(8.0)  # there is no room for b beside them
    schedules = primal.best.solution.by_id
    assert sorted(schedule.workers[0, 1] for schedule in schedules.values()) == [0, 1]


def test_counts_that_do_not_fit_are_told_with_their_slots_and_leave_so_much_room_free():
    """One of three items of 2 was not placed: 2 of 6 GPUs."""
    primal = heuristic(*THREE)
    (misfit,) = primal.place(merged_plan("a", "b", "c"), Budget())
    assert (misfit.group, misfit.slots, misfit.counts.tolist()) == ("worker", [0], [1, 1, 1])
    assert primal.best.value == pytest.approx(9.0)  # the two worthier ones found their places
    room: dict[tuple[str, int], float] = {}
    for left in (1 - 2 / 6, 1 - 4 / 6):
        primal._squeeze(room, misfit)
        assert room == {("worker", 0): pytest.approx(left)}


def test_jobs_that_lack_work_find_room_where_there_is_some():
    """None of two has a place yet, and each of the two servers has room for one."""
    primal = heuristic(*THREE[:2])
    primal._offer(Fill.of([primal.shortfall.slots.empty()], np.zeros(2, np.int64)))
    assert primal.best.value == pytest.approx(9.0)


def test_a_job_that_finds_some_of_its_places_gets_none_of_them():
    """Beside the job of 3 GPUs there is room for one of the two workers of the other."""
    primal = heuristic(wide("wide", 2.0, 1.0, workers=2), wide("big", 3.0, 9.0))
    plan = {"wide": Schedule("wide", [[0, 0, 2]], []), "big": Schedule("big", [[0, 0, 1]], [])}
    (misfit,) = primal.place(plan, Budget())
    assert misfit.counts.tolist() == [2, 1]
    assert list(primal.best.solution.by_id) == ["big"]
    assert primal.best.value == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("counts", "units"), [([2, 2], [[1, 1], [1, 1]]), ([1, 3], [[1, 0], [1, 2]]), ([2, 3], None)]
)
def test_a_slot_that_loses_a_unit_keeps_the_places_of_the_others(counts, units):
    """Known units of the first item stay on both servers; the second has room beside them."""
    capacity, demand = np.array([[3.0], [3.0]]), np.array([[2.0], [1.0]])
    found = adjust(capacity, demand, np.array([[1, 1], [0, 0]]), np.array(counts))
    assert (None if found is None else found.tolist()) == units


def test_the_search_ends_with_the_best_schedules_and_without_time_plans_nothing():
    primal = heuristic(*THREE)
    assert primal.search({}, WorkLimit(0.0).start()) == 0
    assert primal.best.value == 0.0
    assert primal.search({}, Budget()) >= 1  # the counts (1, 1, 1) are cut off
    assert primal.best.value == pytest.approx(9.0)


# -- the search over plans -------------------------------------------------------------------------


def job(name: str, work: int, due: int, value: float, arrival: int = 0, most: int = 2) -> Job:
    """`work` worker-slots of one GPU, at most `most` at once, worth something until slot `due`."""
    return builders.job(name, arrival, work // most, value, float(due - arrival), most)


def runs(name: str, *rows: tuple[int, int, int]) -> dict[str, Schedule]:
    return {name: Schedule(name, placements(list(rows)), placements([]))}


SMALL = tuple(job(f"s{k}", 1, 3, 1.0, most=1) for k in range(8))
BIG = job("big", 8, 3, 10.0)
FULL = {name: s for k in range(8) for name, s in runs(f"s{k}", (k // 2, 0, 1)).items()}


def search(
    monkeypatch: pytest.MonkeyPatch,
    *jobs: Job,
    horizon: int = 4,
    known: dict[str, Schedule] | None = None,
    span: int = BendersParams().span,
    **constants: float,
) -> Replanning:
    """A search on two GPUs that starts from `known` schedules."""
    for name, value in {"RANDOM_SHARE": 0.0, **constants}.items():
        monkeypatch.setattr(replanning, name, value)
    primal = heuristic(*jobs, horizon=horizon, on=ONE_SERVER, known=known)
    shared = primal.model, primal.separation, primal, primal.best, primal.duals, primal.rng
    return Replanning(*shared, span)


def completions(run: Replanning, limits: Limits) -> list[list[int]]:
    """Slots in which each job may complete, by limits of `CountModel.completing`."""
    return [
        [t for t, variable in c.done.items() if limits[variable.name] == (0.0, 1.0)]
        for c in run.model.jobs
    ]


def test_it_frees_all_the_jobs_that_one_worth_more_needs_gone(monkeypatch):
    """One job is worth more than the eight that fill the server: all of them must go at once."""
    run = search(monkeypatch, *SMALL, BIG, known=FULL)
    assert run.search(run.best.state.budget.within(0.0))
    assert run.best.value == 8.0, "without time it tries nothing"
    run.search(run.best.state.budget.within(1.0))
    assert run.best.value == 10.0
    assert list(run.best.solution.by_id) == ["big"]


def test_it_begins_where_it_is_told_to(monkeypatch):
    """In the neighbourhood of the relaxation the big job has no slot, in the next one it has."""
    run = search(monkeypatch, *SMALL, BIG)
    run.begin(run.model.completing({c.index: range(4) for c in run.model.jobs[:8]}))
    run._try(run.best.state.budget)
    assert run.best.value == 8.0
    run.search(run.best.state.budget.within(1.0))
    assert run.best.value == 10.0


def test_the_others_may_complete_earlier_but_not_later(monkeypatch):
    known = runs("a", (2, 0, 2))
    run = search(monkeypatch, job("a", 2, 3, 1.0), job("b", 2, 3, 1.0), known=known)
    for free, slots in (
        (set(), [[0, 1, 2], []]),
        ({1}, [[0, 1, 2], [0, 1, 2, 3]]),
        ({0}, [[0, 1, 2, 3], []]),
    ):
        assert completions(run, run._limits_around(free, range(4))) == slots
    values = {run.model.jobs[0].done[t].name: 0.5 for t in (1, 2)}
    assert run.model.around(values, 1) == {0: range(1, 4)}


def test_of_a_long_horizon_only_a_window_is_open(monkeypatch):
    """Jobs that complete later complete when they do; the counts before and after stay."""
    known = runs("a", (1, 0, 2)) | runs("b", (6, 0, 2))
    jobs = [job(name, 2, 7, 1.0) for name in "abc"]
    run = search(monkeypatch, *jobs, horizon=8, known=known, span=3, FAILURES=1)
    for slot, slots in ((0.0, range(3)), (7.0, range(5, 8)), (3.0, range(2, 5))):
        assert run._window(slot) == slots
    assert not run.is_whole
    assert completions(run, run._limits_around({2}, slots)) == [[0, 1], [6], [0, 1, 2, 3, 4]]
    asked: list[Limits] = []
    monkeypatch.setattr(run.primal, "search", lambda near, *_: asked.append(near))
    run.begin({}, slots)
    assert not [name for name in run._near if name.endswith(("_2", "_3", "_4"))]
    run.begin(run._limits_around({2}, slots), slots)
    run._try(run.best.state.budget)
    assert asked
    for near in (run._near, *asked):
        assert near["y_0_0_1"] == near["y_1_0_6"] == (2, 2)
        assert near["y_2_0_0"] == (0, 0)


def test_steps_to_a_plan_ask_for_more_after_one_that_was_placed_and_for_less_after_others(
    monkeypatch,
):
    """From 8 to a plan worth 12: a quarter of the gain, then more of what is left, then less."""
    run = search(monkeypatch, *SMALL, BIG, known=FULL, FAILURES=3, MOST_AMBITION=0.3)
    run.begin({})
    asked: list[float] = []

    def placed(*given: Any) -> int:
        asked.append(given[2])
        if len(asked) == 1:
            everything = runs("big", *((t, 0, 2) for t in range(4)))
            run.best.offer(PartialSolution(run.model.arrays, everything))
        return 0

    monkeypatch.setattr(run.primal, "search", placed)
    run._walk({8: 3}, 12.0, run.best.state.budget)
    assert asked == pytest.approx([0.25 * 4, 0.3 * 2, 0.15 * 2, 0.075 * 2])
    monkeypatch.setattr(replanning, "LEAST_GAIN", 0.5)  # the bound is 18, so it must gain 4
    run._walk({8: 3}, 13.9, run.best.state.budget)
    assert len(asked) == 4, "too little is left to gain"
    run._walk({8: 3}, 14.1, run.best.state.budget)
    assert asked[4:] == [4.0] * 3


def test_jobs_are_free_about_one_that_does_not_run(monkeypatch):
    """Where half of four may be new, both of those outside are; of the others, the nearest."""
    new = [job(f"n{k}", 2, 5, 1.0, arrival=4) for k in range(2)]
    limits = {"FIRST_JOBS": 4, "INVITED_SHARE": 0.5, "SPREAD": 1}
    run = search(monkeypatch, *SMALL, *new, horizon=6, known=FULL, **limits)
    assert run._choose() == ({6, 7, 8, 9}, range(6))


def test_fewer_jobs_are_free_after_a_plan_that_took_too_long(monkeypatch):
    run = search(monkeypatch, BIG, FIRST_JOBS=7, FEWEST_JOBS=4)
    for status, objective, size in (
        (Status.OPTIMAL, 9.0, 8),
        (Status.INFEASIBLE, None, 9),
        (Status.WORK_LIMIT, None, 7),
        (Status.WORK_LIMIT, None, 5),
        (Status.WORK_LIMIT, None, 4),
    ):
        run._adapt(Solution(status, objective, 9.0, np.inf, {"u": 1.0} if objective else {}))
        assert run._size == size


def test_without_a_job_of_any_worth_there_is_nothing_to_try(monkeypatch):
    run = search(monkeypatch, job("late", 8, 0, 1.0))
    assert not run.search(run.best.state.budget)


# -- jobs that make up elsewhere for the work that they lack ---------------------------------------

THREE_GPUS = builders.cluster(gpus=3.0)


def work() -> Budget:
    """A limit in work, which no machine is too slow for."""
    return WorkLimit(60.0).start()


def due_job(name: str, gpus: float, work: int, value: float, due: int, most: int = 1) -> Job:
    """`work` worker-slots, at most `most` at once, worth something until slot `due`."""
    return builders.job(name, 0, work // most, value, float(due), most, gpus=gpus)


def shortfall_of(*jobs: Job, horizon: int = 2, cluster: Cluster = THREE_GPUS) -> Shortfall:
    model = CountModel(OfflineArrays.of(Instance(horizon, cluster, jobs)))
    return Shortfall(model, SlotModel(model), np.random.default_rng(0))


def filled(run: Shortfall, due: list[int], *workers: list[int]) -> Fill:
    """Workers of each job by slot, on the one server."""
    nothing = np.zeros((len(due), 1), dtype=np.int64)
    return Fill.of(
        ({"worker": np.array(row)[:, None], "ps": nothing} for row in workers), np.array(due)
    )


# Two jobs of two GPUs and one of one, on three GPUs: the pair cannot run together.
PAIR = (
    due_job("a", 2.0, 1, 5.0, due=3),
    due_job("b", 2.0, 1, 5.0, due=3),
    due_job("c", 1.0, 2, 4.0, due=3),
)


def without_a_place() -> tuple[Shortfall, Fill]:
    """The pair and the third job in two slots: b is due, and runs nowhere."""
    run = shortfall_of(*PAIR)
    return run, filled(run, [1, 1, 1], [1, 0, 1], [0, 0, 1])


@pytest.mark.parametrize("rounds", [1, slot_model.ROUNDS])
def test_work_that_found_no_place_moves_to_another_slot(monkeypatch, rounds):
    """What the last round finds counts."""
    monkeypatch.setattr(slot_model, "ROUNDS", rounds)
    run, start = without_a_place()
    assert start.shortfall(run.work).tolist() == [0, 1, 0]
    found = run.search(start, 0.0, work())
    assert not found.shortfall(run.work).any()
    assert found.workers.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert start.workers.tolist() == [[1, 0, 1], [0, 0, 1]]  # the start is not changed


def test_others_give_way_where_they_fit_elsewhere():
    """The wide job fits in slot 0 alone, which two thin ones hold; these have slot 1 as well."""
    wide = due_job("wide", 3.0, 1, 9.0, due=0)
    thin = [due_job(f"thin{k}", 1.0, 1, 1.0, due=1) for k in range(2)]
    run = shortfall_of(wide, *thin)
    start = filled(run, [0, 1, 1], [0, 1, 1], [0, 0, 0])
    found = run.search(start, 0.0, work())
    assert found.workers.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_a_job_that_cannot_make_it_completes_later_where_that_costs_little():
    slow = builders.job("slow", gpus=3.0, utility=Sigmoid(10.0, 0.1, 5.0))
    run = shortfall_of(slow, due_job("first", 3.0, 1, 50.0, due=0), horizon=3)
    found = run.search(filled(run, [0, 0], [0, 1], [0, 0], [0, 0]), 0.0, work())
    assert found.due.tolist() == [1, 0]
    assert found.workers.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_a_job_that_cannot_make_it_at_all_leaves_and_gives_up_its_places():
    run = shortfall_of(due_job("a", 1.0, 2, 5.0, due=1), due_job("b", 1.0, 1, 50.0, due=0))
    here = filled(run, [1, 0], [1, 1], [0, 0])
    before = here.units[0]["worker"].copy()
    run._relent(here, here.shortfall(run.work), 50.0)
    assert here.due.tolist() == [1, 0]  # 5 is more than a share of what the plan gains
    run._relent(here, here.shortfall(run.work), 0.0)
    assert here.due.tolist() == [-1, 0]
    assert here.workers.tolist() == [[0, 1], [0, 0]]
    assert here.units[0]["worker"].tolist() == [[0], [1]]
    assert before.tolist() == [[1], [1]]


def test_nothing_is_tried_for_a_plan_that_can_gain_nothing_or_without_time():
    run, start = without_a_place()
    assert run.search(start, 14.0, work()) is start
    assert run.search(start, 0.0, WorkLimit(0.0).start()) is start


def test_the_fill_with_the_worthiest_finished_jobs_is_kept(monkeypatch):
    """One slot for two: b replaces a as its weight grows, and is worth less."""
    monkeypatch.setattr(slot_model, "PATIENCE", 99)
    run = shortfall_of(
        due_job("a", 3.0, 1, 5.0, due=0), due_job("b", 3.0, 1, 4.0, due=0), horizon=1
    )
    seen: list[list[int]] = []
    one_round = run._round

    def noted(here: Fill, *given: Any) -> None:
        one_round(here, *given)
        seen.append(here.workers[0].tolist())

    monkeypatch.setattr(run, "_round", noted)
    found = run.search(filled(run, [0, 0], [1, 0]), 0.0, work())
    assert [0, 1] in seen
    assert found.workers.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("growth", "rounds", "is_whole"), [(1.2, 1, False), (1.2, 4, True), (1.0, 4, False)]
)
def test_a_job_that_lacks_work_weighs_more_until_others_give_way(
    monkeypatch, growth, rounds, is_whole
):
    """One job needs all GPUs of slot 0. Two others are there, by their weights 4/3 of it."""
    for name, value in {"GROWTH": growth, "ROUNDS": rounds}.items():
        monkeypatch.setattr(slot_model, name, value)
    cluster = builders.cluster(worker={"gpu": 3.0, "memory_gb": 3.0})
    shares = [({"gpu": 3.0}, 0), ({"gpu": 2.0}, 1), ({"gpu": 1.0, "memory_gb": 2.0}, 1)]
    jobs = (
        builders.job(f"j{k}", 0, 1, 5.0, float(due), worker=worker)
        for k, (worker, due) in enumerate(shares)
    )
    run = shortfall_of(*jobs, cluster=cluster)
    found = run.search(filled(run, [0, 1, 1], [0, 1, 1], [0, 0, 0]), 0.0, work())
    assert found.shortfall(run.work).any() != is_whole


def test_a_job_that_takes_next_to_nothing_makes_up_for_its_work_too():
    free = builders.job("free", 0, 2, 1.0, 2.0, worker={})
    run = shortfall_of(*PAIR, free, horizon=3)
    start = filled(run, [1, 1, 1, 2], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1])
    assert run.weights.tolist()[1:] == pytest.approx([2.0 / 3.0, 1.0 / 3.0, run.weights[3]])
    assert run.weights[3] > 0
    found = run.search(start, 0.0, work())
    assert not found.shortfall(run.work).any()


def test_values_are_those_of_jobs_that_are_due_and_of_those_that_lack_nothing():
    run = shortfall_of(*PAIR)
    start = filled(run, [1, -1, 1], [0, 0, 1], [0, 0, 1])
    assert run.value(start) == 9.0
    assert run.value(start, finished=True) == 4.0


@pytest.mark.parametrize(("rounds", "hopeless", "last"), [(7, 99, 1), (99, 5, 2)])
def test_jobs_may_give_in_after_every_third_round_and_a_search_that_gets_nowhere_ends(
    monkeypatch, rounds, hopeless, last
):
    limits = {"ROUNDS": rounds, "HOPELESS": hopeless, "PATIENCE": 3}
    for name, value in limits.items():
        monkeypatch.setattr(slot_model, name, value)
    run, start = without_a_place()
    calls: list[str] = []
    monkeypatch.setattr(run, "_round", lambda *_: calls.append("round"))
    monkeypatch.setattr(run, "_relent", lambda *_: calls.append("relent"))
    run.search(start, 0.0, work())
    turn = [*["round"] * 3, "relent"]
    assert calls == [*turn * (2 if rounds == 7 else 1), *["round"] * last]


def test_a_slot_is_asked_for_no_more_than_a_job_still_needs(monkeypatch):
    """The third job has a worker-slot more than its work: none of it is asked for, nowhere."""
    run = shortfall_of(*PAIR, horizon=4)
    start = filled(run, [3, 3, 3], [1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0])
    asked: list[list[int]] = []
    monkeypatch.setattr(run.slots, "best", lambda most, *_: asked.append(most.tolist()))
    run._round(start, run.weights, work())
    assert sorted(asked) == [[0, 1, 0]] * 3 + [[1, 1, 0]]
