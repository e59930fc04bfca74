"""The bound that dual values prove: no point within the limits exceeds it, whatever the values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.lp import weak_duality_bound

SEEDS = st.integers(0, 2**32 - 1)


def drawn(rng: np.random.Generator, *, maximise: bool) -> ArrayModel:
    """A few variables within small limits, and rows with a limit on either side or on both."""
    size, number = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    table = rng.integers(-2, 4, (number, size)).astype(float)
    ends = np.sort(rng.integers(-6, 9, (2, number)).astype(float), axis=0)
    lower, upper = np.where(rng.random((2, number)) < 0.4, [[-np.inf], [np.inf]], ends)
    rows = RowArrays(
        np.arange(number + 1) * size, np.tile(np.arange(size), number), table.ravel(), lower, upper
    )
    least = rng.integers(-1, 2, size).astype(float)
    return ArrayModel(
        *([f"x{k}" for k in range(size)], rng.normal(size=size), float(rng.normal())),
        *(least, least + rng.integers(0, 3, size), np.zeros(size, bool), rows),
        maximise=maximise,
    )


@pytest.mark.parametrize("maximise", [True, False])
@given(SEEDS)
def test_no_point_within_the_limits_is_beyond_the_bound(maximise: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = drawn(rng, maximise=maximise)
    duals = rng.normal(size=len(model.rows.lower)) * rng.integers(0, 2, len(model.rows.lower))
    bound = weak_duality_bound(model, duals)
    assert np.isfinite(bound), "all variables have limits"
    sign = 1.0 if maximise else -1.0
    for point in product(*map(np.arange, model.lower, model.upper + 0.5, [0.5] * len(model.costs))):
        sums = model.rows.sums(model.rows.values * np.array(point)[model.rows.columns])
        if (sums >= model.rows.lower).all() and (sums <= model.rows.upper).all():
            assert sign * (model.constant + model.costs @ np.array(point)) <= sign * bound + 1e-9


def one_row(upper: float) -> ArrayModel:
    """max 2 + 3x, where x is at least 0 and at most what its one row says."""
    row = RowArrays(
        np.array([0, 1]), np.array([0]), np.ones(1), np.array([-np.inf]), np.array([upper])
    )
    limits = np.zeros(1), np.full(1, np.inf)
    return ArrayModel(["x"], np.array([3.0]), 2.0, *limits, np.zeros(1, bool), row, maximise=True)


@pytest.mark.parametrize(
    ("price", "bound"), [(3.0, 14.0), (4.0, 18.0), (2.999, np.inf), (0.0, np.inf), (-1.0, np.inf)]
)
def test_a_price_that_leaves_a_gain_without_limit_proves_nothing(
    price: float, bound: float
) -> None:
    assert weak_duality_bound(one_row(4.0), np.array([price])) == pytest.approx(bound)
    assert weak_duality_bound(one_row(np.inf), np.array([price])) == np.inf
