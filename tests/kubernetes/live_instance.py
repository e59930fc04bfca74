"""An instance on a control plane: its servers as nodes, its jobs as OasisJobs, one policy."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import oasis
from oasis.kubernetes.control.brain import Brain
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.scene import Scene
from tests.kubernetes.stepped import CLOCK, Stepped


def renamed(cluster: oasis.Cluster, pool: str) -> oasis.Cluster:
    """The same servers under names of their own, in the same order."""
    worker, ps = (
        tuple(replace(server, id=f"{pool}-{server.id}") for server in group)
        for group in (cluster.worker_servers, cluster.ps_servers)
    )
    return oasis.Cluster(cluster.resources, worker, ps, cluster.slot_seconds)


def scene_for(cluster: Cluster, name: str, servers: oasis.Cluster) -> Scene:
    """A namespace, and nodes with its name as their label ``pool``, beside those of others."""
    home = Cluster(cluster.plane, f"{cluster.namespace}-{name}-{secrets.token_hex(2)}")
    home.create_namespace()
    scene = Scene(cluster.plane, home.namespace, CLOCK)
    scene.add_nodes(renamed(servers, home.namespace), {"pool": home.namespace})
    return scene


def pool(scene: Scene) -> str:
    """Selects the nodes of `scene_for`."""
    return f"pool={scene.namespace}"


def stepped_through(scene: Scene, instance: oasis.Instance, policy: Callable[[], Any]) -> Stepped:
    """`instance` in `scene`, slot by slot, up to the boundary at which its last slot is closed."""
    last = instance.horizon

    def arrivals(slot: int) -> list[dict[str, Any]]:
        jobs = instance.jobs_by_arrival()
        return [scene.job(job, instance.slot_seconds) for job in jobs if job.arrival == slot]

    def over(brain: Brain) -> bool:
        return brain.driver.slot is not None and brain.driver.slot >= last

    return Stepped(scene, policy, arrivals, over, horizon=last, node_selector=pool(scene))


def completions(scene: Scene, horizon: int) -> dict[str, int | None]:
    """The slot in which each job completed, within the horizon."""
    found = {name: status.get("completionSlot") for name, status in scene.statuses().items()}
    return {name: None if slot is None or slot >= horizon else slot for name, slot in found.items()}
