"""Column generation: rows by class, the restricted master, pricing, cuts on single slots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.model import rounding
from oasis.model.rounding import FloatArray
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline import solve
from offline.column_generation import cutting
from offline.column_generation.bound import ConfigurationBound, configuration_bound
from offline.column_generation.cutting import CutSearch, cut_configuration_lp
from offline.column_generation.generation import ColumnGeneration
from offline.column_generation.pricing import (
    FIRST_SMOOTHING,
    MOST_SMOOTHING,
    StabilityCentre,
    empty,
    merged,
    price,
)
from offline.column_generation.restricted_master import (
    Column,
    Grouping,
    RestrictedMaster,
    SlotCut,
    SlotCuts,
    columns_of,
    levels,
    similar,
)
from offline.enumeration import fitting_counts
from offline.model.arrays import GroupArrays, OfflineArrays
from offline.params import ColumnGenerationParams
from offline.patterns import Cut, CutGenerator
from offline.state import Phase, SolveState, decide
from tests import builders
from tests.oracle.tiny import on_one_server, seeded, tiny_instance
from tests.strategies import all_instances, fewer

INSTANCE = oasis.generate("calibrated", jobs=8, worker_servers=5, ps_servers=4, horizon=8, seed=2)
ARRAYS = OfflineArrays.of(INSTANCE)
RUN, START = decide(SolveState(INSTANCE, Budget()), lambda: oasis.OASiS.from_instance(INSTANCE))
PARAMS = ColumnGenerationParams()


@given(all_instances(most_servers=4), st.integers(1, 4))
@fewer(3)
def test_usage_of_a_class_is_the_share_of_all_its_servers_and_costs_what_prices_say(
    instance, classes
):
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    total = np.zeros(grouping.size)
    duals = np.random.default_rng(0).random(grouping.size)
    worker, ps = grouping.prices(duals)
    is_there = [
        np.tile(rows.total > 0, (arrays.horizon, 1, 1)) for rows in (grouping.worker, grouping.ps)
    ]
    has_any = np.concatenate([part.ravel() for part in is_there])
    np.testing.assert_allclose(grouping.duals(worker, ps), np.where(has_any, duals, 0.0))
    cost = 0.0
    for k, job in enumerate(instance.jobs):
        if job.id in run.schedules:
            schedule = run.schedules[job.id]
            rows, shares = grouping.usage(k, schedule)
            total[rows] += shares
            for prices, table, demand in (
                (worker, schedule.workers, arrays.worker.demand[k]),
                (ps, schedule.ps, arrays.ps.demand[k]),
            ):
                cost += sum(n * float(prices[t, s] @ demand) for t, s, n in table.tolist())
    assert (total <= 1 + 1e-9).all()  # feasible schedules satisfy the rows of every grouping
    assert total @ duals == pytest.approx(cost)  # and cost what their rows say


def test_ctrl_c_in_the_lp_ends_the_solve_there():
    seen = list[str]()

    def interrupt(progress):
        seen.append(progress.phase)
        if seen.count(Phase.CONFIGURATION_LP) == 3:
            raise KeyboardInterrupt

    result = solve(INSTANCE, "colgen", work_limit=5.0, on_progress=interrupt)
    assert (result.status, seen[-1]) == (Status.INTERRUPTED, Phase.CONFIGURATION_LP)


def test_groupings_get_finer_and_end_with_identical_servers():
    sizes = [grouping.size for grouping in levels(ARRAYS, (1, 2))]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == Grouping.of(ARRAYS).size
    assert similar(ARRAYS.worker, 1).max() == 0
    # They have equal parts of the first resource, but not of the others.
    two = GroupArrays(np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]]), np.zeros((0, 3)), 3)
    assert similar(two, 2).max() == 1


def test_the_master_is_worth_the_best_mix_of_its_columns():
    columns = columns_of(ARRAYS, RUN.schedules)
    master = RestrictedMaster(Grouping.of(ARRAYS))
    assert master.add(columns) == len(columns)
    assert master.add(columns) == 0
    solution = master.solve(Budget())
    assert solution is not None
    assert solution.value == pytest.approx(RUN.total_utility)  # they fit together
    assert solution.value == pytest.approx(solution.duals.sum() + solution.payoffs.sum())
    master.keep_best(solution, 0)
    assert not master.columns
    assert Column.of(ARRAYS, columns[0].job, columns[0].schedule).key == columns[0].key


def test_the_centre_moves_to_better_prices_and_smooths_by_the_subgradient():
    centre = StabilityCentre(START.prices.worker, START.prices.ps)
    centre.restart()
    assert (centre.bound, centre.smoothing) == (math.inf, FIRST_SMOOTHING)
    for is_beyond, end in ((True, MOST_SMOOTHING), (False, 0.0)):
        seen = [centre.smoothing]
        for _ in range(100):
            centre.adapt(is_idle=False, is_beyond=is_beyond)
            seen.append(centre.smoothing)
        assert seen == sorted(seen, reverse=not is_beyond)
        assert seen[1] != seen[0]
        assert seen[-1] == pytest.approx(end)
    centre.move((START.prices.worker * 2, START.prices.ps), 5.0)
    assert centre.bound == 5.0


def test_a_generation_ends_with_the_lp_solved_from_any_prices():
    bounds = []
    for factor in (1.0, 0.0, 100.0):
        state = SolveState(INSTANCE, Budget())
        generation = ColumnGeneration(ARRAYS, Budget(), state, PARAMS)
        prices = type(START.prices)(START.prices.worker * factor, START.prices.ps * factor, {})
        generation.run(prices, ())
        assert generation.status is Status.OPTIMAL
        assert generation.centre.bound == state.bound
        bounds.append(generation.centre.bound)
    assert bounds == pytest.approx([configuration_bound(INSTANCE).bound] * 3, rel=1e-5)


# -- classes of servers ----------------------------------------------------------------------------


@given(all_instances(most_servers=4), st.integers(1, 4), st.integers(0, 10**6))
@fewer(2)
def test_payoffs_are_those_of_single_servers_at_the_same_prices(instance, classes, seed):
    """At random prices of classes, some of them 0."""
    arrays = OfflineArrays.of(instance)
    grouping = Grouping.of(arrays, classes)
    rng = np.random.default_rng(seed)
    most = max(float(job.utility(0)) for job in instance.jobs)
    duals = most * rng.random(grouping.size) * (rng.random(grouping.size) < 0.7)
    by_class, by_server = merged(grouping, duals), empty(arrays, *grouping.prices(duals))
    for index, job in enumerate(instance.jobs):
        payoff, schedule = price(job, by_class)
        assert payoff == pytest.approx(price(job, by_server)[0], rel=1e-9, abs=1e-9 * most)
        if schedule is not None:
            oasis.verify(instance, {job.id: schedule})
            rows, shares = grouping.usage(index, schedule)
            worth = arrays.utility(index, schedule.completion)
            assert payoff == pytest.approx(worth - duals[rows] @ shares, rel=1e-9, abs=1e-9 * most)


# -- the method ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "chunks", "utility"),
    [
        (5, 1, oasis.Constant(10.0)),  # no server holds a worker
        (4, 3, oasis.Deadline(1e6, 1)),  # no job completes in time
        (4, 1, oasis.Constant(0.0)),  # no job is worth anything
    ],
)
def test_that_nothing_can_be_earned_is_proven_in_a_few_rounds(demand, chunks, utility):
    changes = {"worker": {"gpu": demand}, "chunks": chunks, "utility": utility}
    instance = builders.instance(*(builders.job(name, **changes) for name in "ab"), horizon=4)
    bound = configuration_bound(instance)
    assert (bound.status, bound.bound) == (Status.OPTIMAL, 0.0)
    assert len(bound.rounds) <= 20
    result = solve(instance, "colgen", time_limit=None)
    assert (result.status, result.objective, result.upper_bound) == (Status.OPTIMAL, 0.0, 0.0)
    assert result.gap == 0.0


# -- cuts on single slots --------------------------------------------------------------------------

SEEDS = range(20)
BANDWIDTH = "bandwidth_gbps"


def crowded(seed: int) -> oasis.Instance:
    """Jobs that each take a large part of a server, of those for workers or the others."""
    pick = seeded(seed)
    sides = [
        tuple(
            oasis.Server(f"{side}{k}", {"gpu": pick([3.0, 4.0]), "cpu": 4.0, BANDWIDTH: 9.0})
            for k in range(number)
        )
        for side, number in (("w", pick([1, 2])), ("p", pick([1, 2])))
    ]
    jobs = tuple(
        builders.job(
            f"j{k}",
            pick([0, 0, 1]),
            workers=pick([1, 1, 2]),
            worker={"gpu": pick([1.0, 1.6, 2.1, 2.5]), "cpu": 1.5, BANDWIDTH: 1.0},
            ps={"cpu": pick([1.0, 1.7, 2.3]), BANDWIDTH: pick([1.0, 2.0])},
            utility=oasis.Constant(pick([3.0, 4.0, 5.0])),
        )
        for k in range(4)
    )
    return oasis.Instance(2, oasis.Cluster(("gpu", "cpu", BANDWIDTH), *sides, 1.0), jobs)


def cut(instance: oasis.Instance) -> tuple[ConfigurationBound, SolveState, SlotCuts]:
    """The plain bound, the state after the cuts, and these."""
    arrays = OfflineArrays.of(instance)
    bound = configuration_bound(instance)
    state = SolveState(instance, Budget())
    state.record_bound(bound.bound)
    return bound, state, cut_configuration_lp(arrays, bound, state, state.budget)


def heaviest(instance: oasis.Instance, weights: SlotCut) -> float:
    """The most that counts weigh which fit on the servers together."""
    jobs = list(weights.weights)
    most = [instance.jobs[k].chunks for k in jobs]
    fitting = fitting_counts([instance.jobs[k] for k in jobs], most, instance.cluster)
    return max(
        sum(float(weights.weights[k][n]) for k, n in zip(jobs, counts, strict=True))
        for counts in fitting
    )


def weighed(instances: Iterable[oasis.Instance]) -> tuple[list[float], int]:
    """Weight of the heaviest counts that fit in each cut; number of bounds that cuts lower."""
    weights, lowered = [], 0
    for instance in instances:
        bound, state, cuts = cut(instance)
        best = solve(instance, "bruteforce").objective
        assert best * (1 - 1e-9) <= state.bound <= bound.bound * (1 + 1e-9)
        lowered += state.bound < bound.bound * (1 - 1e-3)
        weights += [heaviest(instance, found) for found in cuts.cuts]
    assert max(weights) <= 1 + 1e-7
    return weights, lowered


def test_every_cut_holds_for_all_counts_that_fit_and_a_broken_one_does_not():
    """The same weights with half the right-hand side are what a broken separation would give."""
    weights, lowered = weighed(map(crowded, SEEDS))
    assert len(weights) >= 20
    assert lowered >= 9
    assert max(weights) > 0.99, "cuts that nothing reaches are weak"
    assert any(2 * weight > 1 + 1e-7 for weight in weights)


@pytest.mark.nightly
def test_every_cut_holds_on_many_more_instances():
    weights, lowered = weighed(map(crowded, range(1000, 1400)))
    assert lowered > 100
    assert len(weights) > lowered
    weighed(tiny_instance(seeded(seed)) for seed in range(400))


def test_the_surcharge_of_counts_is_part_of_the_cheapest_schedule():
    """Against all vectors of counts, for dual values drawn at random."""
    checked = 0
    for seed in range(30):
        instance = tiny_instance(seeded(seed), jobs=2, horizon=4)
        arrays = OfflineArrays.of(instance)
        rng = np.random.default_rng(seed)
        cuts = SlotCuts(arrays)
        for slot in range(instance.horizon):
            weights = {
                k: np.concatenate([[0.0], np.sort(rng.random(job.chunks))])
                for k, job in enumerate(instance.jobs)
            }
            cuts.add(SlotCut(slot, weights))
        duals = rng.random(instance.horizon) * (rng.random(instance.horizon) < 0.7)
        grouping = Grouping.of(arrays)
        ledger = merged(grouping, np.zeros(grouping.size))
        ledger.changes[cuts.changes(duals)] = True
        for k, job in enumerate(instance.jobs):
            surcharge = cuts.surcharge(k, duals)
            payoff, schedule = price(job, ledger, [surcharge])
            table = np.zeros((instance.horizon, job.chunks + 1)) if surcharge is None else surcharge
            expected = _best_payoff(arrays, k, table)
            assert payoff == pytest.approx(max(0.0, expected), abs=1e-9)
            if schedule is not None:
                checked += 1
                numbers, shares = cuts.usage(k, schedule)
                paid = float(duals[numbers] @ shares)
                assert arrays.utility(k, schedule.completion) - paid == pytest.approx(payoff)
    assert checked > 20


def _best_payoff(arrays: OfflineArrays, job: int, surcharge: FloatArray) -> float:
    """Utility minus surcharges of the best of all vectors of counts, resources being free."""
    owner = arrays.jobs[job]
    room = rounding.units(arrays.worker.capacity, arrays.worker.demand[job], owner.chunks).sum()
    ps_room = rounding.units(arrays.ps.capacity, arrays.ps.demand[job], owner.chunks).sum()
    most = max(n for n in range(owner.chunks + 1) if n <= room and owner.ps_needed(n) <= ps_room)
    slots = range(owner.arrival, arrays.horizon)
    work = owner.work(arrays.slot_seconds)
    best = -np.inf
    for counts in product(range(most + 1), repeat=len(slots)):
        if sum(counts) >= work:
            last = max(slot for slot, n in zip(slots, counts, strict=True) if n)
            paid = sum(surcharge[slot, n] for slot, n in zip(slots, counts, strict=True))
            best = max(best, arrays.utility(job, last) - float(paid))
    return best


def test_jobs_that_share_a_server_in_fractions_no_longer_do_and_the_method_says_so():
    """Two jobs that each need three GPUs of the only server, which has four, in the only slot."""
    instance = on_one_server([3.0, 3.0], [10.0, 9.0])
    bound, state, cuts = cut(instance)
    assert bound.bound == pytest.approx(10.0 + 9.0 / 3, rel=1e-5)
    assert state.bound == pytest.approx(10.0, rel=1e-5)
    assert len(cuts) == 1
    result = solve(instance, "colgen", work_limit=5.0)
    assert result.parameters["cuts"] == 1
    assert result.objective == pytest.approx(10.0)
    assert result.bound_by == "cuts on single slots"


# -- when cuts are looked for, and when it ends ----------------------------------------------------

SLOTS = 3
# Of these four jobs, only one at a time fits on the only server.
FOUR_JOBS = on_one_server([2.5, 2.7, 2.9, 3.1], [10.0] * 4, SLOTS)
ONE_AT_A_TIME = OfflineArrays.of(FOUR_JOBS)


def averages(*busy: tuple[int, int, int]) -> dict[str, FloatArray]:
    """In each given slot, two jobs share the server in fractions: two thirds of each."""
    workers = np.zeros((SLOTS, 4))
    for slot, one, other in busy:
        workers[slot, [one, other]] = 2 / 3
    return {"worker": workers, "ps": np.zeros((SLOTS, 4))}


@pytest.fixture
def separated(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """The counts for which new cuts are looked for."""
    asked: list[FloatArray] = []
    original = CutGenerator.separate

    def separate(self: CutGenerator, counts: FloatArray, budget: Budget) -> Any:
        asked.append(counts)
        return original(self, counts, budget)

    monkeypatch.setattr(CutGenerator, "separate", separate)
    return asked


def weight(cut: SlotCut, counts: dict[str, FloatArray]) -> float:
    """Weight in a cut of average counts of workers, at most one each."""
    row = counts["worker"][cut.slot]
    return float(sum(row[k] * weights[1] for k, weights in cut.weights.items()))


def test_a_cut_found_in_one_slot_is_tried_in_all_before_others_are_looked_for(
    separated, monkeypatch
):
    monkeypatch.setattr(cutting, "ENOUGH", 1)
    search = CutSearch(ONE_AT_A_TIME)
    (first,) = search.cuts(averages((0, 0, 1)), Budget())
    assert first.slot == 0
    separated.clear()
    (second,) = search.cuts(averages((2, 0, 1)), Budget())
    assert second.slot == 2
    assert second.weights.keys() == first.weights.keys()
    assert separated == []


@pytest.mark.parametrize("is_lifted", [True, False])
def test_every_cut_is_violated_by_the_counts_that_it_was_found_for(monkeypatch, is_lifted):
    """One cut for all jobs, or one for the first two and another for the others."""
    if not is_lifted:
        monkeypatch.setattr(
            CutGenerator, "separate", lambda _, counts, __: Cut(counts) if counts.any() else None
        )
    search = CutSearch(ONE_AT_A_TIME)
    counts = averages((0, 0, 1), (1, 2, 3))
    counts["worker"] *= 1.2
    found = search.cuts(counts, Budget())
    assert [cut.slot for cut in found] == [0, 1]
    assert all(weight(cut, counts) > 1.1 for cut in found)
    assert (found[0].weights.keys() == found[1].weights.keys()) == is_lifted


def test_a_search_that_took_long_ends_with_what_it_found_and_the_next_one_goes_on_from_there(
    monkeypatch,
):
    """No limit ends a search that has found nothing."""
    monkeypatch.setattr(
        CutGenerator, "separate", lambda _, counts, __: Cut(counts) if counts.any() else None
    )
    monkeypatch.setattr(cutting, "SEARCH_LIMIT", 0.0)
    search = CutSearch(ONE_AT_A_TIME)
    counts = averages((1, 0, 1), (2, 2, 3))
    counts["worker"] *= 1.2
    ends, slots = [search.is_complete], []
    for _ in range(2):
        slots.append([cut.slot for cut in search.cuts(counts, Budget())])
        ends.append(search.is_complete)
    assert slots == [[1], [2]]
    assert search.cuts(averages(), Budget()) == []
    assert [*ends, search.is_complete] == [True, False, False, True]


def rounds(
    monkeypatch: pytest.MonkeyPatch, values: Sequence[float], patience: int, least: float
) -> int:
    """Number of LP solves with these values, if there is always another cut."""
    left = list(values)

    def refine(self: ColumnGeneration, *_: Any) -> bool:
        self.value = left.pop(0)
        return True

    state = SolveState(FOUR_JOBS, Budget())
    bound = configuration_bound(FOUR_JOBS)
    monkeypatch.setattr(ColumnGeneration, "refine", refine)
    monkeypatch.setattr(CutSearch, "cuts", lambda *_: [SlotCut(0, {0: np.array([0.0, 0.1])})])
    monkeypatch.setattr(cutting, "PATIENCE", patience)
    monkeypatch.setattr(cutting, "LEAST_PROGRESS", least)
    cut_configuration_lp(ONE_AT_A_TIME, bound, state, state.budget)
    return len(values) - len(left) - 1  # the last one is without new cuts


def test_rounds_that_have_not_looked_at_all_slots_do_not_end_it(monkeypatch):
    monkeypatch.setattr(CutSearch, "is_complete", property(lambda _: False, lambda *_: None), False)
    with pytest.raises(IndexError):  # it asks for more values than there are
        rounds(monkeypatch, (10.0, 10.0, 10.0, 0.0), 1, least=0.1)


@pytest.mark.parametrize(
    ("values", "patience", "expected"),
    [
        ((100.0, 50.0, 44.0, 44.0, 0.0), 1, 4),  # 6 of 44 is more than a tenth
        ((10.0, 8.0, 8.0, 8.0, 0.0), 2, 4),  # in two rounds it fell
        ((10.0, 10.0, 0.0), 1, 2),
    ],
)
def test_it_ends_when_the_bound_hardly_falls_any_more(monkeypatch, values, patience, expected):
    assert rounds(monkeypatch, values, patience, least=0.1) == expected
