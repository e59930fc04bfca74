"""Pods bound one by one: spread, first in first out, and the deadlock of two gangs."""

import pytest

from baselines.kubernetes_default import KubernetesDefault
from oasis.simulator import (
    Machine,
    Outage,
    PolicyJob,
    Site,
    Workload,
    replay,
)


def gang(name, arrival=0.0, workers=4, work=40.0, **changes):
    given = {"min_workers": workers, "max_workers": workers}
    return PolicyJob(name, arrival, work, ((0, 1),), **(given | changes))


def workload(*jobs, gpus=(2, 2, 2), partial=True, **site):
    made = tuple(Machine(f"n{k}", (float(size),)) for k, size in enumerate(gpus))
    return Workload.of(Site(("gpu",), made, partial_gangs=partial, **site), jobs)


@pytest.mark.parametrize("partial", [True, False])
def test_two_gangs_of_two_thirds_whose_pods_come_by_turns_wait_for_each_other(partial):
    """Each needs 4 of 6 GPUs and gets 3 of them."""
    work = workload(gang("a"), gang("b"), partial=partial)
    outcome = replay(work, KubernetesDefault())
    assert [times.end for times in outcome.jobs] == [None, None]
    assert [times.running for times in outcome.jobs] == [0.0, 0.0]


def test_pods_that_enter_the_queue_job_after_job_do_not_deadlock():
    outcome = replay(workload(gang("a"), gang("b")), KubernetesDefault(interleave=False))
    assert [times.end for times in outcome.jobs] == [10.0, 20.0]
    assert outcome.jobs[1].stalled == outcome.jobs[1].waiting == 10.0  # it held 2 of 4 meanwhile


def test_a_gang_that_loses_a_machine_comes_again_at_the_end_of_the_queue():
    """At 2, b gets the last of its GPUs; a has 32 of 40 left and goes on when b is done."""
    jobs = (gang("a"), gang("b", arrival=1.0))
    outcome = replay(workload(*jobs), KubernetesDefault(), outages=[Outage(0, 2.0, 3.0)])
    assert [times.end for times in outcome.jobs] == [20.0, 12.0]
    assert [times.restarts for times in outcome.jobs] == [1, 0]
