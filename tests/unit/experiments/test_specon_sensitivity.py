"""SpeCon's figures by what the paper leaves open: what is measured, and what the page says."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.figures.specon import CROWDING, READING_CHOICES
from experiments.figures.specon_draws import (
    SCHEDULES,
    as_published,
    curve,
    default_times,
    pooled_mean,
)
from tests.packaging.figure_rows import data, row

DRAWN, _ = CROWDING


@pytest.fixture(scope="module")
def rows():
    return {
        (str(one["figure"]), one["crowding"], one["choice"]): one
        for one in data("specon-sensitivity")
    }


@given(
    jobs=st.lists(st.tuples(st.floats(0, 50), st.floats(1, 90)), min_size=1, max_size=7),
    workers=st.integers(1, 3),
    loss=st.sampled_from([0.0, 0.3]),
)
def test_one_pool_shared_evenly(jobs, workers, loss):
    """In steps of time instead of from event to event."""
    step = 0.02
    left = [work for _, work in jobs]
    times, now = [None] * len(jobs), 0.0
    while None in times:
        there = [k for k, (at, _) in enumerate(jobs) if at <= now and times[k] is None]
        crowd = max(1.0, len(there) / workers)
        for k in there:
            left[k] -= step / crowd / (1.0 + loss * (crowd - 1.0))
            if left[k] <= 0:
                times[k] = now + step - jobs[k][0]
        now += step
    assert pooled_mean(jobs, workers, loss) == pytest.approx(math.fsum(times) / len(times), abs=0.5)


def test_who_is_alone_or_has_one_worker_for_all_gains_nothing_by_the_pool():
    assert pooled_mean([(0.0, 60.0), (100.0, 30.0)], 3) == 45.0
    draw = as_published("6", 1)
    arrivals, work = draw.arrivals[:5], draw.work[:5]
    alone = math.fsum(default_times(arrivals, work, 1, draw.loss)) / 5
    assert pooled_mean(zip(arrivals, work, strict=True), 1, draw.loss) == pytest.approx(alone)


def test_what_is_left_of_the_evaluation_function_keeps_the_published_point():
    points = dict(map(tuple, curve("VAE", floor=0.5)))
    assert (points[0.0], points[1.0]) == (1.0, 0.5)
    shares = sorted(points)
    before, after = max(s for s in shares if s <= 0.2), min(s for s in shares if s >= 0.2)
    assert points[after] <= 1.0 - 0.65 * 0.5 <= points[before]


def test_every_figure_has_every_crowding_and_choice(rows):
    assert list(rows) == list(product(SCHEDULES, CROWDING, READING_CHOICES))
    assert {row["seeds"] for row in rows.values()} == {100}


def test_the_first_rows_are_those_of_the_figures(rows):
    for figure in SCHEDULES:
        kept = row(f"specon-{figure}", policy="specon")
        own = rows[figure, DRAWN, "specon"]
        shared = ("mean", "makespan", "overall", "reduced", "as_much", "one_draw_high")
        assert [own[name] for name in shared] == [kept[name] for name in shared]


def test_the_evaluation_function_matters_in_fig_5_alone(rows):
    for figure in SCHEDULES:
        flat, other = (rows[figure, DRAWN, choice] for choice in ("specon", "exponential"))
        apart = abs(flat["overall"] - other["overall"])
        assert (apart > 0.015) is (figure == "5")
    assert round(rows["5", DRAWN, "exponential"]["mean"] / 234.7 - 1, 3) == 0.092
