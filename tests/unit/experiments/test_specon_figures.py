"""SpeCon's Figs. 5, 6, 7 and 12: the draws, their calibration, and what the rows say."""

from __future__ import annotations

import math

import pytest

from baselines import FIFO
from experiments.figures.specon import CHOICES, SPECON, measure
from experiments.figures.specon_draws import (
    NEAR,
    NEAR_JOB,
    SCHEDULES,
    as_published,
    candidate,
    default_times,
    scaled,
)
from oasis.simulator import replay
from tests.packaging.figure_rows import data


def rows_of(figure):
    return {row["policy"]: row for row in data(f"specon-{figure}")}


def simulated(draw, schedule, number=0):
    """Completion times under the default scheduler, by the simulator."""
    made = draw.workload(schedule.workers, number)
    outcome = replay(made, FIFO(placement="round-robin"))
    return [job.end - job.arrival for job in outcome.jobs]


@pytest.mark.parametrize("figure", SCHEDULES)
def test_the_default_schedulers_times_are_those_of_the_simulator(figure):
    schedule = SCHEDULES[figure]
    for seed in range(3):
        draw = scaled(candidate(schedule, seed), schedule)
        times = default_times(draw.arrivals, draw.work, schedule.workers, draw.loss)
        assert simulated(draw, schedule) == pytest.approx(times)


@pytest.mark.parametrize("figure", SCHEDULES)
def test_draws_have_what_is_published_of_the_default_run(figure):
    """The calibration, repeated in the simulator: on the default scheduler's numbers alone."""
    schedule = SCHEDULES[figure]
    known = schedule.default
    for number in range(2):
        draw = as_published(figure, number)
        times = simulated(draw, schedule, number)
        ends = [at + time for at, time in zip(draw.arrivals, times, strict=True)]
        assert math.fsum(times) / len(times) == pytest.approx(known.mean, rel=1e-4)
        assert max(ends) == pytest.approx(known.makespan, rel=NEAR)
        assert times[known.job - 1] == pytest.approx(known.time, rel=NEAR_JOB)


@pytest.mark.nightly
def test_with_a_loss_of_up_to_a_half_fig_6_gains_less():
    mean, found = SCHEDULES["6"].default.mean, []
    for number in range(100):
        draw = as_published("6", number, 0.5)
        found.append(1.0 - measure(draw, number, 4, CHOICES[SPECON])["mean"] / mean)
    assert round(math.fsum(found) / 100, 3) == 0.068
    assert round(rows_of("6")[SPECON]["overall"], 3) == 0.102
