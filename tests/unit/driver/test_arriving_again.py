"""Jobs that arrive once more, on other machines or after a takeover: nothing of them is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import oasis
from baselines import FIFO
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts, Submission
from oasis.scheduling import Machine, Site
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of


def begun() -> tuple[FakeCluster, str]:
    """A cluster on which one job is running and has not done all of its work."""
    shipped = replace(oasis.generate("testbed", jobs=3, seed=1), horizon=60)
    cluster = FakeCluster(Driver(FIFO(), site_for(shipped, 60)), specs_of(shipped))
    cluster.run(5)
    ((uid, entry),) = cluster.driver.by_uid.items()
    assert 0 < cluster.done[uid] < entry.work
    return cluster, uid


def specs(cluster: FakeCluster) -> dict[str, Any]:
    return {uid: spec for uid, (spec, arrival) in cluster.jobs.items() if arrival <= 4}


def test_the_last_slot_of_work_counts_where_machines_change():
    cluster, uid = begun()
    driver = cluster.driver
    driver.rebuild(driver.site)
    driver.boundary(5, Facts(specs(cluster), {uid: 3.0}))
    entry = driver.by_uid[uid]
    assert (entry.done, entry.held) == (3.0, 1)
    assert entry.job.arrival == 5  # once more
    assert entry.job.work == pytest.approx(entry.work - 3.0, abs=1.0)


@pytest.mark.parametrize("how", ["its work is done", "its pods say so"])
def test_a_job_that_is_done_when_machines_change_completes(how):
    cluster, uid = begun()
    driver = cluster.driver
    work = driver.by_uid[uid].work
    driver.rebuild(driver.site)
    facts = (
        Facts(specs(cluster), {uid: work})
        if how == "its work is done"
        else Facts(specs(cluster), {uid: 3.0}, ended=frozenset([uid]))
    )
    outcome = driver.boundary(5, facts)
    assert outcome.completed == [uid]
    assert outcome.entries[uid].spec.uid == uid
    assert not driver.jobs
    assert driver.boundary(6, facts).admitted == []  # as long as its object is there


def test_an_edit_counts_at_once_where_machines_change():
    cluster, uid = begun()
    driver = cluster.driver
    edited = specs(cluster)
    job = replace(edited[uid].job, epochs=3 * edited[uid].job.epochs)
    edited[uid] = replace(edited[uid], job=job, generation=2)
    driver.rebuild(driver.site)
    before = cluster.jobs[uid][0].job.work(driver.site.unit_seconds)
    driver.boundary(5, Facts(edited, {uid: 1.0}))
    assert driver.by_uid[uid].work > 2 * before


def test_a_job_that_is_remembered_completes_if_it_is_done():
    cluster, uid = begun()
    spec, work = cluster.jobs[uid][0], cluster.driver.by_uid[uid].work
    for done, ended, completed in ((work, (), True), (1.0, (uid,), True), (1.0, (), False)):
        driver: Driver[Any] = Driver(FIFO(), cluster.driver.site)
        driver.remember(spec, 1, done)
        outcome = driver.boundary(5, Facts({uid: spec}, {uid: done}, ended=frozenset(ended)))
        assert (outcome.completed == [uid]) is completed
        assert (uid in driver.by_uid) is not completed
        assert outcome.admitted == []
    gone: Driver[Any] = Driver(FIFO(), cluster.driver.site)
    gone.remember(spec, 1, 1.0)
    assert gone.boundary(5, Facts({})).completed == []  # it was deleted meanwhile
    assert not gone.jobs


@pytest.mark.parametrize(("commitment", "broken"), [("none", 0), ("arrival", 1)])
def test_a_promise_is_broken_once_and_only_if_it_was_made(commitment, broken):
    """While its patience runs out again and again, a job is decided on anew, and no promise is."""
    shipped = replace(oasis.generate("testbed", jobs=1, seed=1), horizon=60)
    job = replace(shipped.jobs[0], arrival=0, utility=oasis.Constant(5.0))
    shipped = replace(shipped, jobs=(job,))
    policy = oasis.Recourse.rolling(
        20,
        commitment,
        patience=20,
        keep_admitted=True,
        **(
            {"admission": "oasis", "bounds": oasis.PriceBounds.from_instance(shipped)}
            if broken
            else {}
        ),
    )
    driver: Driver[Any] = Driver(policy, site_for(shipped, None))
    ((uid, (spec, _)),) = specs_of(shipped).items()
    down = frozenset(range(len(driver.site.machines)))
    late: list[str] = []
    arrivals = 0
    for slot in range(60):
        outcome = driver.boundary(slot, Facts({uid: spec}, down=frozenset() if slot == 0 else down))
        assert outcome.error is None
        late += outcome.late
        arrivals += bool(policy.planner and policy.planner.plan.live)
        if not driver.jobs:
            break
    assert late == [uid] * broken
    assert arrivals == (19 if broken else 60)  # its patience is 20 slots; then it needs a promise


def test_after_a_takeover_only_jobs_that_were_to_arrive_once_more_do_so():
    cluster, uid = begun()
    (other, *_) = (name for name in cluster.jobs if name != uid)
    known = {name: spec for name, (spec, _) in cluster.jobs.items()}
    cluster.driver.remember(known[other], 1, 2.0)
    state = json.loads(json.dumps(cluster.driver.state()))
    driver: Driver[Any] = Driver(FIFO(), cluster.driver.site)
    driver.restore(state, known, lambda _, spec: spec or known[uid])
    assert (driver.by_uid.keys(), driver.arriving_again) == ({uid}, {other})
    assert driver.by_uid[uid].allocation == cluster.driver.by_uid[uid].allocation
    assert json.loads(json.dumps(driver.state())) == state


def test_late_jobs_share_what_the_plan_leaves():
    """What one of them takes is taken once."""
    resources = ("gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_gbps")
    machine = oasis.Server("w", dict.fromkeys(resources, 9.0) | {"gpu": 4.0})
    machines = oasis.Cluster(resources, (machine,), (), 60.0)
    needs: dict[str, Any] = {"worker": {"gpu": 1.0}, "ps": {}, "gradient_mb": 0.0}
    jobs = tuple(
        oasis.Job(f"j{k}", 0, 9, 2, 1, 30.0, **needs, utility=oasis.Deadline(5.0, 30.0))
        for k in range(2)
    )
    bounds = oasis.PriceBounds.from_jobs(jobs, machines, 20)
    late = oasis.OASiS.rolling(20, bounds, keep_admitted=True)
    driver: Driver[Any] = Driver(late, site_for(oasis.Instance(20, machines, jobs), None))
    known = {f"u{k}": Submission(f"u{k}", job) for k, job in enumerate(jobs)}
    for spec in known.values():
        driver.remember(spec, 0, 0.0)
    assert driver.boundary(40, Facts(known)).error is None
    assert [entry.allocation.worker_count for entry in driver.jobs.values()] == [2, 2]


class Told(FIFO):
    """Notes which machines it is told to be lost or back."""

    def reset(self, site: Any) -> None:
        super().reset(site)
        self.told: list[Any] = []

    def decide(self, view: Any) -> Any:
        self.told.append((view.lost.copy(), view.returned.copy()))
        return super().decide(view)


def test_a_smaller_machine_is_lost_and_back_at_once_and_a_larger_one_only_back():
    def of(*gpus: float) -> Site:
        machines = tuple(Machine(f"n{k}", (most,)) for k, most in enumerate(gpus))
        return Site(("gpu",), machines, slotted=True)

    policy = Told()
    driver: Driver[Any] = Driver(policy, of(4.0, 4.0, 4.0))
    driver.boundary(0, Facts({}))
    driver.resize(of(3.0, 6.0, 4.0))
    driver.resize(of(2.0, 8.0, 4.0))
    for slot in (1, 2):  # told once
        driver.boundary(slot, Facts({}))
        assert policy.told == [([0], [0, 1])]
