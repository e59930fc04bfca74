"""EASY backfilling against lists of its own, and what it promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import EASY, FIFO
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.oracle import reference_easy as reference
from tests.philly_shape import philly_shaped

SERVERS = {"pooled": [64], "whole": [8] * 8}
plain_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 3, 4])),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("placement", SERVERS)
def test_every_job_of_a_trace_of_phillys_shape_runs_when_the_reference_says(placement):
    jobs = philly_shaped(600, 1)
    workload = rigid_workload(jobs, 8, 8, placement)
    outcome = replay(workload, EASY())
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    expected, _ = reference.schedule(rows, SERVERS[placement])
    assert [(times.start, times.end) for times in outcome.jobs] == expected
    line = replay(workload, FIFO())
    assert outcome.mean_completion < 0.95 * line.mean_completion  # it does make a difference


@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
def test_every_random_job_runs_when_the_reference_says_and_promises_are_kept(jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), EASY())
    expected, promised = reference.schedule(jobs, servers)
    assert [(times.start, times.end) for times in outcome.jobs] == expected
    for times, latest in zip(outcome.jobs, promised, strict=True):
        assert all(times.start <= time for time in latest)
