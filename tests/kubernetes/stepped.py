"""A controller whose time stands still until everything of a slot is there.

What is decided on a cluster can be compared with a simulation only if the pods of each slot were
there in time. On a clock of its own no machine is too slow for that, and no quick one waits: the
next slot begins as soon as the pods are those of the plan, all work, and all statuses are written.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import oasis
from tests.kubernetes.cluster import Cluster, Object, has_ended, owner_of
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.scene import Scene

CLOCK = Slots(slot_seconds=1.0)
PATIENCE = 240.0  # seconds of the wall for a slot: not how long one takes, but when to give up


class Stepped:
    """Runs a policy on the jobs that `arrivals` gives for each slot, until `over` is true."""

    # The clock of the scene becomes `CLOCK`.
    def __init__(
        self,
        scene: Scene,
        policy: Callable[[], Any],
        arrivals: Callable[[int], Sequence[Object]],
        over: Callable[[Any], bool],  # of the reconciler of a controller, as in what follows
        **settings: Any,
    ) -> None:
        epoch = float(round(time.time()))
        scene.clock = replace(CLOCK, epoch=epoch)
        self._scene, self._arrivals, self._over = scene, arrivals, over
        self._time = epoch - CLOCK.slot_seconds  # no slot has begun
        self._slot = -1
        self._asked_since = time.monotonic()
        own = {"lease_seconds": 30.0, **settings}  # the slot begins, however long it takes
        self.controller = scene.make(policy, now=lambda: self._time, **own)

    def run(self) -> None:
        self.controller.run(until=self._turned)

    def _turned(self, reconciler: Any) -> bool:
        """Called by the controller after each turn; True ends it."""
        if time.monotonic() > self._asked_since + PATIENCE:
            raise TimeoutError(f"{self._scene.namespace}: {self._missing(reconciler)}")
        if self._missing(reconciler) is not None:
            return False
        if reconciler.slot is not None and self._over(reconciler):
            return True
        self.begin_next(reconciler)
        return False

    def begin_next(self, reconciler: Any) -> None:
        slot = 0 if reconciler.slot is None else reconciler.slot + 1
        for body in self._arrivals(slot):
            self.submit(body)
        self._time, self._slot = reconciler.clock.begin(slot), slot
        self._asked_since = time.monotonic()

    def submit(self, body: Object) -> None:
        store = self.controller.stores["oasisjobs"]
        uid = self._scene.submit(body)["metadata"]["uid"]
        until(
            lambda: uid in {item["metadata"]["uid"] for item in store.items()},
            f"the controller sees {body['metadata']['name']}",
        )

    def pods_of(self, uid: str) -> list[Object]:
        """The pods of a job that the controller sees, and that have not ended."""
        seen = self.controller.stores["pods"].items()
        return [pod for pod in seen if owner_of(pod) == uid and not has_ended(pod)]

    def _missing(self, reconciler: Any) -> str | None:
        """Return what the present slot still waits for; None if nothing is missing."""
        if reconciler is None:
            return "the controller is not at work"
        slot = reconciler.slot
        if slot != self._slot and self._slot >= 0:  # the first plan, too, may take a while
            return f"slot {self._slot} has not begun"
        if slot is None:
            return None
        entries = reconciler.live
        for uid in reconciler.statuses.keys() | entries.keys():
            held = entries[uid].allocation if uid in entries else None
            wanted = 0 if held is None else held.worker_count + held.ps_count
            there = self.pods_of(uid)
            found = [pod for pod in there if "deletionTimestamp" not in pod["metadata"]]
            if len(found) != wanted or len(there) != wanted:
                return f"slot {slot}: {len(found)} of {wanted} pods of {uid} are there"
            if held is not None and len(reconciler.meter.working(uid)) != held.worker_count:
                return f"slot {slot}: {sorted(reconciler.meter.working(uid))} of {uid} work"
        unwritten = [job for job in reconciler.statuses.values() if job.status != job.written]
        return f"slot {slot}: {len(unwritten)} statuses are not written" if unwritten else None


# -- instances: their servers as nodes, their jobs as OasisJobs, one policy ------------------------


def stepped_through(scene: Scene, instance: oasis.Instance, policy: Callable[[], Any]) -> Stepped:
    """`instance` in `scene`, slot by slot, up to the boundary at which its last slot is closed."""
    last = instance.horizon

    def arrivals(slot: int) -> list[Object]:
        jobs = instance.jobs_by_arrival()
        return [scene.job(job, instance.slot_seconds) for job in jobs if job.arrival == slot]

    def over(reconciler: Any) -> bool:
        return reconciler.slot is not None and reconciler.slot >= last

    own = {"horizon": last, "node_selector": f"pool={scene.namespace}"}
    return Stepped(scene, policy, arrivals, over, **own)


def policy_of(instance: oasis.Instance, name: str, **options: Any) -> Callable[[], Any]:
    """A policy that decides on a cluster as in the instance; OASiS has U and L of its jobs."""
    last = instance.horizon

    def bounds(cluster: oasis.Cluster) -> oasis.PriceBounds:
        scaled = replace(cluster, slot_seconds=instance.slot_seconds)  # slots of another length
        return oasis.PriceBounds.from_jobs(instance.jobs, scaled, last, **options)

    if name == "oasis":
        return lambda: oasis.OASiS.rolling(last, bounds, keep_admitted=True, end=last)
    return lambda: oasis.make_policy(name, **options)


def decided(
    cluster: Cluster, instance: oasis.Instance, policies: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Scene, float]]:
    """The scenes of these policies, with their options, that ran beside each other, and how many
    slots each has lost: planned for a worker that was not there in time."""
    stepped, scenes = {}, {}
    for name, options in policies.items():
        home = Cluster(cluster.plane, f"{cluster.namespace}-{name}-{secrets.token_hex(2)}")
        home.create_namespace()
        scenes[name] = Scene(cluster.plane, home.namespace, CLOCK)
        scenes[name].add_nodes(instance.cluster, home.namespace)
        policy = policy_of(instance, name, **options)
        stepped[name] = stepped_through(scenes[name], instance, policy)
    with ThreadPoolExecutor(len(stepped)) as pool:
        running = [pool.submit(each.run) for each in stepped.values()]
        try:
            for future in running:
                future.result()
        finally:
            for each in stepped.values():
                each.controller.stop()
    # The library has no public reader.
    lost = {name: each.controller.metrics.lost._value.get() for name, each in stepped.items()}
    return {name: (scene, lost[name]) for name, scene in scenes.items()}


def completions(scene: Scene, horizon: int) -> dict[str, int | None]:
    """The slot in which each job completed; None: within the horizon it did not."""
    found = {name: status.get("completionSlot") for name, status in scene.statuses().items()}
    return {name: None if slot is None or slot >= horizon else slot for name, slot in found.items()}


def imported(scene: Scene, instance: oasis.Instance) -> oasis.Instance:
    """The instance as it is read back from the nodes of its pool, and from its namespace."""
    words = ("--namespace", scene.namespace, "--nodes", f"pool={scene.namespace}")
    found = scene.imported("--horizon", str(instance.horizon), *words)
    jobs = {job.id.rpartition("/")[2]: job for job in found.jobs}
    known = (replace(jobs[job.id], arrival=job.arrival) for job in instance.jobs_by_arrival())
    return replace(found, jobs=tuple(known), horizon=instance.horizon)
