"""The KOD2 paper's experiment: its jobs, the operator that deadlocks, and what the rows say."""

from __future__ import annotations

import pytest

from experiments.figures.kod2 import (
    EXPOSED,
    FIG7,
    KOD2,
    OPERATOR,
    Operator,
    mean_busy,
    measure,
    ten_jobs,
)
from oasis.simulator import Machine, PolicyJob, Site, Workload, replay
from tests.packaging.figure_rows import rows as data


def test_the_jobs_are_those_of_the_paper():
    made = ten_jobs("VGG-16", 64, 3)
    assert [job.arrival for job in made.jobs] == [30.0 * k for k in range(10)]
    assert {job.ps_needed(job.max_workers) for job in made.jobs} == {1}
    assert [machine.amounts for machine in made.site.machines] == [(10.0, 32.0)] * 3
    other = ten_jobs("ResNet-50", 8, 3)
    assert [job.worker for job in made.jobs] == [job.worker for job in other.jobs]
    rigid = ten_jobs("VGG-16", 64, 3, rigid=True)
    asked = [job.initial_workers for job in made.jobs]
    assert [job.min_workers for job in rigid.jobs] == asked


def test_pods_that_interleave_deadlock_the_operator_and_not_kod2():
    """VGG-16 at 32: in every draw some job holds pods for an hour and never gets all of them."""
    for seed in range(3):
        own, _ = measure(ten_jobs("VGG-16", 32, seed, rigid=True), OPERATOR)
        other, _ = measure(ten_jobs("VGG-16", 32, seed), KOD2)
        assert own["terminated"] > 0
        assert own["stalled"] > 0
        assert other["terminated"] == other["stalled"] == 0


def test_who_waits_for_a_while_is_not_terminated():
    jobs = [PolicyJob(n, 0.0, 90.0, ((0, 1),), min_workers=3, max_workers=3) for n in "ab"]
    site = Site(("cpu",), (Machine("n0", (5.0,)),), partial_gangs=True)
    ends = [job.end for job in replay(Workload.of(site, jobs), Operator(31.0)).jobs]
    assert ends == [30.0, 60.0]
    refusals = [job.refusal for job in replay(Workload.of(site, jobs), Operator(29.0)).jobs]
    assert refusals == [None, "terminated in a deadlock"]


def test_workers_that_wait_for_the_network_keep_no_core_busy():
    made = ten_jobs("VGG-16", 64, 0)
    _, steps = measure(made, KOD2)
    ideal = sum(job.work * dict(job.worker)[0] for job in made.jobs)
    ends = [*(time for time, _ in steps[1:]), steps[-1][0]]
    area = sum(cores * (end - begin) for (begin, cores), end in zip(steps, ends, strict=True))
    assert ideal < area  # beside them there are only parameter servers
    assert area == pytest.approx(mean_busy(steps, 0.0, ends[-1]) * 30 * ends[-1])
    assert steps[-1][1] == pytest.approx(0.0, abs=1e-9)


def test_all_of_the_network_comes_nearest_the_published_reduction():
    def reduction(exposed):
        found = []
        for seed in range(6):
            means = [
                measure(ten_jobs("VGG-16", 128, seed, rigid=rigid, exposed=exposed), policy)[0]
                for rigid, policy in ((True, OPERATOR), (False, KOD2))
            ]
            found.append(1 - means[1]["mean"] / means[0]["mean"])
        return sum(found) / len(found)

    published = FIG7[("VGG-16", 128)]
    choices = {exposed: abs(reduction(exposed) - published) for exposed in (1.0, 1 / 2, 1 / 3)}
    assert min(choices, key=choices.__getitem__) == EXPOSED


def test_four_workers_on_one_node_are_four_times_as_quick_and_more_wait_for_the_network():
    rows = data("kod2-4", model="VGG-16")
    assert [round(row["speedup"], 9) for row in rows[:4]] == [1.0, 2.0, 3.0, 4.0]
    assert all(row["speedup"] < 4 / 2 for row in rows[4:])
