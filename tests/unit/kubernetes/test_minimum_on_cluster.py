"""OasisJobs with a minimum of workers under the policies that plan ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, Server
from oasis.driver.driver import Driver
from oasis.kubernetes.control.job_reader import check_plannable
from oasis.kubernetes.objects.oasis_job import JobSpec, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.kubernetes.instance_objects import job_object
from tests.unit.kubernetes.fakes import CLOCK, FakeCluster, site_for, specs_of
from tests.unit.kubernetes.test_live_controllers import live_oasis

HORIZON = 40
EDITED = 3  # slot in which the owners change their minds


def job(name: str, arrival: int, least: int, most: int, work: int, value: float) -> Job:
    """A job of `work` worker-slots; its workers need half a parameter server each."""
    return Job(
        name,
        arrival,
        epochs=work,
        chunks=most,
        minibatches=1,
        minibatch_time=1 / most,
        gradient_mb=0.0,
        worker={"gpu": 1.0, "cpu": 1.0, "bandwidth_gbps": 1.0},
        ps={"cpu": 1.0, "bandwidth_gbps": 2.0},
        utility=oasis.Sigmoid(value, 0.3, 12.0),
        min_workers=least,
    )


def instance() -> Instance:
    """Eight GPUs, and more gangs of three than they hold beside the single workers."""
    resources = ("gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_gbps")
    full = {"gpu": 4.0, "cpu": 16.0, "memory_gb": 8.0, "storage_gb": 8.0, "bandwidth_gbps": 9.0}
    cluster = Cluster(
        resources,
        (Server("w", full, 2),),
        (Server("p", {**full, "gpu": 0.0}, 2),),
        CLOCK.work_seconds,
    )
    jobs = [
        job("gang0", 0, 3, 6, 20, 60.0),
        job("single0", 0, 1, 2, 9, 30.0),
        job("gang1", 1, 3, 3, 10, 50.0),
        job("gang2", 2, 3, 5, 11, 55.0),
        job("single1", 2, 1, 4, 7, 30.0),
        job("gang3", 4, 5, 8, 16, 70.0),
    ]
    return Instance(HORIZON, cluster, tuple(jobs))


def live_recourse(_: Instance) -> oasis.Recourse:
    return oasis.Recourse.rolling(HORIZON, keep_admitted=True)


POLICIES: Mapping[str, Callable[[Instance], Any]] = {
    "oasis": lambda made: live_oasis(made, HORIZON),
    "recourse": live_recourse,
    "recourse with a horizon": lambda _: oasis.Recourse(),
}


def edited(spec: JobSpec, made: Job, least: int) -> JobSpec:
    """The object after its owner has written another minimum."""
    found = job_object(
        replace(made, min_workers=least),
        CLOCK,
        slot_seconds=CLOCK.work_seconds,
    )
    found["metadata"] |= {"uid": spec.uid, "generation": spec.generation + 1}
    return parse_job(found, CLOCK, DEFAULT_RESOURCES)


@pytest.mark.parametrize("name", POLICIES)
def test_a_gang_is_admitted_and_has_no_pod_or_its_minimum_in_each_slot(name: str) -> None:
    made = instance()
    specs = specs_of(made)
    assert [spec.min_workers for spec, _ in specs.values()] == [3, 1, 3, 3, 1, 5]
    policy = POLICIES[name](made)
    for spec, _ in specs.values():
        check_plannable(spec, policy)
    cluster = FakeCluster(Driver(policy, site_for(made, HORIZON)), specs)
    cluster.run(HORIZON)
    assert {"uid-gang0", "uid-gang1", "uid-gang2"} <= cluster.completed.keys()
    for slot, uid, allocation in cluster.history:
        spec, arrival = specs[uid]
        assert slot >= arrival
        assert spec.min_workers <= allocation.worker_count <= spec.job.chunks
    for uid in cluster.completed:
        assert cluster.done[uid] >= specs[uid][0].job.work(CLOCK.work_seconds)
    most = max(
        sum(a.worker_count for s, _, a in cluster.history if s == slot) for slot in range(HORIZON)
    )
    assert most == 8


@pytest.mark.parametrize("least", [1, 5])
@pytest.mark.parametrize("name", POLICIES)
def test_an_edit_of_the_minimum_is_obeyed_from_the_next_boundary_on(name: str, least: int) -> None:
    made = instance()
    specs, before = specs_of(made), {j.id: j.min_workers for j in made.jobs}
    cluster = FakeCluster(Driver(POLICIES[name](made), site_for(made, HORIZON)), dict(specs))
    changed = {"gang0", "gang2"}
    for slot in range(HORIZON):
        if slot == EDITED:
            for each in made.jobs:
                if each.id in changed:
                    uid = f"uid-{each.id}"
                    spec, arrival = specs[uid]
                    cluster.jobs = {**cluster.jobs, uid: (edited(spec, each, least), arrival)}
        cluster.step(slot)
    ran = set()
    for slot, uid, allocation in cluster.history:
        now = least if uid[4:] in changed and slot >= EDITED else before[uid[4:]]
        assert allocation.worker_count >= now
        ran |= {uid} if slot >= EDITED else set()
    assert {"uid-gang0", "uid-gang2"} <= ran & cluster.completed.keys()


def test_the_rest_of_a_gang_that_is_late_holds_its_minimum() -> None:
    """One worker-slot is left because pods came late; three workers do it."""
    made = instance()
    made = replace(made, jobs=(replace(made.jobs[2], arrival=0, utility=Constant(5.0)),))
    specs = specs_of(made)
    cluster = FakeCluster(Driver(live_recourse(made), site_for(made, None)), specs)
    cluster.step(0)
    cluster.done["uid-gang1"] = 2.5
    for slot in range(1, 8):
        cluster.step(slot)
    assert cluster.completed == {"uid-gang1": 3}
    assert {allocation.worker_count for _, _, allocation in cluster.history} == {3}


def test_a_gang_that_is_behind_its_plan_but_on_time_goes_on() -> None:
    """Its plan does six worker-slots for work of four: 0.6 fewer in one slot harm nobody."""
    resources = ("gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_gbps")
    room = dict.fromkeys(resources, 9.0) | {"gpu": 8.0}
    servers = (Server("w", room),), (Server("p", {**room, "gpu": 0.0}),)
    machines = Cluster(resources, *servers, CLOCK.work_seconds)

    def one(name: str, least: int, most: int, work: int, utility: Any) -> Job:
        numbers: dict[str, Any] = {"epochs": work, "chunks": most, "minibatch_time": 1 / most}
        needs: dict[str, Any] = {"worker": {"gpu": 1.0}, "ps": {}, "gradient_mb": 0.0}
        return Job(name, 0, minibatches=1, **numbers, **needs, utility=utility, min_workers=least)

    gang = one("gang", 3, 3, 4, oasis.Piecewise((0.0, 1.0, 2.0), (2.0, 2.0, 0.0)))
    rival = oasis.Piecewise((0.0, 1.0, 2.0), (90.0, 90.0, 0.0))
    made = Instance(20, machines, (gang, *(one(f"o{k}", 1, 5, 5, rival) for k in range(6))))
    past = [one(f"p{k}", 1, 4, w, Constant(v)) for k, (w, v) in enumerate([(4, 5.0), (8, 100.0)])]
    bounds = oasis.PriceBounds.from_jobs(past, machines, 20)
    policy = oasis.OASiS.rolling(20, bounds, keep_admitted=True)
    played = FakeCluster(Driver(policy, site_for(made, None)), specs_of(made))
    played.step(0)
    played.done["uid-gang"] -= 0.6
    played.step(1)
    held = [a.worker_count for _, uid, a in played.history if uid == "uid-gang"]
    assert held == [3, 3]
    assert not policy.late
    assert played.done["uid-gang"] == 6.0 - 0.6
