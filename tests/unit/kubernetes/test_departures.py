"""Jobs that their owners take back, waiting or running: the policy is told that they left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oasis
from baselines import registry
from baselines.queues import Queued
from experiments.evaluation.live import cluster_policy
from oasis.driver.driver import Driver
from oasis.scheduling import Plan
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of

EXAMPLE = Path(__file__).parents[3] / "docs/examples/congested.json"
SLOTS = 200
OPTIONS = {"kod2": {"starve_limit": 3.0}}  # seconds: jobs starve before they are taken back


class Watched:
    """A policy that counts how often it began, and notes which jobs it was told to have left."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.begun, self.left = policy, 0, []
        self.name, self.slotted = policy.name, policy.slotted
        self.told_remaining = policy.told_remaining

    def reset(self, site: Any) -> None:
        self.begun += 1
        self.policy.reset(site)

    def decide(self, view: Any) -> Plan:
        self.left += [job.index for job in view.finished]
        return self.policy.decide(view)


def scarce(name: str, jobs: int = 30) -> tuple[FakeCluster, Watched]:
    """A cluster with far more work than it can do at a time."""
    shipped = oasis.read(EXAMPLE)
    instance = oasis.generate("testbed", jobs=jobs, seed=4, horizon=20)
    horizon = 4 * SLOTS if name == "recourse" else None
    policy = Watched(
        cluster_policy(name, OPTIONS.get(name, {}), lookahead=SLOTS, horizon=horizon)()
    )
    instance = oasis.Instance(instance.horizon, shipped.cluster, instance.jobs)
    driver = Driver(policy, site_for(instance, horizon))  # type: ignore[arg-type]
    return FakeCluster(driver, specs_of(instance)), policy


@pytest.mark.parametrize("name", [*registry.ALL, "recourse"])
def test_a_job_that_is_taken_back_leaves_and_the_policy_goes_on(name: str) -> None:
    """Every third slot the owner of a job that waits takes it back, and of one that runs."""
    cluster, policy = scarce(name)
    gone: dict[str, int] = {}  # the slot in which each job was gone that its owner took back
    indices = set()
    for slot in range(SLOTS):
        live = [
            entry
            for entry in cluster.driver.entries.values()
            if cluster.done.get(entry.spec.uid, 0.0) < entry.work  # what is done is complete
        ]
        runs = [entry for entry in live if entry.allocation.workers]
        waits = [entry for entry in live if not entry.allocation.workers]
        taken = waits[slot % 2 :: 7][:1] + runs[1:2] if slot % 3 == 1 else []
        for entry in taken:
            gone[entry.spec.uid] = slot
            indices.add(entry.job.index)
            del cluster.jobs[entry.spec.uid]  # type: ignore[attr-defined]
        cluster.step(slot)
    assert policy.begun == 1, "it did not begin anew"
    assert len(gone) >= 4
    assert indices <= set(policy.left)
    for slot, uid, _ in cluster.history:
        assert slot < gone.get(uid, SLOTS), "nobody holds anything after leaving"
    ended = cluster.completed.keys() | cluster.rejected.keys()
    assert not ended & gone.keys()
    assert len(ended) + len(gone) == 30, "everybody else came to an end"


QUEUED = [
    name
    for name, make in registry.ALL.items()
    if isinstance(make, type) and issubclass(make, Queued)
]


@pytest.mark.parametrize("name", QUEUED)
def test_those_that_run_are_not_moved_when_one_that_waits_leaves(name: str) -> None:
    cluster, policy = scarce(name)
    taken = 0
    for slot in range(12):
        before = {e.spec.uid: e.allocation for e in cluster.driver.entries.values()}
        last = [uid for uid, held in before.items() if not held.workers][-1:]
        for uid in last if slot > 4 else ():
            del cluster.jobs[uid]  # type: ignore[attr-defined]
            taken += 1
        cluster.step(slot)
        for entry in cluster.driver.entries.values():
            held = before.get(entry.spec.uid)
            if held is not None and held.workers:
                assert entry.allocation == held
    assert taken > 3
    assert policy.begun == 1
