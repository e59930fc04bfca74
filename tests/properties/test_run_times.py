"""A minimum run time and the cost of a change, on random streams of jobs in the driver."""

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
from oasis.scheduling.capabilities import wants
from oasis.scheduling.job import NOTHING, Allocation
from tests.properties.test_recourse_stays import cluster_of_equals
from tests.unit.kubernetes.fakes import site_for, specs_of

KEEPING = [
    name
    for name in sorted(POLICIES)
    if name != "oasis" and wants(cluster_policy(name, {}, lookahead=40)(), "keeps_run_times")
]


class World:
    """Runs a driver; `cost` slots of work are lost after each change of a job that runs."""

    def __init__(self, instance: oasis.Instance, policy: Any, minimum: int, cost: float) -> None:
        self.jobs, self.cost, self.minimum = specs_of(instance), cost, minimum
        self.driver: Driver[Any] = Driver(policy, site_for(instance, None), minimum)
        self.done: dict[str, float] = {}
        self.over: dict[str, int] = {}
        self.held: dict[str, Allocation] = {}
        self.since: dict[str, int] = {}
        self.idle: dict[str, float] = {}
        self.down: frozenset[int] = frozenset()
        self.changes = 0

    def step(self, slot: int) -> None:
        there = {u: s for u, (s, at) in self.jobs.items() if at <= slot and u not in self.over}
        costs = dict.fromkeys(there, self.cost)
        facts = Facts(there, dict(self.done), down=self.down, costs=costs)
        outcome = self.driver.boundary(slot, facts)
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
                    self.changes += 1
                    self.idle[uid] = self.cost
                self.since[uid] = slot
            self.held[uid] = after
            worked = max(0.0, 1.0 - self.idle.get(uid, 0.0))
            self.idle[uid] = max(0.0, self.idle.get(uid, 0.0) - 1.0)
            self.done[uid] = self.done.get(uid, 0.0) + worked * after.worker_count


def policy_for(name: str) -> Any:
    return cluster_policy(name, {}, lookahead=40)()


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("seed", range(6))
def test_no_job_is_changed_before_its_time(name: str, seed: int) -> None:
    instance = cluster_of_equals(seed)
    world = World(instance, policy_for(name), 1 + seed, 0.0)
    rng = random.Random(seed)
    for slot in range(40):
        world.down = frozenset({0}) if rng.random() < 0.1 else frozenset()
        world.step(slot)
        if len(world.over) == len(world.jobs):
            break
    assert world.over, "jobs end"


def earned(seed: int, cost: float, is_told: bool) -> tuple[float, int]:
    """Utility of the jobs of an instance if changes cost so much, and how many there were."""
    instance = cluster_of_equals(seed)
    world = World(instance, policy_for("recourse"), 0, cost)
    if not is_told:
        world.driver._pass = _untold(world.driver._pass)  # type: ignore[method-assign]
    for slot in range(40):
        world.step(slot)
        if len(world.over) == len(world.jobs):
            break
    jobs = {f"uid-{job.id}": job for job in instance.jobs}
    total = 0.0
    for uid, slot in world.over.items():
        job = jobs[uid]
        if world.done.get(uid, 0.0) >= job.work(1.0) - 1e-6:
            total += float(job.utility(slot - 1 - job.arrival))
    return total, world.changes


def _untold(take_in: Any) -> Any:
    return lambda slot, facts: take_in(slot, replace(facts, costs={}))


def test_knowing_what_changes_cost_earns_more_on_the_sum() -> None:
    told = [earned(seed, 1.5, True) for seed in range(6)]
    untold = [earned(seed, 1.5, False) for seed in range(6)]
    assert sum(t for t, _ in told) > sum(t for t, _ in untold)
    assert sum(n for _, n in told) < sum(n for _, n in untold)
