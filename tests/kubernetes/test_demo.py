"""The shipped example on a cluster, decided as `oasis.simulate` decides it.

OASiS, SRTF and FIFO run at the same time, each with its own nodes and namespace, in slots of two
seconds, or of longer ones if the machine is too slow for them (`tests.kubernetes.pace`). Recourse
moves most gangs at most boundaries, and needs longer ones where others use the machine: nightly.
"""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

import oasis
from experiments.evaluation.cluster_policies import cluster_policy, read_bounds
from experiments.evaluation.policies import OASIS, POLICIES
from oasis.kubernetes.objects.oasis_job import Clock
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.demo import imported
from tests.kubernetes.pace import compared, lost_slots
from tests.kubernetes.scene import EXAMPLE, Scene


def renamed(instance: oasis.Instance, pool: str) -> oasis.Instance:
    """The same servers under names of their own, in the same order."""
    cluster = instance.cluster
    groups = (cluster.worker_servers, cluster.ps_servers)
    worker, ps = (
        tuple(replace(server, id=f"{pool}-{server.id}") for server in group) for group in groups
    )
    made = oasis.Cluster(cluster.resources, worker, ps, cluster.slot_seconds)
    return replace(instance, cluster=made)


@pytest.mark.parametrize(
    "policies", [("oasis", "srtf", "fifo"), pytest.param(("recourse",), marks=pytest.mark.nightly)]
)
def test_the_example_is_decided_as_in_the_simulator(
    cluster: Cluster, policies: tuple[str, ...]
) -> None:
    def run(slot: float, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, float]]:
        try:
            return example_on(cluster, slot, names)
        finally:
            cluster.plane.nodes.clear()

    differ = compared(run, policies)
    assert differ == {}, "completed in (slot on the cluster, slot in the simulator)"


def example_on(
    cluster: Cluster, slot: float, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, float]]:
    """What differs from the simulation, and what was late, by policy."""
    shipped = oasis.read(EXAMPLE)
    pools = {name: f"{name}-{secrets.token_hex(2)}" for name in names}
    scenes = {}
    for name, pool in pools.items():
        home = Cluster(cluster.plane, f"{cluster.namespace}-{pool}")
        home.create_namespace()
        scenes[name] = Scene(cluster.plane, home.namespace, Clock(slot, 0.85 * slot))
        scenes[name].add_nodes(renamed(shipped, pool).cluster, {"pool": pool})
    epoch = time.time() + 3.0 + slot
    with ExitStack() as stack:
        made = {}
        for name, scene in scenes.items():
            scene.clock = Clock(slot, 0.85 * slot, epoch)
            for job in shipped.jobs:
                if job.arrival == 0:
                    scene.submit(scene.job(job, shipped.slot_seconds))
            last = shipped.horizon
            bounds = read_bounds(EXAMPLE, last) if name == OASIS else None
            policy = cluster_policy(name, {}, lookahead=last, horizon=last, bounds=bounds)
            pool = {"node_selector": f"pool={pools[name]}", "lease_seconds": 30.0}
            made[name] = stack.enter_context(scene.controller(policy, horizon=last, **pool))
        for job in shipped.jobs_by_arrival():
            if job.arrival > 0:
                time.sleep(max(0.0, epoch + (job.arrival - 0.6) * slot - time.time()))
                for scene in scenes.values():
                    scene.submit(scene.job(job, shipped.slot_seconds))
        time.sleep(max(0.0, epoch + (shipped.horizon + 1.5) * slot - time.time()))
        differ = {}
        for name, scene in scenes.items():
            instance = imported(scene, shipped, f"pool={pools[name]}")
            decisions = oasis.simulate(instance, POLICIES[name].make(instance)).decisions
            here = {d.job_id.rpartition("/")[2]: d.completion for d in decisions}
            there = completions(scene, shipped.horizon)
            if there != here:
                differ[name] = {k: (there[k], here[k]) for k in here if there[k] != here[k]}
        return differ, lost_slots(made)


def completions(scene: Scene, horizon: int) -> dict[str, int | None]:
    """The slot in which each job completed, within the horizon."""
    found = {name: status.get("completionSlot") for name, status in scene.statuses().items()}
    return {name: None if slot is None or slot >= horizon else slot for name, slot in found.items()}
