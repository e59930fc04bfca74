"""SpeCon's figures: the draws and their calibration, what is measured, and what the pages say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from said import data

from baselines import FIFO
from experiments.figures import specon, specon_draws
from oasis.simulator import replay


def rows_of(figure):
    return {row["policy"]: row for row in data(f"specon-{figure}")}


def simulated(draw, schedule, number=0):
    """Completion times under the default scheduler, by the simulator."""
    made = draw.workload(schedule.workers, number)
    outcome = replay(made, FIFO(placement="round-robin"))
    return [job.end - job.arrival for job in outcome.jobs]


@pytest.mark.parametrize("figure", specon_draws.SCHEDULES)
def test_the_default_schedulers_times_are_those_of_the_simulator(figure):
    schedule = specon_draws.SCHEDULES[figure]
    for seed in range(3):
        draw = specon_draws.scaled(specon_draws.candidate(schedule, seed), schedule)
        times = specon_draws.default_times(draw.arrivals, draw.work, schedule.workers, draw.loss)
        assert simulated(draw, schedule) == pytest.approx(times)


@pytest.mark.parametrize("figure", specon_draws.SCHEDULES)
def test_draws_have_what_is_published_of_the_default_run(figure):
    """The calibration, repeated in the simulator: on the default scheduler's numbers alone."""
    schedule = specon_draws.SCHEDULES[figure]
    known = schedule.default
    for number in range(2):
        draw = specon_draws.as_published(figure, number)
        times = simulated(draw, schedule, number)
        ends = [at + time for at, time in zip(draw.arrivals, times, strict=True)]
        assert math.fsum(times) / len(times) == pytest.approx(known.mean, rel=1e-4)
        assert max(ends) == pytest.approx(known.makespan, rel=specon_draws.NEAR)
        assert times[known.job - 1] == pytest.approx(known.time, rel=specon_draws.NEAR_JOB)


def test_gains_are_counted_draw_by_draw():
    same, twice = (
        {"mean": k, "makespan": k, **{f"job{j}": float(k) for j in (1, 2)}} for k in (1.0, 2.0)
    )
    found = specon.gains([same, same, twice], [twice, same, same], 2)
    assert (found["better"], found["overall"], found["best"]) == pytest.approx((1, -1 / 6, -1 / 6))
    assert found["reduced"] == pytest.approx(1 / 3)


@pytest.mark.nightly
def test_with_a_loss_of_up_to_a_half_fig_6_gains_less():
    mean, found = specon_draws.SCHEDULES["6"].default.mean, []
    for number in range(100):
        draw = specon_draws.as_published("6", number, 0.5)
        found.append(
            1.0 - specon.measure(draw, number, 4, specon.CHOICES[specon.SPECON])["mean"] / mean
        )
    assert round(math.fsum(found) / 100, 3) == 0.068
    assert round(rows_of("6")[specon.SPECON]["overall"], 3) == 0.102


DRAWN, _ = specon.CROWDING


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
    assert specon_draws.pooled_mean(jobs, workers, loss) == pytest.approx(
        math.fsum(times) / len(times), abs=0.5
    )


def test_what_is_left_of_the_evaluation_function_keeps_the_published_point():
    points = dict(map(tuple, specon_draws.curve("VAE", floor=0.5)))
    assert (points[0.0], points[1.0]) == (1.0, 0.5)
    shares = sorted(points)
    before, after = max(s for s in shares if s <= 0.2), min(s for s in shares if s >= 0.2)
    assert points[after] <= 1.0 - 0.65 * 0.5 <= points[before]


def test_the_evaluation_function_matters_in_fig_5_alone(rows):
    for figure in specon_draws.SCHEDULES:
        flat, other = (rows[figure, DRAWN, choice] for choice in ("specon", "exponential"))
        apart = abs(flat["overall"] - other["overall"])
        assert (apart > 0.015) is (figure == "5")
    assert round(rows["5", DRAWN, "exponential"]["mean"] / 234.7 - 1, 3) == 0.092


def test_the_vae_jobs_of_table_3_are_like_those_of_fig_5():
    for number in range(3):
        jobs, like = specon.vae_jobs(number), specon_draws.as_published("5", number)
        assert (jobs.median, jobs.within, jobs.loss) == (like.median, like.within, like.loss)
        assert jobs.arrivals == tuple(sorted(jobs.arrivals))
        assert 0.0 <= jobs.arrivals[0] <= jobs.arrivals[-1] <= 300.0
        assert jobs.work != like.work


def test_the_spread_of_the_overhead_is_the_published_one():
    rows = [row for row in data("specon-2") if row["saved_at"] != specon.NONSTOP]
    assert all(row["seeds"] == 20 and row["largest"] < specon_draws.SAVING_AT_MOST for row in rows)
    spread = {row["spread"] for row in rows if row["figure"] == 2}
    assert len(spread) == 1
    assert spread.pop() == pytest.approx(specon_draws.SAVING_SPREAD, abs=0.01)


def test_nothing_moves_under_the_default_scheduler():
    rows = data("specon-9")
    for policy in specon.SHOWN_POLICIES:
        part = [row for row in rows if row["policy"] == policy]
        moved = {row["moved"] for row in part} - {None}
        assert moved == (set() if policy == specon.DEFAULT else {"M", "R"})
        assert {row["job"] for row in part} == {f"job{k}" for k in range(1, 31)}
        first = {row["job"]: row["worker"] for row in reversed(part)}
        if policy == specon.DEFAULT:
            turn = [first[f"job{k}"] for k in range(1, 31)]
            assert turn == [1 + k % 4 for k in range(30)]
    assert rows == data("specon-11")
