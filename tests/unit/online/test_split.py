"""The fast split of work over slots against its recurrence: random, tied and degenerate costs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from oasis.online.dp import best_split, smallest_cost, smallest_factor
from oasis.online.dp.lagrangian import _Moves, repair
from tests.builders import nightly
from tests.oracle.textbook_split import FloatArray, cheapest_moves, costs, payoffs

IntArray = npt.NDArray[np.int64]
Rng = np.random.Generator

SHARES = (1e-3, 0.07, 1 / 7.3, 0.25, 1 / 3, 0.45, 0.8, 1.0)  # b / B


def runs(table):
    """The rows of runs of equal slots, and their lengths."""
    first = np.flatnonzero(np.r_[True, (table[1:] != table[:-1]).any(axis=1)])
    return table[first], np.diff(np.r_[first, len(table)])


def fits(table):
    return int((np.isfinite(table).sum(axis=1) - 1).sum())


def stepped_row(rng, most, levels, share, step_levels):
    """Cheapest servers first, and ceil(k share) parameter servers; inf beyond the room."""
    room = most if rng.random() < 0.5 else int(rng.integers(0, most + 1))
    unit = np.sort(rng.choice(levels, most))
    needed = np.ceil(np.arange(most + 1) * share - 1e-9).astype(int)
    step = np.sort(rng.choice(step_levels, most + 1))
    row = np.r_[0, np.cumsum(unit)] + np.r_[0, np.cumsum(step)][needed]
    if rng.random() < 0.2:
        room = min(room, int(np.searchsorted(needed, rng.integers(0, most + 1), "right")) - 1)
    row[room + 1 :] = np.inf
    return row


def arbitrary_row(rng, most, levels):
    """Non-decreasing and nothing else."""
    row = np.r_[0, np.cumsum(rng.choice(np.r_[0, levels], most))]
    row[int(rng.integers(0, most + 2)) + 1 :] = np.inf
    return row


@dataclass(frozen=True)
class Case:
    table: FloatArray
    utility: FloatArray
    demand: int


def case(rng):
    """Few distinct slots or many, few price levels or many, down to prices that underflow."""
    slots, most = int(rng.integers(1, 26)), int(rng.choice([1, 2, 3, 5, 8, 13, 21, 30]))
    scale = rng.choice([1.0, 1e-3, 1e-9, 1e-14, 1e-300, 0.0], p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    levels, steps = [
        (rng.random(8), rng.random(8)),
        (np.array([1.0, 1.0, 2.0]), np.array([rng.choice([0.5, 3.0, 7.0])])),
        (np.array([1e-6, 1.0]), np.array([1e-3, 10.0])),
        (10 ** rng.uniform(-8, 0, 3), 10 ** rng.uniform(-8, 1, 2)),
    ][rng.integers(4)]
    share = rng.choice(SHARES)
    is_arbitrary = rng.random() < 0.2
    rows = [
        arbitrary_row(rng, most, levels)
        if is_arbitrary
        else stepped_row(rng, most, levels, share, steps)
        for _ in range(int(rng.choice([1, 2, 3, slots])))
    ]
    pick = rng.integers(0, len(rows), slots)
    table = np.array(rows)[np.sort(pick) if rng.random() < 0.5 else pick]
    finite = np.isfinite(table)
    table[finite] *= scale
    table[:, 0] = 0.0
    room = fits(table)
    demand = int(rng.choice([1, max(room, 1), room + 1, *rng.integers(1, room + 2, 3)]))
    worth = rng.choice([1.0, slots, 1e3 * slots, 1e12]) * (table[finite].max() or 1.0)
    shapes = (
        np.ones(slots),
        np.linspace(1, 0.5, slots),
        1 / (1 + np.exp(np.arange(slots) - slots / 2.0)),
        np.sort(rng.choice([0.3, 0.6, 0.9], slots))[::-1],
    )
    utility = worth * shapes[rng.integers(4)]
    if rng.random() < 0.3:
        utility[: -(-demand // most) - 1] = 0.0  # too early for the job even alone
    if rng.random() < 0.3:
        utility[int(rng.integers(0, slots)) :] = 0.0
    return Case(table, utility, demand)


def check_best(case, at_least=-np.inf):
    """The best payoff, at the earliest completion that has it, and counts that cost it."""
    value = payoffs(case.table, case.utility, case.demand)
    best = value.max()
    size = max(case.utility.max(), abs(best) if np.isfinite(best) else 0.0)
    noise = 1e-12 * size
    split = best_split(*runs(case.table), case.utility, case.demand, at_least)
    if split is None:
        assert best <= max(at_least, -1e308) + noise
        return
    assert best > at_least - noise
    assert split.payoff == pytest.approx(best, rel=0, abs=noise)
    assert split.counts.shape == case.utility.shape
    assert split.counts.min() >= 0
    assert split.counts.sum() == case.demand
    assert split.completion == np.flatnonzero(split.counts)[-1]
    paid = case.table[np.arange(len(case.table)), split.counts].sum()
    worth = case.utility[split.completion]
    assert worth - paid == pytest.approx(split.payoff, rel=0, abs=noise)
    assert not (value[: split.completion] > best + noise).any()


def check_cheapest(case):
    cost = costs(case.table, case.demand)[-1]
    split = smallest_cost(*runs(case.table), case.demand)
    if split is None:
        assert cost == np.inf
        return
    paid = case.table[np.arange(len(case.table)), split.counts].sum()
    assert split.counts.sum() == case.demand
    assert paid == pytest.approx(cost, rel=1e-12, abs=1e-300)
    assert -split.payoff == pytest.approx(cost, rel=1e-12, abs=1e-300)


def check_factor(case):
    """min over completions of cost(t) / f(t)."""
    cost = costs(case.table, case.demand)
    worthy = (case.utility > 0) & (cost < np.inf)
    factor = smallest_factor(*runs(case.table), case.utility, case.demand)
    if not worthy.any():
        assert factor is None
        return
    expected = (cost[worthy] / case.utility[worthy]).min()
    assert factor == pytest.approx(expected, rel=1e-9, abs=1e-300)


def check(case):
    check_best(case)
    check_best(case, 0.0)
    check_cheapest(case)
    check_factor(case)


@pytest.mark.parametrize("seed", [*range(20), *nightly(*range(20, 120))])
def test_equals_the_recurrence(seed):
    for i in range(100 if seed < 20 else 1000):
        check(case(np.random.default_rng([seed, i])))


@pytest.mark.parametrize("seed", range(10))
def test_earliest_of_exact_ties(seed):
    """Whole costs and utilities: equal payoffs are equal to the last bit."""
    for i in range(50):
        rng = np.random.default_rng([seed, i, 7])
        slots, most = int(rng.integers(2, 30)), int(rng.integers(1, 16))
        share = rng.choice([0.07, 1 / 7.3, 0.45, 1.0])
        rows = np.array(
            [
                stepped_row(rng, most, np.array([1.0, 2.0]), share, np.array([4.0]))
                for _ in range(int(rng.integers(1, 4)))
            ]
        )
        table = rows[np.sort(rng.integers(0, len(rows), slots))]
        demand = int(rng.integers(1, fits(table) + 2))
        utility = 1000.0 - np.floor(np.arange(slots) * rng.choice([0.0, 0.1, 0.5]))
        value = payoffs(table, utility, demand)
        split = best_split(*runs(table), utility, demand)
        if split is None:
            assert value.max() == -np.inf
        else:
            assert split.payoff == value.max()
            assert split.completion == value.argmax()


def earliest_counts(table, demand):
    """Of the cheapest splits the lexicographically largest, by the recurrence."""
    ahead = [np.r_[0.0, np.full(demand, np.inf)]]
    for row in table[::-1]:
        options = [
            [c + ahead[-1][d - n] for n, c in enumerate(row[: d + 1])] for d in range(demand + 1)
        ]
        ahead.append(np.array([min(costs) for costs in options]))
    ahead.reverse()
    counts, left, budget = [], demand, ahead[0][demand] * (1 + 1e-9)
    for t, row in enumerate(table):
        able = [
            n
            for n in range(min(left, len(row) - 1) + 1)
            if row[n] + ahead[t + 1][left - n] <= budget
        ]
        counts.append(able[-1])
        left, budget = left - able[-1], budget - row[able[-1]]
    return counts


@pytest.mark.parametrize("seed", range(10))
def test_of_equally_cheap_splits_earlier_slots_have_most_workers(seed):
    """Unit costs of which floats are no exact sums, and parameter servers that leave gaps."""
    for i in range(30):
        rng = np.random.default_rng([seed, i, 99])
        slots, most = int(rng.integers(2, 9)), int(rng.integers(1, 10))
        unit, share = rng.choice([1.0, 1.7, 0.3]), rng.choice([0.1, 0.25, 1 / 3, 0.45, 0.8])
        levels, steps = unit * np.array([1.0, 1.0, 2.0]), unit * rng.choice([0.5, 1, 3, 4], 1)
        rows = [stepped_row(rng, most, levels, share, steps) for _ in range(rng.integers(1, 4))]
        table = np.array(rows)[np.sort(rng.integers(0, len(rows), slots))]
        if room := fits(table):
            demand = int(rng.integers(1, room + 1))
            split = smallest_cost(*runs(table), demand)
            assert split is not None
            assert split.counts.tolist() == earliest_counts(table, demand)


def large(rng, slots):
    n, most = int(rng.integers(*slots)), int(rng.integers(30, 101))
    levels = rng.choice([1.0, 1.0, 1.5, 7.0, 30.0], 5) if rng.random() < 0.5 else rng.random(5)
    share = 1 / rng.uniform(1, 20)
    rows = [
        stepped_row(rng, most, levels, share, np.array([0.7, 6.0]))
        for _ in range(int(rng.choice([1, 4, 12, n])))
    ]
    table = np.array(rows)[rng.integers(0, len(rows), n)]
    demand = int(rng.integers(1, max(2, fits(table) // 2)))
    return Case(table, 1e3 * n * (1 - 0.01 * rng.random() * np.arange(n) / n), demand)


@pytest.mark.parametrize("seed", [*range(8), *nightly(*range(8, 58))])
def test_equals_the_recurrence_on_large_jobs(seed):
    for i in range(3 if seed < 8 else 10):
        check(large(np.random.default_rng([seed, i, 3]), (20, 80) if seed < 8 else (20, 200)))


def test_a_payoff_of_zero_is_not_above_zero():
    row, length = np.array([[0.0, 0.25]]), np.array([1])
    assert best_split(row, length, np.array([0.25]), 1, 0.0) is None


def test_slots_beyond_reach_do_not_hide_the_cheap_ones():
    rows = np.array([1e16 * np.arange(101.0), 0.7 * np.arange(101.0)])
    split = best_split(rows, np.array([1, 1]), np.array([105.0, 105.0]), 100, 0.0)
    assert split is not None
    assert split.payoff == pytest.approx(35.0)


def test_smallest_utility_is_sharp_although_prices_span_twelve_orders():
    rng = np.random.default_rng(0)
    steps = np.ceil(np.arange(11) / 3.7)
    for _ in range(200):
        rows = np.array(
            [
                np.cumsum(np.r_[0.0, np.sort(10.0 ** rng.uniform(-2, 12, 10))])
                + steps * rng.uniform(0.5, 5)
                for _ in range(7)
            ]
        )
        demand = int(rng.integers(5, 40))
        exact = costs(rows, demand)
        split = smallest_cost(rows, np.ones(7, np.int64), demand)
        assert split is not None
        assert -split.payoff == pytest.approx(exact[-1], rel=1e-9)
        utility = np.linspace(9.0, 3.0, 7)
        factor = smallest_factor(rows, np.ones(7, np.int64), utility, demand)
        assert factor == pytest.approx((exact / utility).min(), rel=1e-9)


# -- closing the duality gap -----------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """Groups of slots with reduced costs >= 0, 0 at the present count."""

    reduced: FloatArray
    count: IntArray
    number: IntArray
    missing: int


def gap(rng):
    """Whole reduced costs, so that ties are exact; +missing always fits somewhere."""
    groups, most = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    reduced = rng.integers(0, 9, (groups, most + 1)).astype(float)
    if rng.random() < 0.3:
        reduced[reduced >= 7] = np.inf
    count = rng.integers(0, most, groups)
    reduced[np.arange(groups), count] = 0.0
    missing = int(rng.integers(1, most - count.min() + 1))
    where = int(count.argmin())
    reduced[where, count[where] + missing] = rng.integers(0, 30)
    return Gap(reduced, count, rng.integers(1, 4, groups), missing)


def least(g):
    return cheapest_moves(
        np.repeat(g.reduced, g.number, axis=0), np.repeat(g.count, g.number), g.missing
    )


def check_moves(g, group, new, cost):
    assert (np.bincount(group, minlength=len(g.count)) <= g.number).all()
    assert (new - g.count[group]).sum() == g.missing
    assert g.reduced[group, new].sum() == cost


@pytest.mark.parametrize("seed", range(10))
def test_moves_that_close_the_gap_are_the_cheapest(seed):
    for i in range(150):
        rng = np.random.default_rng([seed, i, 5])
        g = gap(rng)
        expected = least(g)
        total, moves = repair(g.reduced, g.count, g.number, g.missing, np.inf, 0.0)
        assert moves is not None
        assert total == expected
        check_moves(g, *moves(), total)
        limit = float(rng.integers(0, 20))
        total, moves = repair(g.reduced, g.count, g.number, g.missing, limit, 0.0)
        if moves is None:
            assert total == limit <= expected
        else:
            assert total == expected
            check_moves(g, *moves(), total)


@pytest.mark.parametrize("seed", range(10))
def test_exact_moves_are_the_cheapest(seed):
    """The fallback of the search, which few jobs need, on every gap and without a bound."""
    for i in range(100):
        g = gap(np.random.default_rng([seed, i, 6]))
        group, new = np.nonzero(np.isfinite(g.reduced))
        step = new - g.count[group]
        cost = g.reduced[group, new]
        reach = int(np.abs(step).max())
        moves = _Moves(group, step, cost, g.number, g.missing, np.zeros(2 * reach + 1))
        _, found = moves.slots(np.inf)
        assert found == least(g)
