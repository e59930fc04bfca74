"""LAS that keeps running jobs first, against lists of its own."""

import pytest
import reference_running_first as reference
from hypothesis import example, given
from hypothesis import strategies as st

from baselines import LAS
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.philly_shape import philly_shaped

plain_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("line", ["strict", "fit"])
@pytest.mark.parametrize(("placement", "servers"), [("pooled", [64]), ("whole", [8] * 8)])
def test_every_job_of_a_trace_of_phillys_shape_ends_when_the_reference_says(
    placement, servers, line
):
    jobs = philly_shaped(400, 1)
    policy = LAS(thresholds=(1.0, 5.0), order="running-first", line=line)
    outcome = replay(rigid_workload(jobs, 8, 8, placement), policy)
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    ends = reference.ends(rows, servers, [3600.0, 18000.0], line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
    by_arrival = LAS(thresholds=(1.0, 5.0), line=line)
    assert replay(rigid_workload(jobs, 8, 8, placement), by_arrival).completions != pytest.approx(
        outcome.completions
    )


@pytest.mark.parametrize("line", ["strict", "fit"])
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
@example(jobs=[(0, 9, 2), (0, 9, 4), (1, 9, 2)], servers=[4])
def test_every_random_job_ends_when_the_reference_says(line, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    policy = LAS(thresholds=(8 / 3600, 32 / 3600), order="running-first", line=line)
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    ends = reference.ends(jobs, servers, [8.0, 32.0], line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
