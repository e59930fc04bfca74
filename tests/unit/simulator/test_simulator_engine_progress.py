"""Work left and work done: what a policy is told of jobs that pause, are evicted or end."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest

from oasis.simulator import NOTHING, Allocation, Machine, Outage, Plan, PolicyJob, Site, View
from oasis.simulator.run import replay
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import Workload

ON_A, ON_B = Allocation(((0, 1),)), Allocation(((1, 1),))


class Watcher:
    """Answers by time and asks for the work left in every job, once a unit of time."""

    name, slotted, told_remaining = "watcher", False, True

    def __init__(self, plans: dict[float, Plan], until: float) -> None:
        self.plans, self.until = plans, until
        self.parameters: dict[str, object] = {}

    def reset(self, site: Site) -> None:
        self.left: dict[float, list[float]] = {}
        self.attained: dict[float, list[float]] = {}

    def decide(self, view: View) -> Plan:
        jobs = list(view.jobs())
        self.left[view.now] = [view.remaining(job) for job in jobs]
        self.attained[view.now] = [view.attained(job) for job in jobs]
        plan = self.plans.get(view.now, Plan())
        if view.now < self.until:
            plan.wake_at = view.now + 1.0
        return plan


def workload(*works: float, horizon: float | None = None, slotted: bool = False) -> Workload:
    machines = (Machine("m0", (2.0,)), Machine("m1", (2.0,)))
    site = Site(("gpu",), machines, slotted=slotted, horizon=horizon)
    jobs = (PolicyJob(f"j{k}", 0.0, work, ((0, 1),), max_workers=2) for k, work in enumerate(works))
    return Workload.of(site, jobs)


def test_a_paused_job_neither_gains_nor_loses_work() -> None:
    policy = Watcher({0.0: Plan({0: ON_A}), 1.0: Plan({0: NOTHING}), 4.0: Plan({0: ON_B})}, 6.0)
    (job,) = replay(workload(4.0), policy).jobs
    assert [policy.left[t] for t in range(7)] == [[4.0], [3.0], [3.0], [3.0], [3.0], [2.0], [1.0]]
    assert [policy.attained[t] for t in range(7)] == [[0], [1], [1], [1], [1], [2], [3]]
    assert (job.end, job.running, job.waiting) == (7.0, 4.0, 3.0)


def test_an_evicted_job_keeps_its_progress_and_does_not_end_by_itself() -> None:
    policy = Watcher({0.0: Plan({0: ON_A, 1: ON_B})}, 9.0)
    outcome = replay(workload(4.0, 3.0), policy, outages=[Outage(0, 1.0)])
    assert policy.left[2.0] == [3.0, 1.0]
    assert policy.left[9.0] == [3.0]
    assert [job.end for job in outcome.jobs] == [None, 3.0]
    assert outcome.jobs[0].running == 1.0


def test_job_that_is_done_has_no_work_left() -> None:
    settled: list[tuple[str, float, float | None]] = []

    def settle(progress: JobProgress) -> None:
        settled.append((progress.job.id, progress.remaining, progress.end))

    plan = Plan({0: ON_A}, {1: "no"})
    replay(workload(0.3, 2.0), Watcher({0.0: plan}, 0.0), on_settled=settle)
    assert settled == [("j1", 2.0, None), ("j0", 0.0, 0.3)]


@pytest.mark.parametrize("slotted", [False, True])
def test_work_that_ends_with_the_horizon_has_ended(slotted: bool) -> None:
    policy = Watcher({0.0: Plan({0: ON_A, 1: ON_B})}, 0.0)
    outcome = replay(workload(3.0, 3.5, horizon=3.0, slotted=slotted), policy)
    assert [job.end for job in outcome.jobs] == [3.0, None]
    assert outcome.until == 3.0
    assert list(policy.left) == [0.0]  # what ends with the horizon is nothing to decide on


def test_job_that_is_told_the_same_keeps_what_it_holds() -> None:
    policy = Watcher({0.0: Plan({0: ON_A}), 1.0: Plan({0: ON_A})}, 2.0)
    outcome = replay(workload(4.0), policy)
    assert outcome.jobs[0].end == 4.0
    assert outcome.timeline == ((0.0, (1, 0)), (4.0, (0, 0)))


def test_time_of_the_policy_is_part_of_the_time_of_the_run() -> None:
    begin = perf_counter()
    outcome = replay(workload(4.0), Watcher({0.0: Plan({0: ON_A})}, 3.0))
    elapsed = perf_counter() - begin
    assert outcome.calls == 5
    assert 0.0 < outcome.policy_seconds + outcome.simulator_seconds <= elapsed
    assert outcome.policy_seconds >= 0.0
    assert outcome.simulator_seconds >= 0.0


@pytest.mark.parametrize(
    ("reject", "ends"), [(lambda job: job.id == "j0", [None, 2.0]), (lambda job: False, [2.0, 2.0])]
)
def test_policy_may_reject_at_any_time_and_the_rest_goes_on(
    reject: Callable[[PolicyJob], bool], ends: list[float | None]
) -> None:
    work = workload(2.0, 2.0)
    refused = {job.index: "too late" for job in work.jobs if reject(job)}
    policy = Watcher({0.0: Plan({0: ON_A, 1: ON_B}), 1.0: Plan({}, refused)}, 1.0)
    outcome = replay(work, policy)
    assert [job.end for job in outcome.jobs] == ends
    assert [job.refusal for job in outcome.jobs] == [
        "too late" if end is None else None for end in ends
    ]
