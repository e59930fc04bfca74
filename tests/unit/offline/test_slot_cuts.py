"""Cuts on single slots: valid for all counts that fit; the bound falls, not below the optimum.

The oracle is the enumeration of all counts that the servers hold together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import oasis
from oasis.model import rounding
from oasis.model.rounding import FloatArray
from oasis.solvers.budget import Budget
from offline import configuration_bound, solve
from offline.column_generation.bound import ConfigurationBound
from offline.column_generation.cutting import CutSearch, cut_configuration_lp
from offline.column_generation.pricing import merged, price
from offline.column_generation.restricted_master import (
    Grouping,
    RestrictedMaster,
    SlotCut,
    SlotCuts,
    workers_by_slot,
)
from offline.enumeration import fitting_counts
from offline.model.arrays import OfflineArrays
from offline.patterns import Cut
from offline.state import SolveState
from tests.oracle.tiny import on_one_server, seeded, tiny_instance

SEEDS = range(20)


def two_for_one(jobs: int = 2) -> oasis.Instance:
    """Jobs that each need three GPUs of the only server, which has four, in the only slot."""
    return on_one_server([3.0] * jobs, [10.0 - k for k in range(jobs)])


def crowded(seed: int) -> oasis.Instance:
    """Jobs that each take a large part of a server, of those for workers or the others."""
    pick = seeded(seed)
    names = ("gpu", "cpu", "bandwidth_gbps")
    servers = [
        oasis.Server(f"{side}{k}", {"gpu": pick([3.0, 4.0]), "cpu": 4.0, "bandwidth_gbps": 9.0})
        for side, number in (("w", pick([1, 2])), ("p", pick([1, 2])))
        for k in range(number)
    ]
    workers, ps = (tuple(s for s in servers if s.id[0] == side) for side in "wp")
    jobs = tuple(
        oasis.Job(
            id=f"j{k}",
            arrival=pick([0, 0, 1]),
            epochs=1,
            chunks=pick([1, 1, 2]),
            minibatches=1,
            minibatch_time=1.0,
            gradient_mb=0.0,
            worker={"gpu": pick([1.0, 1.6, 2.1, 2.5]), "cpu": 1.5, "bandwidth_gbps": 1.0},
            ps={"cpu": pick([1.0, 1.7, 2.3]), "bandwidth_gbps": pick([1.0, 2.0])},
            utility=oasis.Constant(pick([3.0, 4.0, 5.0])),
        )
        for k in range(4)
    )
    return oasis.Instance(2, oasis.Cluster(names, workers, ps, slot_seconds=1.0), jobs)


def cut(instance: oasis.Instance) -> tuple[ConfigurationBound, SolveState, SlotCuts]:
    """The plain bound, the state after the cuts, and these."""
    arrays = OfflineArrays.of(instance)
    bound = configuration_bound(instance)
    state = SolveState(Budget())
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


def test_jobs_that_share_a_server_in_fractions_no_longer_do() -> None:
    bound, state, cuts = cut(two_for_one())
    assert bound.bound == pytest.approx(10.0 + 9.0 / 3, rel=1e-5)
    assert state.bound == pytest.approx(10.0, rel=1e-5)
    assert len(cuts) == 1


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


def test_every_cut_holds_for_all_counts_that_fit_and_a_broken_one_does_not() -> None:
    """The same weights with half the right-hand side are what a broken separation would give."""
    weights, lowered = weighed(map(crowded, SEEDS))
    assert len(weights) >= 20
    assert lowered >= 9
    assert max(weights) > 0.99, "cuts that nothing reaches are weak"
    assert any(2 * weight > 1 + 1e-7 for weight in weights)


@pytest.mark.nightly
def test_every_cut_holds_on_many_more_instances() -> None:
    weights, lowered = weighed(map(crowded, range(1000, 1400)))
    assert lowered > 100
    assert len(weights) > lowered
    weighed(tiny_instance(seeded(seed)) for seed in range(400))


def test_a_cut_that_is_too_strong_shows_as_a_bound_below_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = CutSearch._row

    def too_strong(self: CutSearch, group: str, slot: int, number: int) -> SlotCut:
        found = original(self, group, slot, number)
        return replace(found, weights={k: 1.5 * w for k, w in found.weights.items()})

    monkeypatch.setattr(CutSearch, "_row", too_strong)
    _, state, _ = cut(two_for_one())
    assert state.bound < 10.0 * (1 - 1e-3)


def test_the_surcharge_of_counts_is_part_of_the_cheapest_schedule() -> None:
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


def test_a_cut_is_the_same_before_and_after_the_columns() -> None:
    instance = oasis.generate(
        "calibrated", jobs=6, worker_servers=3, ps_servers=3, horizon=8, seed=4
    )
    arrays = OfflineArrays.of(instance)
    columns = configuration_bound(instance).columns
    before, after = (RestrictedMaster(Grouping.of(arrays)) for _ in range(2))
    after.add(columns)
    plain = after.solve(Budget())
    assert plain is not None
    busy = sum(
        weight * workers_by_slot(column.schedule, instance.horizon)
        for column, weight in zip(after.columns, plain.weights.tolist(), strict=True)
    )
    slot = int(np.argmax(busy))
    half = Cut(np.full(len(instance.jobs), 2 / float(np.max(busy))))
    row = SlotCut.of_counts(arrays, "worker", half, slot)
    before.cut(row)
    before.add(columns)
    after.cut(row)
    one, other = before.solve(Budget()), after.solve(Budget())
    assert one is not None
    assert other is not None
    assert one.value == pytest.approx(other.value)
    assert one.value < plain.value
    assert len(one.duals) == before.size == before.grouping.size + 1
    assert other.value == pytest.approx(other.duals.sum() + other.payoffs.sum())


def test_counts_of_parameter_servers_are_weighed_by_workers() -> None:
    instance = oasis.generate("calibrated", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    arrays = OfflineArrays.of(instance)
    row = SlotCut.of_counts(arrays, "ps", Cut(np.array([0.5, 0.0, 0.25])), 3)
    assert sorted(row.weights) == [0, 2]
    job = instance.jobs[2]
    assert row.weights[2].tolist() == [0.25 * int(job.ps_needed(n)) for n in range(job.chunks + 1)]


def test_workers_of_a_slot_are_added_up() -> None:
    rows = np.array([[1, 0, 2], [1, 3, 1], [2, 0, 4]])
    schedule = oasis.Schedule("j", rows, rows[:0])
    assert workers_by_slot(schedule, 4).tolist() == [0, 3, 4, 0]


def test_the_method_says_how_many_cuts_there_were() -> None:
    result = solve(two_for_one(), "colgen", work_limit=5.0)
    assert result.parameters["cuts"] == 1
    assert result.objective == pytest.approx(10.0)
    assert result.bound_by == "cuts on single slots"
