"""Jobs that their owners take back, waiting or running: the policy is told that they left."""

from __future__ import annotations

from collections.abc import Callable
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
        self.name, self.slotted, self.told_remaining = (
            policy.name,
            policy.slotted,
            policy.told_remaining,
        )

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


def run_taking_back(
    cluster: FakeCluster, which: Callable[[int, list[Any]], list[Any]]
) -> dict[str, int]:
    """Run to the end; the slot in which each job was gone that its owner took back."""
    gone: dict[str, int] = {}
    for slot in range(SLOTS):
        live = [
            entry
            for entry in cluster.driver.entries.values()
            if cluster.done.get(entry.spec.uid, 0.0) < entry.work  # what is done is complete
        ]
        for entry in which(slot, live):
            gone[entry.spec.uid] = slot
            del cluster.jobs[entry.spec.uid]  # type: ignore[attr-defined]
        cluster.step(slot)
    return gone


def waits(entries: list[Any]) -> list[Any]:
    return [entry for entry in entries if not entry.allocation.workers]


@pytest.mark.parametrize("name", [*registry.ALL, "recourse"])
def test_a_job_that_is_taken_back_leaves_and_the_policy_goes_on(name: str) -> None:
    """Every third slot the owner of a job that waits takes it back, and of one that runs."""
    cluster, policy = scarce(name)

    def some(slot: int, entries: list[Any]) -> list[Any]:
        runs = [entry for entry in entries if entry.allocation.workers]
        return waits(entries)[slot % 2 :: 7][:1] + runs[1:2] if slot % 3 == 1 else []

    indices = {}

    def noted(slot: int, entries: list[Any]) -> list[Any]:
        found = some(slot, entries)
        indices.update({entry.spec.uid: entry.job.index for entry in found})
        return found

    gone = run_taking_back(cluster, noted)
    assert policy.begun == 1, "it did not begin anew"
    assert len(gone) >= 4
    assert indices.keys() == gone.keys()
    assert set(indices.values()) <= set(policy.left)
    for slot, uid, _ in cluster.history:
        assert slot < gone.get(uid, SLOTS), "nobody holds anything after leaving"
    ended = cluster.completed.keys() | cluster.rejected.keys()
    assert not ended & gone.keys()
    assert len(ended) + len(gone) == 30, "everybody else came to an end"


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, make in registry.ALL.items()
        if isinstance(make, type) and issubclass(make, Queued)
    ],
)
def test_those_that_run_are_not_moved_when_one_that_waits_leaves(name: str) -> None:
    cluster, policy = scarce(name)
    taken = 0
    for slot in range(12):
        before = {e.spec.uid: e.allocation for e in cluster.driver.entries.values()}
        left = waits(list(cluster.driver.entries.values()))[-1:] if slot > 4 else []
        for entry in left:
            del cluster.jobs[entry.spec.uid]  # type: ignore[attr-defined]
        taken += len(left)
        cluster.step(slot)
        for entry in cluster.driver.entries.values():
            held = before.get(entry.spec.uid)
            if held is not None and held.workers:
                assert entry.allocation == held
    assert taken > 3
    assert policy.begun == 1


def test_the_last_of_a_line_leaves_as_if_it_had_never_come() -> None:
    """FIFO with a strict line: who stands behind everybody changes nothing for the others."""
    ends = []
    for taken in (True, False):
        cluster, _ = scarce("fifo")
        last = max(
            cluster.jobs, key=lambda uid: (cluster.jobs[uid][1], list(cluster.jobs).index(uid))
        )
        if not taken:
            del cluster.jobs[last]  # type: ignore[attr-defined]

        def leaving(slot: int, entries: list[Any], last: str = last) -> list[Any]:
            here = [entry for entry in entries if entry.spec.uid == last]
            assert all(not entry.allocation.workers for entry in here)
            return here

        gone = run_taking_back(cluster, leaving)
        assert bool(gone) is taken
        ends.append(cluster.completed)
    assert ends[0] == ends[1]
    assert len(ends[0]) > 10
