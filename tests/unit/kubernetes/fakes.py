"""A cluster in memory for tests of what decides: the pods of a plan run from the first moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.evaluation.live import cluster_policy
from oasis import PriceBounds
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.kubernetes.cluster.nodes import Machines
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.instance import Instance
from tests.kubernetes.instance_objects import job_object, node_objects

CLOCK = SlotClock(slot_seconds=2.0, startup_seconds=0.5)


def specs_of(instance: Instance, clock: SlotClock = CLOCK) -> dict[str, tuple[JobSpec, int]]:
    """The jobs of an instance as they are read back from their objects, with their arrivals."""
    found = {}
    for job in instance.jobs_by_arrival():
        made = job_object(job, clock, slot_seconds=instance.slot_seconds)
        made["metadata"] |= {"uid": f"uid-{job.id}", "generation": 1}
        found[made["metadata"]["uid"]] = parse_job(made, clock, DEFAULT_RESOURCES), job.arrival
    return found


def site_for(instance: Instance, horizon: int | None, clock: SlotClock = CLOCK) -> Any:
    """The site of the nodes that an instance's servers become."""
    seen = Seen({"nodes": node_objects(instance.cluster)})
    return Machines.of(seen, DEFAULT_RESOURCES, None, clock.work_seconds, horizon).site


def cluster_with(name: str, instance: Instance, more: int = 0) -> FakeCluster:
    """The jobs of an instance on a cluster in memory, by a policy that is told their U and L.

    It plans so many slots further than the instance has.
    """
    bounds = PriceBounds.from_instance(instance)
    ahead = instance.horizon + more
    make = cluster_policy(name, {}, lookahead=ahead, bounds=lambda _: bounds)
    return FakeCluster(Driver(make(), site_for(instance, None)), specs_of(instance))


class FakeCluster:
    """Runs a driver on the jobs of an instance; every worker that is planned does its work."""

    def __init__(self, driver: Driver, jobs: Mapping[str, tuple[JobSpec, int]]) -> None:
        self.driver, self.jobs = driver, jobs
        self.done: dict[str, float] = {}
        self.completed: dict[str, int] = {}
        self.rejected: dict[str, str] = {}
        self.history: list[tuple[int, str, Any]] = []
        self.down: dict[int, set[int]] = {}

    def step(self, slot: int) -> None:
        specs = {
            uid: spec
            for uid, (spec, arrival) in self.jobs.items()
            if arrival <= slot and uid not in self.completed and uid not in self.rejected
        }
        down = frozenset(self.down.get(slot, ()))
        facts = Facts(specs, dict(self.done), down=down)
        outcome = self.driver.boundary(slot, facts)
        for uid in outcome.completed:
            self.completed[uid] = slot - 1
        self.rejected |= outcome.rejected | outcome.given_up
        for uid, entry in self.driver.by_uid.items():
            if entry.allocation.workers:
                self.history.append((slot, uid, entry.allocation))
            self.done[uid] = self.done.get(uid, entry.done) + entry.allocation.worker_count

    def run(self, slots: int) -> None:
        for slot in range(slots):
            self.step(slot)
