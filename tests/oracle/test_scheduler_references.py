"""FIFO, SRTF and LAS against forty independent lines, on the Philly trace and on random jobs."""

import os
from pathlib import Path

import pytest
import reference_schedulers as reference
from hypothesis import example, given
from hypothesis import strategies as st

from baselines import FIFO, LAS, SRTF
from oasis import InstanceError
from oasis.simulator import PlainJob, replay, rigid_workload
from oasis.traces import read_philly_plain
from tests.philly_shape import philly_shaped

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"
PAIRS = {
    "fifo": (FIFO, reference.fifo),
    "srtf": (SRTF, reference.srtf),
    "las": (LAS, lambda jobs, servers: reference.las(jobs, servers, 3600.0)),
}
SERVERS = {"pooled": [64], "whole": [8] * 8}
plain_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=25,
)


@pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")
@pytest.mark.parametrize("placement", ["pooled", "whole"])
@pytest.mark.parametrize("name", PAIRS)
def test_mean_completion_on_a_philly_virtual_cluster_is_that_of_the_reference(name, placement):
    jobs = read_philly_plain(TRACE, virtual_cluster="0e4a51")
    assert len(jobs) == 1435
    policy, expected = PAIRS[name]
    outcome = replay(rigid_workload(jobs, 8, 8, placement), policy())
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    assert f"{outcome.mean_completion:.6f}" == f"{expected(rows, SERVERS[placement]):.6f}"


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("placement", ["pooled", "whole"])
@pytest.mark.parametrize("name", PAIRS)
def test_mean_completion_on_a_trace_of_phillys_shape_is_that_of_the_reference(
    name, placement, seed
):
    jobs = philly_shaped(600, seed)
    policy, expected = PAIRS[name]
    outcome = replay(rigid_workload(jobs, 8, 8, placement), policy())
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    assert sum(times.waiting > 0 for times in outcome.jobs) > 50  # the cluster is full at times
    assert f"{outcome.mean_completion:.6f}" == f"{expected(rows, SERVERS[placement]):.6f}"


@pytest.mark.parametrize("name", PAIRS)
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
@example(jobs=[(0, 0, 1), (0, 0, 4), (0, 5, 4)], servers=[4])
def test_mean_completion_on_random_jobs_is_that_of_the_reference(name, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    policy, expected = PAIRS[name]
    policy = policy()
    if name == "las":
        policy = LAS(thresholds=(0.0025,))
        expected = lambda rows, room: reference.las(rows, room, 9.0)  # noqa: E731
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    assert len(outcome.completions) == len(jobs)
    assert outcome.mean_completion == pytest.approx(expected(jobs, servers), rel=1e-12)


@pytest.mark.parametrize("name", ["srtf", "las"])
@given(jobs=plain_jobs, servers=st.sampled_from([[4], [4, 4]]))
def test_with_backfill_the_mean_completion_is_that_of_the_reference_too(name, jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    if name == "las":
        policy = LAS(thresholds=(0.0025,), line="backfill")
        expected = reference.las(jobs, servers, 9.0, fills=True)
    else:
        policy, expected = SRTF(line="backfill"), reference.srtf(jobs, servers, fills=True)
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), policy)
    assert len(outcome.completions) == len(jobs)
    assert outcome.mean_completion == pytest.approx(expected, rel=1e-12)


def test_jobs_larger_than_a_server_cannot_run_whole():
    job = PlainJob("big", 0.0, 1.0, 5)
    with pytest.raises(InstanceError, match=r"jobs\[0\]\.gpus: expected 1\.\.4, got 5"):
        rigid_workload([job], 2, 4, "whole")
    assert replay(rigid_workload([job], 2, 4), FIFO()).mean_completion == 1.0
