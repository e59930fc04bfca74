"""Counts on the servers of a slot: cuts, classes and placements against plain enumeration.

The oracle adds up patterns with exact fractions: what fits on each server, then what fits on all.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline.benders import subproblem as placing
from offline.benders.subproblem import place, place_by_patterns
from offline.patterns import CLEAR, DEEP, CutGenerator, PatternPool, classes
from tests.strategies import fewer, levels, more, of

Counts = tuple[int, ...]

NO_LIMIT = Budget()
MOST = np.full(3, 4)
DIGITS = 1e-9
SLACK = 1 + Fraction(
    1, 10**9
)  # what `oasis.model.rounding` forgives; no amount below is that close


# --- the oracle -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """Servers, what one unit of each item asks for, and the most units of each."""

    capacity: FloatArray
    demand: FloatArray
    most: IntArray

    def fits(self, pattern, server):
        return all(
            sum(n * Fraction(float(w)) for n, w in zip(pattern, column, strict=True))
            <= Fraction(float(limit)) * SLACK
            for column, limit in zip(self.demand.T, self.capacity[server], strict=True)
        )

    @cached_property
    def patterns(self):
        """Patterns that each server holds."""
        box = list(product(*(range(n + 1) for n in self.most.tolist())))
        servers = range(len(self.capacity))
        return [[pattern for pattern in box if self.fits(pattern, s)] for s in servers]

    @cached_property
    def placeable(self):
        """Counts that all servers hold together."""
        reached = {(0,) * len(self.most)}
        for patterns in self.patterns:
            sums = {
                tuple(a + b for a, b in zip(one, other, strict=True))
                for one, other in product(reached, patterns)
            }
            reached = {n for n in sums if (np.array(n) <= self.most).all()}
        return reached

    @cached_property
    def hosted(self):
        """1 for an item of which some server holds a unit, else 0."""
        held = [pattern for patterns in self.patterns for pattern in patterns]
        return np.array(held).max(axis=0).clip(0.0, 1.0)

    def covered(self, counts):
        """The largest multiple of the counts that fractions of patterns cover, server by server."""
        servers = range(len(self.capacity))
        table = np.array([row for patterns in self.patterns for row in patterns]).T
        sizes = [len(patterns) for patterns in self.patterns]
        cover = np.hstack([counts[:, None], -table])
        once = np.hstack(
            [np.zeros((len(sizes), 1)), np.repeat(np.eye(len(sizes)), sizes, axis=1)[list(servers)]]
        )
        solved = linprog(
            np.append(-1.0, np.zeros(table.shape[1])),
            np.vstack([cover, once]),
            np.append(np.zeros(len(counts)), np.ones(len(sizes))),
        )
        assert solved.status == 0
        return float(-solved.fun)

    def servers(self, most, deep=DEEP):
        pool = PatternPool(*classes(self.capacity, most), self.demand, self.most)
        return CutGenerator(pool, deep)


@st.composite
def slots(draw, items=3, most=4):
    """One to three servers, one or two resources; zeros, and quotients whole but for a bit."""
    servers, kinds, resources = draw(st.integers(1, 3)), draw(st.integers(1, items)), draw(of(2, 1))
    capacity = draw(levels((servers, resources), (3.0, 2.0, 1.0, 0.7, 2.5, 4.1, 0.0)))
    demand = draw(levels((kinds, resources), (1.0, 2.0, 1.3, 0.7, 1 / 3, 0.1, 0.0)))
    units = draw(st.lists(of(*range(most, 0, -1)), min_size=kinds, max_size=kinds))
    return Slot(capacity, demand, np.array(units))


@st.composite
def points(draw, slot):
    """Counts of items that fit somewhere: whole, fractional, zero."""
    shares = draw(levels(slot.most.shape, (1.0, 0.5, 0.9, 1 / 3, 0.0)))
    counts: FloatArray = slot.most * shares * slot.hosted
    return np.rint(counts) if draw(st.booleans()) else counts


def least(slot, cut):
    """Least value left below the right-hand side by any placement."""
    return 1.0 - max(float(cut.weights @ np.array(n)) for n in slot.placeable)


# --- cuts -------------------------------------------------------------------------------------


@given(slots(), st.data())
@fewer(2)
def test_no_cut_takes_away_a_placement_and_each_takes_away_its_point(slot, data):
    """Also when patterns are left over from points before, and for servers in any classes."""
    served = slot.servers(data.draw(st.one_of(st.none(), st.integers(1, len(slot.capacity)))))
    for point in data.draw(st.lists(points(slot), min_size=1, max_size=3)):
        cut = served.separate(point, NO_LIMIT)
        if cut is not None:
            assert (cut.weights >= 0).all()
            assert least(slot, cut) >= -DIGITS
            assert cut.weights @ point > 1.0 + CLEAR / 2
            assert cut.is_violated(point)
    for n in slot.placeable:
        assert served.separate(np.array(n, float), NO_LIMIT) is None


def test_a_cut_also_has_weights_for_items_that_the_counts_have_none_of():
    """Three units of the first item ask for two servers of one; so do two and one of the others."""
    slot = Slot(np.ones((2, 1)), np.array([[1.0], [1.0], [0.5], [2.0]]), np.array([3, 3, 3, 3]))
    cut = slot.servers(None).separate(np.array([3.0, 0.0, 0.0, 0.0]), NO_LIMIT)
    assert cut is not None
    assert cut.weights == pytest.approx([0.5, 0.5, 0.25, 0.0])  # no server holds any of the last


@given(slots(), st.data(), of(DEEP, 0.9, 1.0))
@more(3)
def test_single_servers_miss_no_cut_and_find_a_deep_one(slot, data, depth):
    point = data.draw(points(slot))
    cut = slot.servers(None, depth).separate(point, NO_LIMIT)
    if not point.any():
        assert cut is None
        return
    covered = slot.covered(point)
    if cut is None:
        assert covered >= 1.0 - 1.1 * CLEAR - DIGITS
    else:
        reach = 1.0 / float(cut.weights @ point)
        less = (1.0 - depth) * (1.0 - covered)
        assert covered - 1e-7 <= reach <= covered + max(less, CLEAR / 5) + DIGITS


def test_no_time_means_no_cut():
    slot = Slot(np.array([[3.0]] * 2), np.array([[2.0]]), np.array([3]))
    assert slot.servers(None).separate(np.array([3.0]), Budget(0.0)) is None
    cut = slot.servers(None).separate(np.array([3.0]), NO_LIMIT)
    assert cut is not None
    assert cut.weights == pytest.approx([0.5])


# --- classes ----------------------------------------------------------------------------------


def capacities():
    shapes = st.tuples(st.integers(1, 7), st.integers(1, 3))
    return shapes.flatmap(lambda shape: levels(shape, (0.0, 1.0, 2.0, 2.5, 8.0, 1e-6, 1e12)))


@given(capacities(), st.integers(1, 7), st.randoms(use_true_random=False))
@more(2)
def test_every_server_finds_a_class_that_has_at_least_as_much(capacity, most, random):
    largest, number = classes(capacity, most)
    distinct = len({tuple(row) for row in capacity.tolist()})
    assert len(largest) == len(number) == min(most, distinct)
    assert number.sum() == len(capacity)
    assert (number > 0).all()
    places = np.repeat(largest, number, axis=0)
    lacking = (capacity[:, None, :] > places[None]).any(axis=2)
    assert not lacking[linear_sum_assignment(lacking)].any()
    for r in range(capacity.shape[1]):
        assert set(largest[:, r]) <= set(capacity[:, r])
    order = list(range(len(capacity)))
    random.shuffle(order)
    for one, same in zip((largest, number), classes(capacity[order], most), strict=True):
        np.testing.assert_array_equal(one, same)


@given(capacities())
def test_more_classes_never_claim_more(capacity):
    made = [classes(capacity, most) for most in range(1, len(capacity) + 1)]
    claimed = [number @ largest for largest, number in made]
    for coarse, fine in pairwise(claimed):
        assert (fine <= coarse * (1 + DIGITS)).all()
    np.testing.assert_allclose(claimed[-1], capacity.sum(axis=0))


# --- placements -------------------------------------------------------------------------------


def assert_is_placement(slot, units, counts):
    assert units.shape == (len(counts), len(slot.capacity))
    assert (units >= 0).all()
    assert (units.sum(axis=1) <= counts).all()
    for server, pattern in enumerate(units.T.tolist()):
        assert slot.fits(tuple(pattern), server)


def most_units(slot, counts):
    return max(sum(n) for n in slot.placeable if (np.array(n) <= counts).all())


@given(slots(), st.data())
@example(Slot(np.zeros((2, 1)), np.ones((2, 1)), np.array([2, 2])), None)  # nothing fits at all
@example(Slot(np.array([[5.0], [4.0]]), np.array([[3.0], [2.0]]), np.array([1, 3])), None)  # tight
@more(2)
def test_no_placement_has_more_units(slot, data):
    counts = (
        slot.most
        if data is None
        else data.draw(st.tuples(*(st.integers(0, n) for n in slot.most.tolist())).map(np.array))
    )
    units, is_proven = place(slot.capacity, slot.demand, counts, NO_LIMIT)
    assert_is_placement(slot, units, counts)
    assert is_proven
    assert units.sum() == most_units(slot, counts)


def test_patterns_place_what_the_largest_first_does_not(monkeypatch):
    def untouched(*_):
        raise AssertionError

    monkeypatch.setattr(placing, "_by_servers", untouched)
    slot = Slot(
        np.array([[6.0, 5.0], [2.0, 6.0]]), np.array([[2.0, 0.0], [2.0, 2.0]]), np.array([1, 3])
    )
    units, is_proven = place(slot.capacity, slot.demand, slot.most, NO_LIMIT)
    assert_is_placement(slot, units, slot.most)
    assert is_proven
    assert units.sum() == 4
    monkeypatch.undo()
    monkeypatch.setattr(placing, "CutGenerator", untouched)
    with pytest.raises(AssertionError):  # the largest first did not do it
        place(slot.capacity, slot.demand, slot.most, NO_LIMIT)


@pytest.mark.parametrize(
    "search",
    [
        lambda *given: place_by_patterns(*given)[0],
        lambda *given: placing._by_servers(*given)[0],
    ],
    ids=["by patterns", "by servers"],
)
def test_what_is_worth_most_is_placed_where_not_all_fits(search, monkeypatch):
    """Two resources, so that no order of sizes says which items to leave out."""
    monkeypatch.setattr("oasis.solvers.highs.check_proof", None)  # a placement needs none
    capacity, demand = np.array([[2.0, 2.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    counts, worth = np.array([2, 1, 2]), np.array([1.0, 5.0, 1.0])
    units = search(capacity, demand, counts, NO_LIMIT, worth)
    assert units[:, 0].tolist() == [1, 1, 1]
    worth = np.array([3.0, 5.0, 3.0])
    units = search(capacity, demand, counts, NO_LIMIT, worth)
    assert units[:, 0].tolist() == [2, 0, 2]


@given(slots())
@fewer(2)
def test_patterns_that_cover_counts_fit_and_none_is_below_another(slot):
    served = slot.servers(None)
    for k, rows in enumerate(served.covering(slot.most, NO_LIMIT)):
        assert (rows <= slot.most).all()
        host = np.flatnonzero((slot.capacity == served.pool.capacity[k]).all(axis=1))[0]
        assert all(slot.fits(tuple(row), int(host)) for row in rows.tolist())
        for one, other in permutations(rows, 2):
            assert (one > other).any()


@given(slots())
def test_without_time_it_still_is_a_placement_and_no_false_proof(slot):
    units, is_proven = place(slot.capacity, slot.demand, slot.most, Budget(0.0))
    assert_is_placement(slot, units, slot.most)
    assert not is_proven or units.sum() == most_units(slot, slot.most)
