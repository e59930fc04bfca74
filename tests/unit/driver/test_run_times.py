"""A minimum run time, and a cluster without nodes for parameter servers, in the driver."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import oasis
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import wants
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of
from tests.unit.online.test_recourse_stays import cluster_of_equals

KEEPING = [
    name
    for name in sorted(POLICIES)
    if name != "oasis" and wants(cluster_policy(name, {}, lookahead=40)(), "keeps_run_times")
]


class World:
    """Runs a driver that keeps a job as it is for `minimum` slots."""

    def __init__(self, instance: oasis.Instance, policy: Any, minimum: int) -> None:
        self.jobs, self.minimum = specs_of(instance), minimum
        self.driver: Driver[Any] = Driver(policy, site_for(instance, None), minimum)
        self.done: dict[str, float] = {}
        self.over: dict[str, int] = {}
        self.held: dict[str, Allocation] = {}
        self.since: dict[str, int] = {}
        self.down: frozenset[int] = frozenset()

    def step(self, slot: int) -> None:
        there = {u: s for u, (s, at) in self.jobs.items() if at <= slot and u not in self.over}
        outcome = self.driver.boundary(slot, Facts(there, dict(self.done), down=self.down))
        assert outcome.error is None, outcome.error
        assert not outcome.failed
        live = self.driver.by_uid
        for uid in (*outcome.completed, *outcome.rejected, *outcome.given_up):
            self.over[uid] = slot
        for uid, entry in live.items():
            before, after = self.held.get(uid, NOTHING), entry.allocation
            if after != before:
                if before.workers and not before.machines & self.down:
                    assert slot >= self.since[uid] + self.minimum, (uid, slot)
                self.since[uid] = slot
            self.held[uid] = after
            self.done[uid] = self.done.get(uid, 0.0) + after.worker_count


def policy_for(name: str) -> Any:
    return cluster_policy(name, {}, lookahead=40)()


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("seed", range(6))
def test_no_job_is_changed_before_its_time(name: str, seed: int) -> None:
    instance = cluster_of_equals(seed)
    world = World(instance, policy_for(name), 1 + seed)
    rng = random.Random(seed)
    for slot in range(40):
        world.down = frozenset({0}) if rng.random() < 0.1 else frozenset()
        world.step(slot)
        if len(world.over) == len(world.jobs):
            break
    assert world.over, "jobs end"


def on_a_cluster(instance: oasis.Instance, name: str) -> tuple[Any, ...]:
    """What a policy decides on a cluster in memory, one machine of which is down for a while."""
    bounds = oasis.PriceBounds.from_instance(instance)
    make = cluster_policy(name, {}, lookahead=instance.horizon + 1, bounds=lambda _: bounds)
    cluster = FakeCluster(Driver(make(), site_for(instance, None)), specs_of(instance))
    cluster.down = {slot: {0} for slot in range(1, 3)}
    cluster.run(3 * instance.horizon)
    return cluster.completed, cluster.rejected, cluster.history


@pytest.mark.parametrize("name", POLICIES)
def test_a_cluster_needs_no_node_for_parameter_servers(name: str) -> None:
    sizes = {"jobs": 5, "worker_servers": 3, "horizon": 8}
    instance = oasis.generate("testbed", **sizes, ps_servers=0, seed=2)
    found = on_a_cluster(instance, name)
    assert found[0]
    machine = oasis.Server("unused", instance.cluster.worker_servers[0].capacity, count=2)
    other = replace(instance, cluster=replace(instance.cluster, ps_servers=(machine,)))
    assert found == on_a_cluster(other, name)
