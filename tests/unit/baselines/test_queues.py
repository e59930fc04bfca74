"""The policies of simulators of GPU clusters on cases worked out by hand."""

import os
from pathlib import Path

import pytest

from baselines import EASY, FIFO, LAS, SRSF, SRTF
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.philly_shape import philly_jobs, philly_shaped

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"


def first_of_6c71a0():
    """The first 500 jobs of 1, 2, 4 or 8 GPUs: it has no others of at most 8."""
    jobs = [job for job in philly_jobs(TRACE, "6c71a0") if job.gpus <= 8][:500]
    assert {job.gpus for job in jobs} == {1, 2, 4, 8}
    return tuple(jobs)


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


class Counted(EASY):
    """Counts the jobs that it looks at, and the ends that it asks for."""

    asked = tried = 0

    def _end_after(self, *arguments):
        self.asked += 1
        return super()._end_after(*arguments)

    def _start(self, *arguments):
        self.tried += 1
        return super()._start(*arguments)


def looks(count):
    """Looks of EASY at each of `count` jobs of four sizes, of which nearly all wait at once."""
    rows = [(float(k), 50.0 + 37 * k % 101, (1, 2, 4, 3)[k % 4]) for k in range(count)]
    jobs = [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)]
    policy = Counted()
    replay(rigid_workload(jobs, 1, 8), policy)
    return policy.asked / count, policy.tried / count


def test_a_line_ten_times_as_long_costs_each_job_no_more_looks():
    """A look at each job that waits would be ten times as many for each of them."""
    asked, tried = looks(200)
    more_asked, more_tried = looks(2000)
    assert more_tried < 1.5 * tried < 12
    # The tree is a few levels higher.
    assert more_asked < 2.5 * asked
