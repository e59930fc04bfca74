"""Counts of one slot on servers: placements, the heaviest workers, and the work spent on a cut."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis import Cluster, Constant, Instance, Job, Server
from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.budget import Budget
from offline import patterns
from offline.benders import subproblem
from offline.benders.master import CountModel
from offline.benders.slot_model import SlotModel, Units
from offline.benders.subproblem import place
from offline.enumeration import fitting_counts
from offline.model.arrays import GROUPS, OfflineArrays
from offline.patterns import CLEAR, CLOSE, Cut, CutGenerator, PatternPool, classes
from tests.strategies import fewer


def job(name: str, gpus: float, gbps: float = 1.0, of_ps: float = 2.0, most: int = 4) -> Job:
    """Workers take these GPUs and Gbit/s; parameter servers one GPU and `of_ps` Gbit/s."""
    worker = {"gpu": gpus, "bandwidth_gbps": gbps}
    ps = {"gpu": 1.0, "bandwidth_gbps": of_ps}
    return Job(name, 0, 1, most, 1, 1.0, 0.0, worker, ps, Constant(1.0))


def slots_of(jobs: list[Job], servers: list[float], hosts: list[float]) -> SlotModel:
    """Worker servers and hosts of this many GPUs, with bandwidth to spare."""
    groups = (
        tuple(Server(f"{kind}{k}", {"gpu": n, "bandwidth_gbps": 99.0}) for k, n in enumerate(rooms))
        for kind, rooms in (("w", servers), ("p", hosts))
    )
    cluster = Cluster(("gpu", "bandwidth_gbps"), *groups, 1.0)
    return SlotModel(CountModel(OfflineArrays.of(Instance(9, cluster, tuple(jobs)))))


def check_feasible(slots: SlotModel, units: Units, most: list[int]) -> None:
    """(3)-(7) of the slot."""
    workers, ps = (units[group].sum(axis=1) for group in GROUPS)
    assert (workers <= most).all()
    assert (slots.ps_of(workers) <= ps).all()
    assert (ps <= workers).all()
    for group in GROUPS:
        used = units[group].T @ slots.model.demand(group)
        assert (used <= slots.model.capacity(group) * (1 + 1e-9)).all()


def test_workers_whose_parameter_servers_found_no_host_are_left_out():
    """Five workers ask for three parameter servers; two of these serve four workers."""
    slots = slots_of([job("a", 1.0, most=5)], [3.0, 2.0], [2.0])
    units = slots.consistent({"worker": np.array([[3, 2]]), "ps": np.array([[2]])})
    assert (units["worker"].tolist(), units["ps"].tolist()) == ([[3, 1]], [[2]])
    spare = slots.consistent({"worker": np.array([[1, 0]]), "ps": np.array([[2]])})
    assert (spare["worker"].tolist(), spare["ps"].tolist()) == ([[1, 0]], [[1]])


def test_no_unit_of_the_lightest_worker_is_missed(monkeypatch):
    """Heavier workers may be missed by a share of what the lightest one asked for weighs."""
    gaps: list[float] = []
    solve = highs.solve
    monkeypatch.setattr(
        highs, "solve", lambda *given, **by: gaps.append(by["gap"]) or solve(*given, **by)
    )
    slots = slots_of([job("a", 1.0), job("b", 1.0), job("c", 1.0)], [4.0], [4.0])
    slots.best(np.array([1, 1, 0]), np.array([8.0, 2.0, 0.5]), slots.empty(), Budget(), 0.5)
    assert gaps == [1.0]


def test_nothing_is_returned_where_nothing_was_found(monkeypatch):
    late = Solution(Status.TIME_LIMIT, None, 9.0, np.inf, {})
    monkeypatch.setattr(highs, "solve", lambda *_, **__: late)
    slots = slots_of([job("a", 1.0)], [4.0], [1.0])
    assert slots.best(np.array([1]), np.ones(1), slots.empty(), Budget(), 0.0) is None


@fewer(4)
@given(
    items=st.lists(
        st.tuples(
            st.sampled_from([1.0, 2.0, 3.0]),
            st.sampled_from([0.0, 1.0, 1.5]),
            st.integers(0, 3),
            st.sampled_from([1.0, 1.7, 4.0]),
        ),
        min_size=1,
        max_size=3,
    ),
    servers=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    hosts=st.lists(st.integers(0, 2), min_size=1, max_size=2),
    data=st.data(),
)
def test_no_units_are_heavier_than_the_heaviest_and_none_lighter_than_the_start(
    items, servers, hosts, data
):
    jobs = [job(f"j{k}", gpus, gbps) for k, (gpus, gbps, _, _) in enumerate(items)]
    slots = slots_of(jobs, [float(n) for n in servers], [float(n) for n in hosts])
    chosen = [int(c.job.id[1:]) for c in slots.model.jobs]
    if not chosen:
        return
    weights = np.array([items[k][3] for k in chosen])
    most = [min(items[k][2], c.parallel) for k, c in zip(chosen, slots.model.jobs, strict=True)]
    cluster = slots.model.arrays.cluster
    fitting = fitting_counts([c.job for c in slots.model.jobs], most, cluster)
    heaviest = max(fitting, key=lambda counts: float(weights @ counts))
    for counts in (heaviest, data.draw(st.sampled_from(sorted(fitting)))):
        placed = fitting[counts]
        known = {"worker": np.array(placed.workers), "ps": np.array(placed.ps)}
        units = slots.best(np.array(most), weights, known, Budget(), 0.0)
        assert units is not None
        check_feasible(slots, units, most)
        weight = float(weights @ units["worker"].sum(axis=1))
        assert float(weights @ counts) - 1e-9 <= weight <= float(weights @ heaviest) + 1e-9


# -- counts on servers -----------------------------------------------------------------------------


def test_ctrl_c_while_counts_are_placed_is_not_swallowed(monkeypatch):
    stopped = Solution(Status.INTERRUPTED, None, 0.0, np.inf, {})
    monkeypatch.setattr(highs, "solve", lambda *_, **__: stopped)
    room = np.full((2, 1), 3.0)
    with pytest.raises(KeyboardInterrupt):
        place(room, np.array([[2.0]]), np.array([3]), Budget())
    slots = slots_of([job("a", 1.0)], [4.0], [1.0])
    with pytest.raises(KeyboardInterrupt):
        slots.best(np.array([1]), np.ones(1), slots.empty(), Budget(), 0.0)


def most_worth(room: FloatArray, demand: FloatArray, counts: list[int], worth: FloatArray) -> float:
    """The best value of any placement, by trying all of them."""
    best = 0.0
    for choice in product(*(range(n + 1) for n in counts for _ in room)):
        units = np.array(choice).reshape(len(counts), len(room))
        if (units.T @ demand <= room + 1e-9).all() and (units.sum(axis=1) <= counts).all():
            best = max(best, float(worth @ units.sum(axis=1)))
    return best


@fewer(4)
@given(
    capacity=st.lists(st.integers(0, 5), min_size=1, max_size=2),
    items=st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from([1.0, 2.5])),
        min_size=1,
        max_size=3,
    ),
)
def test_no_placement_is_worth_more_and_each_search_agrees(capacity, items):
    room = np.array(capacity, float)[:, None]
    demand = np.array([[float(size)] for size, _, _ in items])
    counts = [count for _, count, _ in items]
    worth = np.array([value for _, _, value in items])
    best = most_worth(room, demand, counts, worth)
    known = room, demand, np.array(counts), Budget(), worth
    for search, proof in ((place, True), (subproblem._by_servers, Status.OPTIMAL)):
        units, is_proven = search(*known)
        assert (units >= 0).all()
        assert (units.T @ demand <= room * (1 + 1e-9) + 1e-9).all()
        assert is_proven == proof
        assert float(worth @ units.sum(axis=1)) == pytest.approx(best)


# -- the work spent on a cut -----------------------------------------------------------------------

SEEDS = range(40)


def generator_of(seed: int, items: int = 4) -> CutGenerator:
    """Two or three servers with two resources, and items that ask for some of each."""
    rng = np.random.default_rng(seed)
    capacity = rng.choice([1.0, 2.0, 3.0, 4.1], (int(rng.integers(2, 4)), 2))
    demand = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0, 1.3], (items, 2))
    demand[~demand.any(axis=1), 0] = 0.5
    pool = PatternPool(*classes(capacity, None), demand, rng.integers(1, 6, items))
    return CutGenerator(pool)


def one_server(demand: float, most: int) -> PatternPool:
    """Of one unit, for one item."""
    return PatternPool(*classes(np.ones((1, 1)), None), np.full((1, 1), demand), np.array([most]))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_rounds_of_knapsacks_than_allowed(monkeypatch, most):
    asked: list[Any] = []
    best = PatternPool.best
    monkeypatch.setattr(PatternPool, "best", lambda *given: asked.append(given) or best(*given))
    monkeypatch.setattr(patterns, "QUICK_GAIN", 0.0)
    needed = set()
    for seed in SEEDS:
        served = generator_of(seed)
        asked.clear()
        served._deepest(served.pool.most * 1.0, 1.0, most, Budget())
        needed.add(len(asked))
    assert max(needed) == most


def fits(pattern: IntArray, demand: FloatArray, capacity: FloatArray) -> bool:
    return bool((pattern @ demand <= capacity * (1 + 1e-9)).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guessed_pattern_leaves_no_room_and_a_filled_one_is_worth_no_less(seed):
    pool = generator_of(seed).pool
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4)
    found = zip(pool.guess(weights), pool.best(weights, Budget()), pool.capacity, strict=True)
    for guess, (bound, pattern), capacity in found:
        assert (guess[weights == 0.0] == 0).all()
        for units in (guess, pattern):
            assert (units <= pool.most).all()
            assert fits(units, pool.demand, capacity)
        for i in np.flatnonzero((weights > 0) & (guess < pool.most)):
            assert not fits(guess + np.eye(4, dtype=np.int64)[i], pool.demand, capacity)
        assert guess @ weights <= pattern @ weights + 1e-9 <= bound + 2e-9
        assert bound <= pattern @ weights * (1 + 1e-8)


@pytest.mark.parametrize("excess", [-5e-11, 5e-11])
def test_a_pattern_that_rounding_could_save_is_added_up_exactly(excess):
    """Two units are above or below what is forgiven by half of what counts as close to it."""
    pool = one_server(0.5 * (1.0 + CAPACITY_TOLERANCE) * (1.0 + excess), 2)
    assert abs(excess) < CLOSE
    assert pool._fits(0, np.array([2])) == (excess < 0)


def test_a_cut_is_violated_beyond_rounding_and_new_from_a_clear_excess_on():
    cut = Cut(np.array([0.5, 0.25]))
    for more, is_violated in ((0.0, False), (3e-6, False), (1e-5, True)):
        assert cut.is_violated(np.array([2.0, more])) == is_violated
    served = CutGenerator(one_server(1.0, 3))
    assert served.separate(np.array([1.0 + 0.5 * CLEAR]), Budget()) is None
    assert served.separate(np.array([1.0 + 2.0 * CLEAR]), Budget()) is not None
