"""Gittins and finish-time fairness against exact fractions."""

import pytest
import reference_moving_orders as reference
from hypothesis import example, given
from hypothesis import strategies as st

from baselines import FinishTimeFairness, Gittins
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.philly_shape import philly_shaped

HOURS = (0.25, 1.0, 8.0)
LINES = ("strict", "fit")
plain_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=15,
)


def rows_of(jobs):
    return [(int(job.submitted), int(job.duration), job.gpus) for job in jobs]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("placement", "servers"), [("pooled", [64]), ("whole", [8] * 8)])
def test_gittins_ends_every_job_of_phillys_shape_when_the_reference_says(placement, servers, line):
    jobs = philly_shaped(250, 0, 120.0)
    outcome = replay(rigid_workload(jobs, 8, 8, placement), Gittins(levels=HOURS, line=line))
    levels = [int(3600 * hours) for hours in HOURS]
    ends = reference.gittins(rows_of(jobs), servers, levels, line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
    assert sum(times.restarts for times in outcome.jobs) > 10


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("placement", "servers"), [("pooled", [64]), ("whole", [8] * 8)])
def test_fairness_ends_every_job_of_phillys_shape_when_the_reference_says(placement, servers, line):
    jobs = philly_shaped(200, 0, 120.0)
    policy = FinishTimeFairness(lease=2.0, line=line)
    outcome = replay(rigid_workload(jobs, 8, 8, placement), policy)
    ends = reference.finish_time_fairness(rows_of(jobs), servers, 7200, line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
    assert sum(times.restarts for times in outcome.jobs) > 5


@pytest.mark.parametrize("line", LINES)
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
def test_gittins_ends_every_random_job_when_the_reference_says(line, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    policy = Gittins(levels=(4 / 3600, 16 / 3600, 32 / 3600), line=line)
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    ends = reference.gittins(jobs, servers, [4, 16, 32], line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize("line", LINES)
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
@example(  # a job arrives at 28, when another comes and goes
    jobs=[(17, 12, 4), (19, 10, 1), (21, 8, 1), (23, 6, 1), (27, 0, 4), (28, 1, 2)],
    servers=[4, 4],
)
def test_fairness_ends_every_random_job_when_the_reference_says(line, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    policy = FinishTimeFairness(lease=5 / 3600, line=line)
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    ends = reference.finish_time_fairness(jobs, servers, 5, line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
