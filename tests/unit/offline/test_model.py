"""Models over schedules: rows, capacities kept exactly, variables and back, own constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oasis
from oasis import Deadline, InputError, Instance, SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.budget import Budget
from oasis.testing import small_instances
from offline import OfflineModel, solve
from offline.benders.master import CountModel
from offline.enumeration import fitting_counts
from offline.model.arrays import OfflineArrays
from offline.model.capacities import (
    CapacityLevel,
    Cover,
    Limit,
    fits,
    solve_within,
)
from offline.model.constraints import fewest_ps, ps_of_work
from offline.model.milp import CompactModel, ScheduleExchange
from offline.params import EnumerationParams
from offline.patterns import Cut
from offline.state import Phase, SolveState
from tests import builders
from tests.strategies import fewer
from tests.unit.linear import as_pulp

TINY = oasis.generate("testbed", jobs=3, worker_servers=1, ps_servers=1, horizon=4, seed=3)


def test_a_job_longer_than_any_array_is_left_out_of_every_method():
    jobs = (builders.job("a"), builders.job("b", minibatch_time=1e30))
    given = builders.instance(*jobs, horizon=3)
    for method in ("milp", "benders", "colgen"):
        assert oasis.solve(given, method=method).objective == 1.0


@given(small_instances())
@fewer(3)
def test_counts_that_fit_are_closed_downwards_and_placed_as_counted(instance):
    most = [min(job.chunks, 3) for job in instance.jobs]
    fitting = fitting_counts(instance.jobs, most, instance.cluster)
    assert (0,) * len(most) in fitting
    for counts, placement in fitting.items():
        assert tuple(map(sum, placement.workers)) == counts
        needed = [int(j.ps_needed(n)) for j, n in zip(instance.jobs, counts, strict=True)]
        assert list(map(sum, placement.ps)) == needed
        for i, n in enumerate(counts):
            assert n == 0 or (*counts[:i], n - 1, *counts[i + 1 :]) in fitting


def test_an_instance_too_large_to_enumerate_is_refused_by_its_steps():
    with pytest.raises(ValueError, match=r"too large for brute force: \d+ steps, at most 1; use"):
        solve(TINY, "bruteforce", params=EnumerationParams(max_steps=1))
    best = solve(TINY, "bruteforce").objective
    assert solve(TINY, "milp", time_limit=None).objective == pytest.approx(best, rel=1e-6)


# -- rows of the master, on two jobs and two slots -------------------------------------------------

BANDWIDTH = "bandwidth_gbps"
CLUSTER = oasis.Cluster(
    ("cpu", BANDWIDTH, "gpu"),
    (
        oasis.Server("w0", {"cpu": 3.0, BANDWIDTH: 10.0}),
        oasis.Server("w1", {"cpu": 2.0, BANDWIDTH: 10.0}),
    ),
    (oasis.Server("p", {"cpu": 4.0, BANDWIDTH: 10.0}),),
    1.0,
)


JOBS = tuple(
    builders.job(name, arrival, 1, value, workers=workers, worker=amounts, ps=amounts)
    for name, arrival, value, workers, amounts in (
        ("a", 0, 5.0, 3, {"cpu": 1.0, BANDWIDTH: 1.0}),
        ("b", 1, 7.0, 1, {"cpu": 2.0, BANDWIDTH: 1.0}),
    )
)
Row = tuple[dict[str, float], float | None, float | None]


@pytest.fixture
def model() -> CountModel:
    return CountModel(OfflineArrays.of(oasis.Instance(2, CLUSTER, JOBS)))


def read(model: CountModel, rows: RowArrays) -> list[Row]:
    """Coefficients by variable, lower and upper limit of every row."""
    problem = as_pulp(replace(model.read(), rows=rows))
    return [
        ({v.name: float(c) for v, c in row.items()}, row.getLb(), row.getUb())
        for row in problem.constraints()
    ]


def name(model: CountModel, which: str, group: str, slot: int) -> str:
    """The variable of a job's count in a slot."""
    return model.jobs["ab".index(which)].units(group)[slot, 0].name


def test_first_cuts_are_the_total_capacities(model):
    """CPU: 1 and 2 of 5; bandwidth: 1 and 1 of 20. There are no GPUs, so nothing of them."""
    assert (model.size, model.trivial_bound) == (2 + 1, 12.0)
    found = {group: [cut.weights.tolist() for cut in cuts] for group, cuts in model.cuts.items()}
    assert found["worker"] == [[1 / 5, 2 / 5], [1 / 20, 1 / 20]]
    assert found["ps"] == [[1 / 4, 2 / 4], [1 / 10, 1 / 10]]


def test_cut_has_a_row_in_each_slot_in_which_it_can_bind_and_only_once(model):
    """At most 3 workers of a and 1 of b: 0.4 each exceed 1 in both slots, 0.25 in slot 1 not."""
    cut = Cut(np.array([0.4, 0.4]))
    rows = read(model, model.rows(model.add("worker", cut, [0, 1])))
    limit = pytest.approx(1.0 + CAPACITY_TOLERANCE, rel=1e-15)
    a0, a1, b1 = name(model, "a", "worker", 0), *(name(model, j, "worker", 1) for j in "ab")
    assert rows == [({a0: 0.4}, None, limit), ({a1: 0.4, b1: 0.4}, None, limit)]
    number = len(model.cuts["worker"]) - 1
    assert model.place("worker", number, [0, 1]) == []
    assert model.add("worker", Cut(np.array([1 / 3, 0.0])), [0, 1]) == []
    assert len(model.add("worker", Cut(np.array([0.25, 0.5])), [0, 1])) == 1
    assert len(model.add("ps", cut, [1])) == 1


def test_room_is_what_was_asked_for_last_and_new_cuts_count(model):
    model.add("worker", Cut(np.array([0.4, 0.4])), [0])
    for share in (0.75, 0.5, 0.5, 0.75):
        assert [most for _, _, most in read(model, model.within({("worker", 0): share}))] == [share]
    model.add("worker", Cut(np.array([0.5, 0.5])), [0])
    assert len(model.within({("worker", 0): 0.75})) == 2


def test_completion_is_where_its_variable_is_above_one_half(model):
    a, b = ({t: v.name for t, v in c.done.items()} for c in model.jobs)
    assert model.completions({a[0]: 0.4, a[1]: 0.6, b[1]: 0.5}) == {0: 1}
    assert model.completions({a[0]: 1.0, b[1]: 0.51}) == {0: 0, 1: 1}
    assert model.completions({}) == {}


def with_bandwidth(worker: float, ps: float, **changes: Any) -> oasis.Job:
    demands = {"worker": {"gpu": 1, BANDWIDTH: worker}, "ps": {"cpu": 1, BANDWIDTH: ps}}
    return builders.job("j", workers=9, **(demands | changes))


@given(st.integers(1, 9), st.integers(0, 20), st.integers(1, 11), st.integers(1, 5))
@example(-1, 0, 10, 5)  # 3e-10 of a parameter server a worker: three take none, four take one
def test_fewest_ps_are_those_of_the_best_of_all_ways_to_spread_work_over_slots(b, more, work, most):
    job = with_bandwidth(b / 7, (b + more) / 7) if b > 0 else with_bandwidth(3e-10, 1.0)
    found = []
    for number in range(1, 5):
        spread = product(range(most + 1), repeat=number)
        totals = (int(job.ps_needed(np.array(n)).sum()) for n in spread if sum(n) >= work)
        found.append(min(totals, default=0))
    assert fewest_ps(job, work, most, 4).tolist() == found
    later = fewest_ps(job, work, most, 60).tolist()  # more slots than are of use change nothing
    assert later[:4] == found
    assert later[12:] == [later[12]] * 48


def test_the_row_asks_for_what_each_completion_takes():
    """Ten worker-slots, five workers at once, four to a parameter server: 5 + 5, or 4 + 4 + 2."""
    machine = {"gpu": 9, "cpu": 9, BANDWIDTH: 90.0}
    on = builders.cluster(worker=machine, ps=machine)
    jobs = with_bandwidth(1.0, 4.0, chunks=5, minibatches=2), builders.job("k", worker={"gpu": 1})
    c, without = CountModel(OfflineArrays.of(oasis.Instance(3, on, jobs))).jobs
    assert list(ps_of_work(without)) == []
    assert (c.work, c.parallel) == (10, 5)
    (row,) = ps_of_work(c)
    servers = {z.name: 1 for z in c.ps.values()}
    done = {v.name: -n for v, n in zip(c.done.values(), (4, 3), strict=True)}
    assert {v.name: n for v, n in row.items()} == servers | done
    assert (row.getLb(), row.getUb()) == (0, None)


# -- schedules that go to HiGHS and come from it while it solves the compact model -----------------

MODEL = CompactModel(OfflineArrays.of(TINY))
OPTIMUM = solve(TINY, "bruteforce")
ONE_OF_THEM = next(iter(OPTIMUM.schedules))


def exchange() -> tuple[ScheduleExchange, SolveState]:
    state = SolveState(TINY, Budget())
    state.record_solution({}, "nothing")
    state.phase = Phase.COMPACT
    return ScheduleExchange(MODEL, state), state


def test_better_schedules_are_given_once():
    here, state = exchange()
    assert here.better(-float("inf")) is None, "what the solve began with is known"
    state.record_solution(OPTIMUM.schedules, "others")
    assert here.better(OPTIMUM.objective) is None
    values = here.better(OPTIMUM.objective / 2)
    assert values == MODEL.values_of(OPTIMUM.schedules)
    assert here.better(OPTIMUM.objective / 2) is None


def test_what_is_found_counts_once_it_is_verified():
    here, state = exchange()
    here.record(MODEL.values_of(OPTIMUM.schedules))
    assert state.incumbent == pytest.approx(OPTIMUM.objective)
    assert oasis.verify(TINY, state.schedules) == state.incumbent
    assert here.better(0.0) is None, "it came from there"


def test_what_others_found_is_given_though_worse_schedules_come_from_there():
    here, state = exchange()
    state.record_solution(OPTIMUM.schedules, "others")
    worse = {ONE_OF_THEM: OPTIMUM.schedules[ONE_OF_THEM]}
    value = oasis.verify(TINY, worse)
    assert 0 < value < OPTIMUM.objective
    here.record(MODEL.values_of(worse))
    assert state.schedules is OPTIMUM.schedules, "they are better"
    assert here.better(value) == MODEL.values_of(OPTIMUM.schedules)


def test_what_lacks_work_ends_the_solve_and_what_exceeds_a_capacity_does_not_count():
    here, state = exchange()
    values = dict(MODEL.values_of(OPTIMUM.schedules))
    workers = [v.name for c in MODEL.jobs for v in c.workers.values() if values.get(v.name)]
    values[workers[0]] -= 1.0
    with pytest.raises(oasis.SolverError, match="HiGHS returned an infeasible solution: "):
        here.record(values)
    full = {v.name: float(v.upBound) for c in MODEL.jobs for v in c.workers.values()}
    here.record(full | {next(iter(c.done.values())).name: 1.0 for c in MODEL.jobs})
    assert state.incumbent == 0.0


# -- capacities kept exactly -----------------------------------------------------------------------

HALF = 0.5 * (1.0 + 1.0013e-9)  # of a capacity: two are forgiven by HiGHS, not by `fits`
BY_ROUNDING = 0.5 * (1.0 + 1.001e-9) * (1 + 2**-52)  # the same, but by the last bit alone


def packing(
    number: int, amounts: tuple[float, ...] = (HALF, HALF)
) -> tuple[pulp.LpProblem, list[Limit]]:
    """As many units as fit on servers of one size, at most one of each item on each.

    The last item is worth most.
    """
    problem = pulp.LpProblem("servers", pulp.LpMaximize)
    units = [
        [problem.add_variable(f"n_{s}_{k}", 0, 1, pulp.LpInteger) for k in range(len(amounts))]
        for s in range(number)
    ]
    problem.setObjective(pulp.lpSum((1 + k) * v for here in units for k, v in enumerate(here)))
    limits = [Limit(1.0, amounts, tuple(here)) for here in units]
    for limit in limits:
        problem.addConstraint(limit.row())
    return problem, limits


def test_highs_forgives_what_the_verification_refuses():
    """When this fails, HiGHS may have become exact and `solve_within` may go."""
    problem, [limit] = packing(1)
    assert not limit.holds(highs.solve(problem, row_scale=highs.ROW_SCALE).values)


def answering(monkeypatch: pytest.MonkeyPatch, status: Status) -> Callable[..., Any]:
    """HiGHS always says that both units fit."""

    def solve(problem: pulp.LpProblem, **options: Any) -> Solution:
        return Solution(status, 3.0, 4.0, 1 / 3, {"n_0_0": 1.0, "n_0_1": 1.0})

    monkeypatch.setattr(highs, "solve", solve)
    return solve


def test_a_limit_that_ends_the_solve_leaves_the_bound_alone(monkeypatch):
    answering(monkeypatch, Status.TIME_LIMIT)
    problem, limits = packing(1)
    found = solve_within(problem, lambda: limits)
    assert found == Solution(Status.TIME_LIMIT, None, 4.0, math.inf, {})


@pytest.mark.parametrize("amount", [HALF, BY_ROUNDING])
def test_a_solver_that_breaks_rows_of_whole_numbers_is_an_error(monkeypatch, amount):
    answering(monkeypatch, Status.OPTIMAL)
    problem, limits = packing(1, (amount, amount))
    with pytest.raises(SolverError, match="breaks a row of whole numbers"):
        solve_within(problem, lambda: limits)


UNEVEN = (0.314159 * 2 * HALF, 0.685841 * 2 * HALF)


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("amounts", [(HALF, HALF), (BY_ROUNDING, BY_ROUNDING), UNEVEN])
def test_a_refused_solution_is_cut_off_on_every_server_at_once(amounts, number):
    """The next best is found; variables of the rows that cut off have names of their own."""
    asked, refused = list[ArrayModel](), list[None]()
    solve = highs.solve
    problem, limits = packing(number, amounts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highs, "solve", lambda m, **by: asked.append(m) or solve(m, **by))
        found = solve_within(problem, lambda: limits, lambda: refused.append(None))
    assert (found.status, found.objective) == (Status.OPTIMAL, 2.0 * number)
    assert found.objective <= found.bound <= found.objective * (1 + 2e-9) + 1e-15
    assert all(limit.holds(found.values) for limit in limits)
    assert len(refused) == 1
    assert len(problem.variables()) == 2 * number
    names = asked[-1].names
    assert len(names) == len(set(names)) == 2 * number * (1 if amounts == (HALF, HALF) else 2)


# -- covers ----------------------------------------------------------------------------------------

SIZES = st.sampled_from([1 / 2, 1 / 3, 2 / 3, 0.1, 0.314159, 0.685841, 0.25])
HAIRS = st.sampled_from([0.0, 1e-9, CAPACITY_TOLERANCE, 1.2e-9, 2e-9, 1e-3])


@st.composite
def overfull(draw: st.DrawFn) -> tuple[list[float], list[int], float]:
    """Amounts, counts that do not fit, and a capacity."""
    capacity = draw(st.sampled_from([1.0, 61.0, 0.3]))
    items = draw(st.integers(1, 4))
    factor = capacity * (1.0 + draw(HAIRS))
    amounts = [factor * draw(SIZES) for _ in range(items)]
    counts = [draw(st.integers(0, 4)) for _ in range(items)]
    while fits(amounts, counts, capacity):
        counts[0] += 1
    return amounts, counts, capacity


def below_some_level(levels: list[CapacityLevel], counts: tuple[int, ...]) -> bool:
    return any(not level.is_reached(np.array(counts)) for level in levels)


@given(overfull())
def test_what_fits_is_below_a_level_and_the_cover_is_not_but_has_no_unit_to_spare(case):
    amounts, counts, capacity = case
    cover = Cover.within(amounts, counts, capacity)
    levels = cover.levels()
    assert not below_some_level(levels, tuple(counts))
    assert not below_some_level(levels, tuple(cover.counts))
    for other in product(*(range(n + 2) for n in counts)):
        assert below_some_level(levels, other) or not fits(amounts, other, capacity)
    assert all(least <= n for least, n in zip(cover.counts, counts, strict=True))
    assert not fits(amounts, cover.counts, capacity)
    for i, n in enumerate(cover.counts):
        fewer = [*cover.counts[:i], n - 1, *cover.counts[i + 1 :]]
        assert n == 0 or fits(amounts, fewer, capacity)


@given(overfull(), st.lists(SIZES, min_size=1, max_size=3))
def test_levels_hold_for_other_items_on_the_same_capacity(case, sizes):
    amounts, counts, capacity = case
    others = [capacity * size for size in sizes] + amounts[:1]
    levels = Cover.within(amounts, counts, capacity).levels(others)
    for other in product(*(range(4) for _ in others)):
        assert not levels or below_some_level(levels, other) or not fits(others, other, capacity)


def test_equal_items_share_one_level_and_what_rounding_decides_is_cut_off_item_by_item():
    sure = Cover.within([0.5 * (1 + 1.5e-9)] * 3, [0, 1, 1], 1.0)
    [level] = sure.levels()
    assert (level.items.tolist(), level.count, sure.is_sure) == ([0, 1, 2], 2, True)
    amount = (1.0 + CAPACITY_TOLERANCE) / 2 * (1 + 2**-52)
    cover = Cover.within([amount] * 3, [1, 0, 1], 1.0)
    assert not cover.is_sure
    assert [(level.items.tolist(), level.count) for level in cover.levels()] == [([0], 1), ([2], 1)]
    assert cover.levels([amount, amount]) == []


# -- constraints of one's own ----------------------------------------------------------------------

SLOTS = 3


@st.composite
def gpu_instances(draw: st.DrawFn) -> Instance:
    """Jobs of one worker at a time on one server of two GPUs."""
    slots = st.integers(0, SLOTS - 1)
    jobs = (
        builders.job(
            f"j{k}",
            draw(slots),
            gpus=draw(st.integers(1, 2)),
            minibatches=draw(st.integers(1, SLOTS)),
            utility=Deadline(draw(st.integers(1, 9)), float(draw(slots))),
        )
        for k in range(draw(st.integers(1, 4)))
    )
    return builders.instance(*jobs, horizon=SLOTS, on=builders.cluster(gpus=2.0))


def at_most(model: OfflineModel, names: list[str], most: int) -> None:
    """In each slot at most `most` of these jobs run."""
    for slot in range(model.instance.horizon):
        runs = [model.problem.add_variable(f"{name}_{slot}", cat="Binary") for name in names]
        for name, is_on in zip(names, runs, strict=True):
            model.problem += model.workers_in(name, slot) <= model.instance.horizon * is_on
        model.problem += pulp.lpSum(runs) <= most


def enumerated(instance: Instance, together: int) -> float:
    """The most that any choice of slots earns with at most so many jobs in a slot."""
    ways = []
    for job in instance.jobs:
        sets = [
            slots
            for slots in product((0, 1), repeat=SLOTS)
            if sum(slots) == job.work(1.0) and not any(slots[: job.arrival])
        ]
        ways.append([(0,) * SLOTS, *sets])
    best = 0.0
    for chosen in product(*ways):
        used = [
            sum(job.worker["gpu"] * on[t] for job, on in zip(instance.jobs, chosen, strict=True))
            for t in range(SLOTS)
        ]
        if max(used) <= 2 and max(sum(on[t] for on in chosen) for t in range(SLOTS)) <= together:
            last = [max((t for t in range(SLOTS) if on[t]), default=None) for on in chosen]
            worth = [
                float(job.utility(t - job.arrival)) if t is not None else 0.0
                for job, t in zip(instance.jobs, last, strict=True)
            ]
            best = max(best, sum(worth))
    return best


@settings(max_examples=25, deadline=None)
@given(gpu_instances(), st.integers(1, 4))
def test_the_optimum_under_a_constraint_is_that_of_all_schedules_that_keep_it(instance, together):
    model = OfflineModel(instance)
    at_most(model, [job.id for job in instance.jobs], together)
    result = model.solve()
    assert result.status == "optimal"
    assert result.objective == pytest.approx(enumerated(instance, together))
    assert oasis.verify(instance, result) == pytest.approx(result.objective)
    for slot in range(SLOTS):
        on = [s for s in result.schedules.values() if (s.workers[:, 0] == slot).any()]
        assert len(on) <= together
    # A constraint only removes schedules: bounds of the other methods hold.
    assert result.objective <= solve(instance, method="benders").upper_bound * (1 + 1e-9)


def test_what_the_solution_has_is_not_dropped_though_the_work_needs_less():
    """The constraint asks for a worker too many, in a slot of its own."""
    instance = builders.instance(builders.job("a", 0, 2, 5.0), horizon=3)
    model = OfflineModel(instance)
    for slot in range(3):
        model.problem += model.workers_in("a", slot) >= 1
    result = model.solve()
    assert sorted(set(result.schedules["a"].workers[:, 0].tolist())) == [0, 1, 2]


def test_constraints_that_nothing_satisfies_and_unknown_jobs_and_slots_are_named():
    model = OfflineModel(builders.instance(builders.job(), horizon=1))
    with pytest.raises(InputError, match="job_id: expected the id of a job"):
        model.workers_in("b", 0)
    with pytest.raises(InputError, match="slot: expected"):
        model.workers_in("a", 1)
    model.problem += model.admitted("a") >= 2
    with pytest.raises(InputError, match="constraints: expected some schedule"):
        model.solve()
