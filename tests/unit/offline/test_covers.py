"""Covers: what does not fit is cut off, and nothing that fits."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.rounding import CAPACITY_TOLERANCE
from offline.model.capacities import CapacityLevel, Cover, fits, used

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
def test_what_fits_is_below_a_level_and_the_cover_is_not(case) -> None:
    amounts, counts, capacity = case
    cover = Cover.within(amounts, counts, capacity)
    levels = cover.levels()
    assert not below_some_level(levels, tuple(counts))
    assert not below_some_level(levels, tuple(cover.counts))
    for other in product(*(range(n + 2) for n in counts)):
        assert below_some_level(levels, other) or not fits(amounts, other, capacity)


@given(overfull())
def test_a_cover_has_no_unit_to_spare(case) -> None:
    amounts, counts, capacity = case
    cover = Cover.within(amounts, counts, capacity)
    assert all(least <= n for least, n in zip(cover.counts, counts, strict=True))
    assert not fits(amounts, cover.counts, capacity)
    for i, n in enumerate(cover.counts):
        if n:
            fewer = [*cover.counts[:i], n - 1, *cover.counts[i + 1 :]]
            assert fits(amounts, fewer, capacity)


@given(overfull(), st.lists(SIZES, min_size=1, max_size=3))
def test_levels_hold_for_other_items_on_the_same_capacity(case, sizes) -> None:
    amounts, counts, capacity = case
    others = [capacity * size for size in sizes] + amounts[:1]
    levels = Cover.within(amounts, counts, capacity).levels(others)
    for other in product(*(range(4) for _ in others)):
        assert not levels or below_some_level(levels, other) or not fits(others, other, capacity)


def test_equal_items_share_one_level() -> None:
    cover = Cover.within([0.5 * (1 + 1.5e-9)] * 3, [0, 1, 1], 1.0)
    [level] = cover.levels()
    assert (level.items.tolist(), level.count) == ([0, 1, 2], 2)
    assert cover.is_sure


def test_what_rounding_decides_is_cut_off_item_by_item() -> None:
    limit = 1.0 + CAPACITY_TOLERANCE
    amount = limit / 2 * (1 + 2**-52)
    cover = Cover.within([amount, amount, amount], [1, 0, 1], 1.0)
    assert used([amount], [2]) > limit
    assert not cover.is_sure
    assert [(level.items.tolist(), level.count) for level in cover.levels()] == [([0], 1), ([2], 1)]
    assert cover.levels([amount, amount]) == []
