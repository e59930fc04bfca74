"""FIFO, SJF, SRTF, SRSF and LAS against fifty independent lines, on Philly and on random jobs."""

import os
from pathlib import Path
from statistics import fmean

import pytest
import reference_schedulers as reference
from hypothesis import example, given
from hypothesis import strategies as st

from baselines import FIFO, LAS, SJF, SRSF, SRTF
from oasis import InstanceError
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.philly_shape import philly_jobs, philly_shaped

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"
PAIRS = {
    "fifo": (FIFO, reference.fifo),
    "sjf": (SJF, reference.sjf),
    "srtf": (SRTF, reference.srtf),
    "srsf": (SRSF, reference.srsf),
    "las": (LAS, lambda jobs, servers, fills: reference.las(jobs, servers, 3600.0, fills)),
}
SERVERS = {"pooled": [64], "whole": [8] * 8}
LINES = ("strict", "fit")
plain_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=25,
)


def compare(jobs, policy, expected, placement):
    """Every job ends when the reference says, and so the means agree."""
    outcome = replay(rigid_workload(jobs, 8, 8, placement), policy)
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    ends = expected(rows, SERVERS[placement], policy.line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)
    means = fmean(end - job.submitted for end, job in zip(ends, jobs, strict=True))
    assert f"{outcome.mean_completion:.6f}" == f"{means:.6f}"
    return outcome


@pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")
@pytest.mark.parametrize("placement", ["pooled", "whole"])
@pytest.mark.parametrize("name", PAIRS)
def test_every_job_of_a_philly_virtual_cluster_ends_when_the_reference_says(name, placement):
    jobs = philly_jobs(TRACE, "0e4a51")
    assert len(jobs) == 1435
    policy, expected = PAIRS[name]
    compare(jobs, policy(), expected, placement)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("placement", ["pooled", "whole"])
@pytest.mark.parametrize("name", PAIRS)
def test_every_job_of_a_trace_of_phillys_shape_ends_when_the_reference_says(name, placement, line):
    policy, expected = PAIRS[name]
    outcome = compare(philly_shaped(600, 1), policy(line=line), expected, placement)
    assert sum(times.waiting > 0 for times in outcome.jobs) > 50  # the cluster is full at times


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", PAIRS)
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
@example(jobs=[(0, 0, 1), (0, 0, 4), (0, 5, 4)], servers=[4])
def test_every_random_job_ends_when_the_reference_says(name, line, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    policy, expected = PAIRS[name]
    policy = policy(line=line)
    if name == "las":
        policy = LAS(thresholds=(0.0025,), line=line)
        expected = lambda rows, room, fills: reference.las(rows, room, 9.0, fills)  # noqa: E731
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    ends = expected(jobs, servers, line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(ends, rel=1e-12)


def test_jobs_larger_than_a_server_cannot_run_whole():
    job = PlainJob("big", 0.0, 1.0, 5)
    with pytest.raises(InstanceError, match=r"jobs\[0\]\.gpus: expected 1\.\.4, got 5"):
        rigid_workload([job], 2, 4, "whole")
    assert replay(rigid_workload([job], 2, 4), FIFO()).mean_completion == 1.0
