"""Jobs that never finish: their number, and how long they waited."""

from __future__ import annotations

from dataclasses import replace

import oasis
from baselines import FIFO, KubernetesDefault
from oasis import Cluster, Deadline, Instance, Job, Server
from oasis.scheduling import BasePolicy, Plan, View
from oasis.simulator import (
    Machine,
    Outcome,
    Policy,
    PolicyJob,
    ScalingTable,
    Site,
    Workload,
    replay,
)

ONE_NODE = Site(("gpu",), (Machine("n0", (4.0,)),), partial_gangs=True)


def gang(name: str, arrival: float, work: float, workers: int = 3) -> PolicyJob:
    """A job of `workers` workers, each on a GPU."""
    return PolicyJob(name, arrival, work, ((0, 1),), min_workers=workers, max_workers=workers)


def run(policy: Policy, *jobs: PolicyJob, site: Site = ONE_NODE) -> Outcome:
    return replay(Workload.of(site, jobs), policy)


def waits(outcome: Outcome) -> list[float]:
    return [job.waiting for job in outcome.jobs]


class Leaves(FIFO):
    """FIFO that never answers anything for the jobs of these names."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def decide(self, view):  # type: ignore[no-untyped-def]
        plan = super().decide(view)
        names = {job.index: job.id for job in view.jobs()}
        kept = {k: held for k, held in plan.changes.items() if names.get(k) not in self._names}
        return Plan(kept, plan.rejected, plan.wake_at)


class Waits(BasePolicy):
    """Starts no job."""

    def decide(self, view: View) -> Plan:
        return Plan()


def test_two_gangs_that_deadlock_wait_to_the_end_of_the_run() -> None:
    """Nothing happens after time 0: one after the other, they would need 60 seconds."""
    stuck = run(KubernetesDefault(), gang("a", 0.0, 90.0), gang("b", 0.0, 90.0))
    assert stuck.unfinished == 2
    assert stuck.until == stuck.makespan == 60.0
    assert waits(stuck) == [60.0, 60.0]
    assert [job.stalled for job in stuck.jobs] == [60.0, 60.0]
    assert stuck.figures()["unfinished"] == 2
    assert stuck.figures()["waiting"] == 120.0


def test_the_end_of_a_deadlock_counts_from_the_last_event() -> None:
    """c runs to 30; then the other two hold two GPUs each, and would need 30 and 20 seconds."""
    jobs = [gang("c", 0.0, 30.0, workers=1), gang("a", 10.0, 90.0), gang("b", 10.0, 60.0)]
    stuck = run(KubernetesDefault(), *jobs)
    assert (stuck.unfinished, stuck.jobs[0].end) == (2, 30.0)
    assert stuck.until == 30.0 + 30.0 + 20.0
    assert waits(stuck) == [0.0, 70.0, 70.0]


def test_a_policy_that_leaves_the_long_job_waits_no_less_than_one_that_runs_it() -> None:
    jobs = [gang("long", 0.0, 300.0), gang("short", 1.0, 30.0), gang("next", 2.0, 30.0)]
    whole, left = run(FIFO(), *jobs), run(Leaves("long"), *jobs)
    assert (whole.unfinished, left.unfinished) == (0, 1)
    assert left.mean_completion < whole.mean_completion  # of the others alone
    assert left.jobs[0].waiting == left.until >= 100.0
    assert left.makespan >= whole.makespan


def test_a_deadlock_looks_no_better_where_more_workers_are_allowed_than_fit() -> None:
    """Thirty workers are allowed, four fit: alone each job takes 22.5 seconds, not 3."""
    jobs = [replace(gang(name, 0.0, 90.0), max_workers=30) for name in "ab"]
    stuck, done = run(KubernetesDefault(seed=None), *jobs), run(FIFO(seed=None), *jobs)
    assert (stuck.unfinished, done.unfinished) == (2, 0)
    assert stuck.until == stuck.makespan == done.makespan == 45.0
    assert sum(waits(stuck)) > sum(waits(done))


def test_a_deadlock_looks_no_better_where_workers_share_what_they_do() -> None:
    """Three workers do as much as 1.2: alone each job takes 75 seconds, not 30."""
    work = Workload.of(ONE_NODE, [gang("a", 0.0, 90.0), gang("b", 0.0, 90.0)])
    speed = ScalingTable(dict.fromkeys("ab", (1.0, 1.1, 1.2)))
    stuck, done = (replay(work, policy, speed=speed) for policy in (KubernetesDefault(), FIFO()))
    assert (stuck.unfinished, done.unfinished) == (2, 0)
    assert stuck.until == stuck.makespan == done.makespan == 150.0
    assert sum(waits(stuck)) > sum(waits(done))


def test_a_job_that_fits_no_machine_waits_as_long_as_its_fewest_workers_would_need() -> None:
    job = replace(gang("huge", 0.0, 90.0, workers=9), min_workers=6)
    left = run(Waits(), job)
    assert (left.unfinished, left.until) == (1, 15.0)


def test_a_run_in_which_every_job_settles_ends_with_its_last_event() -> None:
    jobs = [gang("a", 0.0, 90.0), gang("b", 5.0, 30.0)]
    assert run(FIFO(), *jobs).until == 40.0


def test_with_a_horizon_the_jobs_that_are_left_wait_until_then() -> None:
    cluster = Cluster(("gpu",), (Server("w", {"gpu": 1.0}),), (Server("p", {}),), slot_seconds=1.0)
    jobs = tuple(
        Job(name, arrival, 9, 1, 1, 1.0, 0.0, {"gpu": 1.0}, {}, Deadline(1.0, 8.0))
        for name, arrival in (("runs", 0), ("waits", 2))
    )
    outcome = oasis.simulate(Instance(4, cluster, jobs), FIFO()).outcome
    assert outcome is not None
    assert (outcome.unfinished, outcome.until, outcome.makespan) == (2, 4.0, 4.0)
    assert waits(outcome) == [0.0, 2.0]
