"""An instance on a control plane: its servers as nodes, its jobs as OasisJobs, one policy."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import oasis
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.simulator.costs import ChangeCosts
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
    """Make a namespace, and nodes labelled ``pool`` with its name, beside those of others."""
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

    def over(reconciler: Reconciler) -> bool:
        return reconciler.slot is not None and reconciler.slot >= last

    own = {"horizon": last, "node_selector": pool(scene)}
    return Stepped(scene, policy, arrivals, over, **own)


def completions(scene: Scene, horizon: int) -> dict[str, int | None]:
    """The slot in which each job completed, within the horizon."""
    return completed_within(scene.statuses(), horizon)


def completed_within(
    statuses: Mapping[str, Mapping[str, Any]], horizon: int
) -> dict[str, int | None]:
    """The slot in which each job completed by its status; None: within the horizon it did not."""
    found = {name: status.get("completionSlot") for name, status in statuses.items()}
    return {name: None if slot is None or slot >= horizon else slot for name, slot in found.items()}


def delayed(clock: SlotClock, start_up: float) -> ChangeCosts:
    """The costs of changes where a worker takes `start_up` seconds, less what is allowed for."""
    part = max(0.0, start_up - clock.startup_seconds) / clock.work_seconds
    return ChangeCosts(start=part, resume=part, resize=part, migrate=part)


def late_jobs(
    there: Mapping[str, int | None], simulated: Mapping[str, int | None], horizon: int
) -> dict[str, tuple[int | None, int]]:
    """Jobs that completed more than a slot after they do in a simulation, with both slots."""
    return {
        name: (there[name], slot)
        for name, slot in simulated.items()
        if slot is not None
        and slot + 1 < horizon
        and ((found := there[name]) is None or found > slot + 1)
    }
