"""A live job: what is left of it, what it may still earn, and the record of those that left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Cluster
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant, Deadline, Piecewise
from oasis.online.recourse.live_job import (
    LEAST_SHARE,
    NEVER,
    LiveJob,
    dominant_share,
    grid_of,
)
from tests import builders
from tests.strategies import clusters, fewer, jobs

CLUSTER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 8.0}, ps={"bandwidth_gbps": 8.0}
)
# 6 worker-slots, at most 3 workers at once; arrives in slot 2.
JOB = builders.job(
    "j",
    2,
    slots=2,
    workers=3,
    worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
    ps={"bandwidth_gbps": 2.0},
    utility=Piecewise((0.0, 5.0), (10.0, 0.0)),
)


def live(job: Job = JOB, horizon: int = 9, floor: float = 0.0) -> LiveJob:
    return LiveJob.of(7, job, CLUSTER, horizon, grid_of(CLUSTER), floor)


def planned() -> LiveJob:
    """Three workers in slot 3, one in slot 4, two in slot 6."""
    made = live()
    rows = [[3, 0, 2], [3, 1, 1], [4, 0, 1], [6, 0, 2]]
    made.schedule = Schedule("j", rows, [[3, 0, 2], [4, 0, 1], [6, 0, 1]])
    return made


@pytest.mark.parametrize(("floor", "last"), [(0.0, 6), (0.25, 6), (0.3, 5), (0.8, 3), (1.0, 3)])
def test_completions_below_the_floor_of_the_best_possible_count_as_worthless(
    floor: float, last: int
) -> None:
    """The best possible is 8, at delay 1: two slots are needed."""
    made = live(floor=floor)
    assert made.last == last
    assert made.utility_at(last) > 0.0
    assert not made.table[last + 1 - JOB.arrival :].any()


def test_a_job_that_cannot_be_worth_anything_has_no_last_slot() -> None:
    assert live(replace(JOB, utility=Deadline(9.0, 0.0))).last == NEVER
    assert live(replace(JOB, utility=Constant(0.0))).last == NEVER
    assert live(horizon=3).last == NEVER  # it needs two slots, one is left


@pytest.mark.parametrize(
    ("share", "latest"), [(1.0, 4), (0.7, 4), (0.66, 5), (0.34, 5), (0.33, 6), (0.01, 6)]
)
def test_the_last_slot_that_is_worth_a_share_of_what_a_completion_is_worth(
    share: float, latest: int
) -> None:
    """Completions in slots 4, 5 and 6 are worth 6, 4 and 2."""
    assert live().latest_worth(share, 4) == latest
    assert live(replace(JOB, utility=Constant(3.0))).latest_worth(share, 4) == 8


def test_what_is_planned_before_now_is_done() -> None:
    made = planned()
    assert made.run_until(3) == 0
    assert not made.started
    assert made.run_until(5) == 4
    assert (made.done, made.remaining, made.started) == (4, 2, True)
    assert made.schedule is not None
    assert made.schedule.workers.tolist() == [[6, 0, 2]]
    assert made.schedule.ps.tolist() == [[6, 0, 1]]
    assert made.run_until(9) == 2
    assert (made.remaining, made.schedule) == (0, None)


def test_the_rest_is_measured_from_the_arrival_but_starts_now() -> None:
    made = live()
    made.remaining = 4
    rest = made.remaining_work(now=4, until=6)
    assert (rest.start, rest.work, rest.ends.first) == (4, 4, 5)
    assert rest.ends.utility.tolist() == [4.0, 2.0]
    assert rest.ends.counted.all()


def test_a_lift_makes_even_a_worthless_completion_count() -> None:
    made = live()
    assert made.remaining_work(2, 8).ends.counted.tolist() == [True, True, True, True, False, False]
    lifted = made.remaining_work(2, 8, lift=100.0).ends
    assert lifted.utility.tolist() == [108.0, 106.0, 104.0, 102.0, 100.0, 100.0]
    assert lifted.counted.all()


def test_the_share_of_a_job_is_that_of_its_scarcest_resource() -> None:
    """A worker takes 1 of 8 GPUs; the halves of its parameter server 1 of 8 Gbit/s."""
    assert dominant_share(JOB, CLUSTER) == 1 / 8
    assert (
        dominant_share(replace(JOB, worker={"gpu": 3.0, "bandwidth_gbps": 1.0}), CLUSTER) == 3 / 8
    )
    dear = replace(JOB, ps={"bandwidth_gbps": 1.0})  # a parameter server for every worker
    assert dominant_share(dear, CLUSTER) == 1 / 8
    wide = replace(JOB, worker={"bandwidth_gbps": 4.0}, ps={"bandwidth_gbps": 4.0})
    assert dominant_share(wide, CLUSTER) == 4 / 8
    assert dominant_share(replace(JOB, worker={}, ps={}), CLUSTER) == LEAST_SHARE
    unknown = replace(JOB, worker={"gpu": 1.0}, ps={"gpu": 5.0})  # no ps host has a GPU
    assert dominant_share(unknown, CLUSTER) == 1 / 8


@fewer(4)
@given(jobs(6), clusters(), st.sampled_from([0.0, 1e-3, 0.5]))
def test_a_live_job_is_never_smaller_than_the_job(job: Job, cluster: Cluster, floor: float) -> None:
    grid = grid_of(cluster)
    made = LiveJob.of(0, job, cluster, 6, grid, floor)
    assert made.remaining == job.work(cluster.slot_seconds)
    assert made.size >= LEAST_SHARE
    assert all(made.job.worker[name] >= amount for name, amount in job.worker.items())

    counted = np.flatnonzero(made.table)
    if made.last != NEVER:
        assert made.last == job.arrival + counted[-1]
