"""Dominant resource fairness of rigid jobs, in order of arrival or by owner; who counts once."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from baselines import DRF
from baselines.fair_shares import Fairness, Pools, Portions, Shares
from oasis.simulator import (
    Machine,
    PlainJob,
    PolicyJob,
    Site,
    Workload,
    replay,
    rigid_workload,
)
from tests.oracle import reference_schedulers as reference
from tests.philly_shape import philly_shaped

owned_jobs = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(0, 30), st.sampled_from([1, 2, 4]), st.sampled_from("abc")
    ),
    min_size=1,
    max_size=20,
)


def ends_by_owner(jobs, servers):
    """End of each job (submitted, duration, gpus, owner): who has fewest GPUs gets the next job."""
    left = [duration for _, duration, _, _ in jobs]
    found, running, now = [None] * len(jobs), set(), -1
    while None in found:
        to_come = [job[0] for job in jobs if job[0] > now]
        step = min([left[k] for k in running] + [time - now for time in to_come], default=0)
        now += step
        for k in running:
            left[k] -= step
            if not left[k]:
                found[k] = now
        untried = [k for k, job in enumerate(jobs) if job[0] <= now and found[k] is None]
        free, held, running = list(servers), dict.fromkeys("abc", 0), set()
        while untried:
            k = min(untried, key=lambda k: (held[jobs[k][3]], k))
            untried.remove(k)
            gpus, owner = jobs[k][2:]
            fitting = [(room, s) for s, room in enumerate(free) if room >= gpus]
            if fitting:
                free[min(fitting)[1]] -= gpus
                held[owner] += gpus
                running.add(k)
    return found


@given(jobs=owned_jobs, servers=st.sampled_from([[4], [4, 4], [4, 4, 4]]))
@example(jobs=[(0, 9, 4, "a"), (0, 9, 4, "a"), (0, 9, 4, "b")], servers=[4, 4])
def test_by_owner_the_next_job_is_of_whoever_has_least(jobs, servers):
    jobs = sorted(jobs, key=lambda job: job[0])
    plain = [PlainJob(f"j{k}", *job) for k, job in enumerate(jobs)]
    outcome = replay(rigid_workload(plain, len(servers), 4, "whole"), DRF(by="owner"))
    assert [times.end for times in outcome.jobs] == ends_by_owner(jobs, servers)


def test_by_job_rigid_jobs_go_in_order_of_arrival_and_those_that_fit_pass():
    jobs = philly_shaped(400, 1)
    outcome = replay(rigid_workload(jobs, 8, 8), DRF())
    rows = [(job.submitted, job.duration, job.gpus) for job in jobs]
    by_arrival = reference.ends(rows, [64], lambda k, left: k, preempts=True, fills=True)
    assert [times.end for times in outcome.jobs] == by_arrival


def test_a_machine_that_hosts_both_counts_once():
    """Twelve cores; a: worker and parameter server of one core each, b: a worker of one core."""
    site = Site(("cpu",), (Machine("n0", (12.0,)),))
    a = PolicyJob("a", 0.0, 99.0, ((0, 1),), ((0, 1),), max_workers=12, ps_per_worker=1.0)
    b = PolicyJob("b", 0.0, 99.0, ((0, 1),), max_workers=12)
    work = Workload.of(site, [a, b])
    given = {}

    class Watched(DRF):
        def decide(self, view):
            plan = super().decide(view)
            given.update(
                {index: held for index, held in plan.changes.items() if not given.get(index)}
            )
            return plan

    replay(work, Watched())
    assert [(held.worker_count, held.ps_count) for _, held in sorted(given.items())] == [
        (3, 3),
        (6, 0),
    ]
    fairness = Fairness.among(dict(enumerate(work.jobs)), Portions(site), [(12,)])
    assert fairness.fair == {0: pytest.approx(0.5), 1: pytest.approx(0.5)}
    assert fairness.loss(0, 3) == fairness.loss(1, 6) == pytest.approx(0.0)
    assert Shares(site).dominant(work.jobs[0], 3, 3) == 0.5


def test_apart_they_are_two_resources():
    hosts = [Machine(group, (12.0,), frozenset({group})) for group in ("worker", "ps")]
    site = Site(("cpu",), tuple(hosts))
    job = PolicyJob("a", 0.0, 99.0, ((0, 1),), ((0, 1),), max_workers=12, ps_per_worker=1.0)
    assert Shares(site).dominant(job, 3, 3) == 0.25
    assert Pools(site).totals.tolist() == [12.0, 12.0]
    assert Pools(site).sums([(5,), (0,)]).tolist() == [5.0, 0.0]
