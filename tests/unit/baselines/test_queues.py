"""The policies of simulators of GPU clusters on cases worked out by hand."""

import os
from pathlib import Path
from statistics import median

import pytest

from baselines.counts import Gpus
from baselines.preemptive import (
    LAS,
    SRSF,
    SRTF,
    PreemptiveCapacity,
    ServiceLevels,
    check_levels,
)
from baselines.queues import EASY, FIFO, Misfits, Queued, check_line
from oasis.scheduling import Allocation, BestFit, Machine, PolicyJob, Room, Site
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


@needs_trace
def test_jobs_are_moved_a_third_as_often_where_free_room_comes_first():
    """Placing as if all behind were gone took 575 moves."""
    outcome = replay(rigid_workload(first_of_6c71a0(), 8, 8, "whole"), SRTF())
    assert sum(times.migrations for times in outcome.jobs) == 217


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


def test_the_median_of_two_is_midway():
    assert run(FIFO(), [(0, 10, 4), (0, 20, 4)]).median_completion == 20.0
    outcome = run(FIFO(), [(k, 10 * k + 1, 1) for k in range(4)])
    assert outcome.median_completion == median(outcome.completions) == 16.0
    assert (
        run(FIFO(), [(0, 1, 4)], outages=[Outage(0, 0.5, float("inf"))]).median_completion is None
    )


# --- one policy after the other -----------------------------------------------------------------


@pytest.mark.parametrize("policy", [EASY, FIFO])
def test_queued_jobs_that_lose_a_server_return_to_their_place(policy):
    rows = [(0, 10, 4), (1, 10, 4)]
    assert ends(policy(), rows, outages=[Outage(0, 5.0, 7.0)]) == [12.0, 22.0]
    assert issubclass(policy, Queued)


# --- parts --------------------------------------------------------------------------------------


def test_lines_levels_and_gpus():
    assert check_line("fit") == "fit"
    assert check_levels((1, 2), "levels") == (1, 2)
    site = Site(("gpu",), (Machine("n0", (4.0,)),), unit_seconds=1800.0)
    assert ServiceLevels((1.0,), site).ends == [2.0]
    assert ServiceLevels((1.0,), site).level(2.0) == 1
    job = PolicyJob("a", 0.0, 1.0, ((0, 2),), max_workers=2)
    assert Gpus(site).of(job, 2) == 4.0
    assert Gpus(Site(("cpu",), (Machine("n0", (4.0,)),))).of(job, 2) == 2.0


def test_who_does_not_fit_is_remembered_by_size():
    small, large = (PolicyJob(n, 0.0, 1.0, ((0, size),)) for n, size in (("s", 1), ("l", 2)))
    misfits = Misfits()
    assert not misfits.has(large, 1, 0)
    misfits.add(large, 1, 0)
    assert misfits.has(large, 1, 0)
    assert not misfits.has(small, 1, 0)


def test_turns_displace_only_where_nothing_is_free():
    site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    later, now, last = (PolicyJob(n, 0.0, 1.0, ((0, 1),), index=k) for k, n in enumerate("abc"))

    class Present:
        def free(self):
            return [(0,), (4,)]

        def down(self):
            return set()

        def allocation(self, job):
            return Allocation(((0, 4),))

    capacity = PreemptiveCapacity(site, BestFit(), Present(), [later])
    assert capacity.start(now, 4, 0) == Allocation(((1, 4),))
    assert capacity.start(last, 4, 0) == Allocation(((0, 4),))
    assert not capacity.keep(later)
    assert capacity.start(later, 4, 0) is None


def test_what_is_occupied_twice_is_less_than_nothing():
    site = Site(("gpu",), (Machine("n0", (4.0,)),))
    room = Room(site, [(4,)])
    job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    room.occupy(job, Allocation(((0, 3),)))
    room.occupy(job, Allocation(((0, 3),)))
    assert room.free == [(-2,)]
    assert room.count(0, job.worker, 4) == 0
