"""Policies of rigid jobs against independent ones, on Philly, its shape and random jobs."""

import os
from operator import itemgetter
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oasis import (
    DRF,
    EASY,
    FIFO,
    LAS,
    SJF,
    SRSF,
    SRTF,
    FinishTimeFairness,
    Gittins,
    InstanceError,
    PlainJob,
    replay,
    rigid_workload,
)
from tests.oracle import reference_schedulers as reference
from tests.philly_shape import philly_jobs, philly_shaped

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"
SERVERS = {"pooled": [64], "whole": [8] * 8}
LINES = ("strict", "fit")
# the policy with its levels in hours, and the reference with them in seconds
PAIRS = {
    "fifo": (lambda _, **line: FIFO(**line), lambda *given: reference.fifo(*given[:2], given[3])),
    "sjf": (lambda _, **line: SJF(**line), lambda *given: reference.sjf(*given[:2], given[3])),
    "srtf": (lambda _, **line: SRTF(**line), lambda *given: reference.srtf(*given[:2], given[3])),
    "srsf": (lambda _, **line: SRSF(**line), lambda *given: reference.srsf(*given[:2], given[3])),
    "easy": (lambda *_, **__: EASY(), lambda jobs, servers, *_: reference.easy(jobs, servers)),
    "las": (lambda levels, **line: LAS(thresholds=levels, **line), reference.las),
    "running-first": (
        lambda levels, **line: LAS(thresholds=levels, order="running-first", **line),
        reference.running_first,
    ),
    "gittins": (lambda levels, **line: Gittins(levels=levels, **line), reference.gittins),
    "fairness": (
        lambda levels, **line: FinishTimeFairness(lease=levels[0], **line),
        lambda jobs, servers, levels, fills: reference.finish_time_fairness(
            jobs, servers, *levels, fills
        ),
    ),
}
# seconds of the levels on traces and on random jobs; exact fractions take long on many jobs
LEVELS = {
    "las": ([3600], [9]),
    "running-first": ([3600, 18_000], [8, 32]),
    "gittins": ([900, 3600, 28_800], [4, 16, 32]),
    "fairness": ([7200], [5]),
}
SHAPES = {"gittins": (250, 0, 120.0), "fairness": (200, 0, 120.0), "running-first": (400, 1)}


def random_jobs(sizes, *more):
    rows = st.tuples(st.integers(0, 40), st.integers(0, 30), st.sampled_from(sizes), *more)
    return st.lists(rows, min_size=1, max_size=20).map(lambda jobs: sorted(jobs, key=itemgetter(0)))


random_servers = st.sampled_from([[4], [4, 4], [4, 4, 4]])


def on_whole(jobs, servers):
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    return rigid_workload(plain, len(servers), 4, "whole")


def compare(name, rows, servers, line, workload, levels):
    """Every job begins and ends when the reference says, and so the means agree."""
    policy, expected = PAIRS[name]
    outcome = replay(workload, policy(tuple(s / 3600 for s in levels), line=line))
    world = expected(rows, servers, levels, line == "fit")
    assert [times.end for times in outcome.jobs] == pytest.approx(list(map(float, world.ends)))
    assert [times.start for times in outcome.jobs] == pytest.approx(list(map(float, world.starts)))
    mean = fmean(end - row[0] for end, row in zip(world.ends, rows, strict=True))
    assert outcome.mean_completion == pytest.approx(mean, rel=1e-12)
    for times, latest in zip(outcome.jobs, world.promised or rows, strict=True):
        assert name != "easy" or all(times.start <= time for time in latest)
    return outcome


def compare_on(jobs, name, placement, line="strict"):
    rows = [(int(job.submitted), int(job.duration), job.gpus) for job in jobs]
    levels, _ = LEVELS.get(name, ([], []))
    workload = rigid_workload(jobs, 8, 8, placement)
    return compare(name, rows, SERVERS[placement], line, workload, levels)


@pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")
@pytest.mark.parametrize("placement", SERVERS)
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in SHAPES])
def test_every_job_of_a_philly_virtual_cluster_ends_when_the_reference_says(name, placement):
    jobs = philly_jobs(TRACE, "0e4a51")
    assert len(jobs) == 1435
    compare_on(jobs, name, placement)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("placement", SERVERS)
@pytest.mark.parametrize("name", PAIRS)
def test_every_job_of_a_trace_of_phillys_shape_ends_when_the_reference_says(name, placement, line):
    jobs = philly_shaped(*SHAPES.get(name, (600, 1)))
    outcome = compare_on(jobs, name, placement, line)
    if name == "running-first":
        by_arrival = LAS(thresholds=(1.0, 5.0), line=line)
        other = replay(rigid_workload(jobs, 8, 8, placement), by_arrival)
        assert other.completions != pytest.approx(outcome.completions)
    elif name in SHAPES:
        assert sum(times.restarts for times in outcome.jobs) > 5
    else:
        assert sum(times.waiting > 0 for times in outcome.jobs) > 50  # it is full at times


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", PAIRS)
@given(jobs=random_jobs([1, 2, 3, 4]), servers=random_servers)
@example(jobs=[(0, 0, 1), (0, 0, 4), (0, 5, 4)], servers=[4])
@example(jobs=[(0, 9, 2), (0, 9, 4), (1, 9, 2)], servers=[4])
@example(  # a job arrives at 28, when another comes and goes
    jobs=[(17, 12, 4), (19, 10, 1), (21, 8, 1), (23, 6, 1), (27, 0, 4), (28, 1, 2)],
    servers=[4, 4],
)
def test_every_random_job_ends_when_the_reference_says(name, line, jobs, servers):
    _, levels = LEVELS.get(name, ([], []))
    compare(name, jobs, servers, line, on_whole(jobs, servers), levels)


@given(jobs=random_jobs([1, 2, 4], st.sampled_from("abc")), servers=random_servers)
@example(jobs=[(0, 9, 4, "a"), (0, 9, 4, "a"), (0, 9, 4, "b")], servers=[4, 4])
def test_by_owner_the_next_job_is_of_whoever_has_least(jobs, servers):
    outcome = replay(on_whole(jobs, servers), DRF(by="owner"))
    assert [times.end for times in outcome.jobs] == reference.by_owner(jobs, servers).ends


def test_by_job_rigid_jobs_go_in_order_of_arrival_and_those_that_fit_pass():
    jobs = philly_shaped(400, 1)
    outcome = replay(rigid_workload(jobs, 8, 8), DRF())
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    by_arrival = reference.ordered(rows, [64], True, lambda k, world: k)
    assert [times.end for times in outcome.jobs] == by_arrival.ends


def test_backfilling_makes_a_difference():
    workload = rigid_workload(philly_shaped(600, 1), 8, 8)
    easy, fifo = (replay(workload, policy).mean_completion for policy in (EASY(), FIFO()))
    assert easy < 0.95 * fifo


def test_jobs_larger_than_a_server_cannot_run_whole():
    job = PlainJob("big", 0.0, 1.0, 5)
    with pytest.raises(InstanceError, match=r"jobs\[0\]\.gpus: expected 1\.\.4, got 5"):
        rigid_workload([job], 2, 4, "whole")
    assert replay(rigid_workload([job], 2, 4), FIFO()).mean_completion == 1.0
