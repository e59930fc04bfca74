"""Integer knapsacks against enumeration, also where HiGHS may stop early."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oasis.model.rounding import CAPACITY_TOLERANCE
from oasis.solvers import knapsack
from oasis.solvers.budget import Budget

LIMIT = 1.0 + CAPACITY_TOLERANCE


@st.composite
def items(draw):
    """Values, shares of two or three resources, and most units, of items that are alike."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kinds, resources = draw(st.integers(1, 7)), draw(st.integers(2, 3))
    shares = rng.uniform(0.05, 0.45, (kinds, resources)) * rng.integers(0, 2, (kinds, resources))
    values = shares.sum(axis=1) + rng.uniform(0.05, 0.15, kinds)
    return values, shares, rng.integers(1, 4, kinds)


@pytest.mark.parametrize(("gap", "nodes"), [(1e-6, 20_000), (0.2, 20_000), (0.0, 1)])
def test_no_selection_is_worth_more_than_the_bound(gap, nodes):
    early = 0

    @given(items())
    def check(drawn):
        values, shares, upper = drawn
        bound, units = knapsack.knapsack(values, shares, upper, LIMIT, Budget())
        assert (units >= 0).all()
        assert (units <= upper).all()
        assert (units @ shares <= LIMIT + 1e-9).all()
        selections = np.array(list(product(*(range(n + 1) for n in upper.tolist()))))
        fitting = selections[(selections @ shares <= 1.0 + 1e-12).all(axis=1)]
        best = float((fitting @ values).max())
        nonlocal early
        early += bool(values @ units < best * (1 - 1e-9))
        assert bound >= best * (1 - 1e-9)
        if (gap, nodes) == (1e-6, 20_000):
            assert values @ units >= best * (1 - 2e-6)
            assert bound <= best * (1 + 2e-6)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(knapsack._PLAIN, "mip_rel_gap", gap)
        patch.setattr(knapsack, "NODES", nodes)
        check()
    assert early > 0 or gap < 0.1  # else a selection would do for a bound


@given(st.integers(0, 2**32 - 1))
@example(32086)  # HiGHS's presolve takes the units of two kinds for the same
def test_no_selection_is_better_by_a_hair_than_the_bound(seed):
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(2, 6))
    shares, upper = rng.uniform(0.2, 0.6, (kinds, 2)), rng.integers(1, 4, kinds)
    values = 1.0 + rng.integers(0, 8, kinds) * 2.5e-10
    selections = np.array(list(product(*(range(n + 1) for n in upper.tolist()))))
    best = float((selections[(selections @ shares <= 1.0).all(axis=1)] @ values).max())
    with pytest.MonkeyPatch.context() as patch:
        for gap in (1e-6, 0.0):
            patch.setitem(knapsack._PLAIN, "mip_rel_gap", gap)
            bound, _ = knapsack.knapsack(values, shares, upper, 1.0, Budget())
            assert best <= bound <= best * (1 + 2e-6)


@given(items(), st.integers(0, 10**6))
def test_covers_are_kept_and_take_nothing_else(drawn, seed):
    values, shares, upper = drawn
    rng = np.random.default_rng(seed)
    covers = [
        [
            (np.flatnonzero(rng.random(len(upper)) < 0.7), int(rng.integers(1, 5)))
            for _ in range(rng.integers(1, 4))
        ]
        for _ in range(rng.integers(1, 3))
    ]
    bound, units = knapsack.knapsack(values, shares, upper, LIMIT, Budget(), covers)
    selections = np.array(list(product(*(range(n + 1) for n in upper.tolist()))))

    def kept(selection):
        return all(any(selection[i].sum() < n for i, n in pairs) for pairs in covers)

    assert kept(units)
    allowed = [s for s in selections if kept(s) and (s @ shares <= 1.0 + 1e-12).all()]
    best = max(float(s @ values) for s in allowed)
    assert best * (1 - 2e-6) <= values @ units
    assert best * (1 - 1e-9) <= bound <= best * (1 + 2e-6) + 2e-12
