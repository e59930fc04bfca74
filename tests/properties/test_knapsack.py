"""Integer knapsacks against enumeration, also where HiGHS may stop early."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from oasis.rounding import CAPACITY_TOLERANCE, FloatArray, IntArray
from oasis.solvers import knapsack
from tests.strategies import fewer, levels

LIMIT = 1.0 + CAPACITY_TOLERANCE


@st.composite
def items(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray]:
    """Values, shares of one to three resources, and most units, of up to five items."""
    kinds, resources = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    values = draw(levels((kinds,), (1.0, 2.0, 0.7, 1 / 3, 1e-6, 1e6)))
    shares = draw(levels((kinds, resources), (0.5, 1 / 3, 0.3, 0.25, 0.1, 0.0, 0.9)))
    upper = draw(st.lists(st.integers(0, 4), min_size=kinds, max_size=kinds))
    return values, shares, np.array(upper)


@pytest.mark.parametrize(("gap", "nodes"), [(1e-6, 20_000), (0.2, 20_000), (0.0, 1)])
def test_no_selection_is_worth_more_than_the_bound(gap: float, nodes: int) -> None:
    @given(items())
    @fewer(2)
    def check(drawn: tuple[FloatArray, FloatArray, IntArray]) -> None:
        values, shares, upper = drawn
        bound, units = knapsack.knapsack(values, shares, upper, LIMIT)
        assert (units >= 0).all()
        assert (units <= upper).all()
        assert (units @ shares <= LIMIT + 1e-9).all()
        selections = np.array(list(product(*(range(n + 1) for n in upper.tolist()))))
        fitting = selections[(selections @ shares <= 1.0 + 1e-12).all(axis=1)]
        best = float((fitting @ values).max())
        event("optimal" if values @ units >= best * (1 - 1e-9) else "not optimal")
        assert bound >= best * (1 - 1e-9)
        if (gap, nodes) == (1e-6, 20_000):
            assert values @ units >= best * (1 - 2e-6)
            assert bound <= best * (1 + 2e-6)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(knapsack._PLAIN, "mip_rel_gap", gap)
        patch.setattr(knapsack, "NODES", nodes)
        check()
