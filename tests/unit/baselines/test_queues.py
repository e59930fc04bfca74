"""The policies of simulators of GPU clusters on cases worked out by hand."""

import os
from pathlib import Path

import pytest

from baselines.preemptive import (
    LAS,
    SRSF,
    SRTF,
)
from baselines.queues import EASY, FIFO, Queued
from oasis.simulator import Outage, PlainJob, replay, rigid_workload
from tests.philly_shape import philly_jobs, philly_shaped

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"


def run(policy, rows, servers=1, gpus=4, **options):
    jobs = [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)]
    return replay(rigid_workload(jobs, servers, gpus, "whole"), policy, **options)


def ends(policy, rows, servers=1, gpus=4, **options):
    return [times.end for times in run(policy, rows, servers, gpus, **options).jobs]


def first_of_6c71a0():
    """The first 500 jobs of 1, 2, 4 or 8 GPUs: it has no others of at most 8."""
    jobs = [job for job in philly_jobs(TRACE, "6c71a0") if job.gpus <= 8][:500]
    assert {job.gpus for job in jobs} == {1, 2, 4, 8}
    return tuple(jobs)


# --- what simulators of the field give ----------------------------------------------------------

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")


@needs_trace
@pytest.mark.parametrize(
    ("policy", "mean", "within"),
    [
        (FIFO(), 249_587.3, 5e-7),
        (SRTF(line="fit"), 119_197.4, 5e-7),
        (SRSF(line="fit"), 114_437.5, 5e-7),
        (LAS(order="running-first", line="fit"), 131_882.9, 0.01),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_means_on_a_slice_of_philly_are_those_of_the_simulator_of_tiresias(policy, mean, within):
    outcome = replay(rigid_workload(first_of_6c71a0(), 8, 8), policy)
    assert outcome.mean_completion == pytest.approx(mean, rel=within)


@pytest.mark.parametrize("policy", [SRTF(), SRTF(line="fit"), LAS()])
def test_no_job_is_moved_while_a_server_stands_idle(policy):
    class Watched(type(policy)):
        def decide(self, view):
            places = {job.index: view.allocation(job) for job in view.running()}
            idle = sum(row == (8,) for row in view.free())
            new = len(view.arrived)
            plan = super().decide(view)
            if idle >= new and not self._waiting:
                assert not places.keys() & plan.changes.keys()
            return plan

    watched = Watched(**{k: v for k, v in policy.parameters.items() if k != "seed"})
    outcome = replay(rigid_workload(philly_shaped(400, 1), 8, 8, "whole"), watched)
    assert sum(times.migrations for times in outcome.jobs) > 0


# --- one policy after the other -----------------------------------------------------------------


@pytest.mark.parametrize("policy", [EASY, FIFO])
def test_queued_jobs_that_lose_a_server_return_to_their_place(policy):
    rows = [(0, 10, 4), (1, 10, 4)]
    assert ends(policy(), rows, outages=[Outage(0, 5.0, 7.0)]) == [12.0, 22.0]
    assert issubclass(policy, Queued)
