"""A controller whose time stands still until everything of a slot is there.

What is decided on a cluster can be compared with a simulation only if the pods of each slot were
there in time. On a clock of its own no machine is too slow for that, and no quick one waits: the
next slot begins as soon as the pods are those of the plan, all work, and all statuses are written.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import oasis
from oasis.kubernetes.api.resources import NODES, OASIS_JOBS
from oasis.kubernetes.cluster.nodes import Machines, instance_of
from oasis.kubernetes.cluster.pods import has_ended, is_ending
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene

CLOCK = SlotClock(slot_seconds=1.0)
PATIENCE = 240.0  # seconds of the wall for a slot: not how long one takes, but when to give up


class Stepped:
    """Runs a policy on the jobs that `arrivals` gives for each slot, until `over` is true."""

    # The clock of the scene becomes `CLOCK`.
    def __init__(
        self,
        scene: Scene,
        policy: Callable[[], Any],
        arrivals: Callable[[int], Sequence[dict[str, Any]]],
        over: Callable[[Reconciler], bool],
        **settings: Any,
    ) -> None:
        epoch = float(round(time.time()))
        scene.clock = SlotClock(CLOCK.slot_seconds, CLOCK.startup_seconds, epoch)
        self._scene, self._arrivals, self._over = scene, arrivals, over
        self._time = epoch - CLOCK.slot_seconds  # no slot has begun
        self._slot = -1
        self._asked_since = time.monotonic()
        own = {"lease_seconds": 30.0, **settings}  # the slot begins, however long it takes
        self.controller = scene.make(policy, now=lambda: self._time, **own)

    def run(self) -> None:
        self.controller.run(until=self._turned)

    def _turned(self, reconciler: Reconciler | None) -> bool:
        """Called by the controller after each turn; True ends it."""
        if time.monotonic() > self._asked_since + PATIENCE:
            raise TimeoutError(f"{self._scene.namespace}: {self._missing(reconciler)}")
        if self._missing(reconciler) is not None:
            return False
        assert reconciler is not None
        if reconciler.slot is not None and self._over(reconciler):
            return True
        self.begin_next(reconciler)
        return False

    def begin_next(self, reconciler: Reconciler) -> None:
        slot = 0 if reconciler.slot is None else reconciler.slot + 1
        for body in self._arrivals(slot):
            self.submit(body)
        self._time, self._slot = reconciler.clock.begin(slot), slot
        self._asked_since = time.monotonic()

    def submit(self, body: dict[str, Any]) -> None:
        store = self.controller.stores[OASIS_JOBS.plural]
        uid = self._scene.submit(body)["metadata"]["uid"]
        until(
            lambda: uid in {item["metadata"]["uid"] for item in store.items()},
            f"the controller sees {body['metadata']['name']}",
        )

    def _missing(self, reconciler: Reconciler | None) -> str | None:
        """Return what the present slot still waits for; None if nothing is missing."""
        if reconciler is None:
            return "the controller is not at work"
        slot = reconciler.slot
        if slot != self._slot and self._slot >= 0:  # the first plan, too, may take a while
            return f"slot {self._slot} has not begun"
        if slot is None:
            return None
        stores = self.controller.stores
        ours = Seen({name: store.items() for name, store in stores.items()}).pods
        entries = reconciler.live
        for uid in ours.keys() | entries.keys():
            held = entries[uid].allocation if uid in entries else None
            wanted = 0 if held is None else held.worker_count + held.ps_count
            there = [pod for pod in ours.get(uid, {}).values() if not has_ended(pod)]
            found = [pod for pod in there if not is_ending(pod)]
            if len(found) != wanted or len(there) != wanted:
                return f"slot {slot}: {len(found)} of {wanted} pods of {uid} are there"
            if held is not None and len(reconciler.meter.working(uid)) != held.worker_count:
                return f"slot {slot}: {sorted(reconciler.meter.working(uid))} of {uid} work"
        unwritten = [job for job in reconciler.statuses.values() if job.status != job.written]
        return f"slot {slot}: {len(unwritten)} statuses are not written" if unwritten else None


def run_all(stepped: Sequence[Stepped]) -> None:
    with ThreadPoolExecutor(len(stepped)) as pool:
        running = [pool.submit(each.run) for each in stepped]
        try:
            for future in running:
                future.result()
        finally:
            for each in stepped:
                each.controller.stop()


def lost_slots(controller: Controller) -> float:
    return float(controller.metrics.lost._value.get())  # the library has no public reader


# -- instances: their servers as nodes, their jobs as OasisJobs, one policy ------------------------


def scene_for(cluster: Cluster, name: str, servers: oasis.Cluster) -> Scene:
    """Make a namespace, and nodes labelled ``pool`` with its name, beside those of others."""
    home = Cluster(cluster.plane, f"{cluster.namespace}-{name}-{secrets.token_hex(2)}")
    home.create_namespace()
    scene = Scene(cluster.plane, home.namespace, CLOCK)
    scene.add_nodes(servers, home.namespace)
    return scene


def stepped_through(scene: Scene, instance: oasis.Instance, policy: Callable[[], Any]) -> Stepped:
    """`instance` in `scene`, slot by slot, up to the boundary at which its last slot is closed."""
    last = instance.horizon

    def arrivals(slot: int) -> list[dict[str, Any]]:
        jobs = instance.jobs_by_arrival()
        return [scene.job(job, instance.slot_seconds) for job in jobs if job.arrival == slot]

    def over(reconciler: Reconciler) -> bool:
        return reconciler.slot is not None and reconciler.slot >= last

    own = {"horizon": last, "node_selector": f"pool={scene.namespace}"}
    return Stepped(scene, policy, arrivals, over, **own)


def completions(scene: Scene, horizon: int) -> dict[str, int | None]:
    """The slot in which each job completed; None: within the horizon it did not."""
    found = {name: status.get("completionSlot") for name, status in scene.statuses().items()}
    return {name: None if slot is None or slot >= horizon else slot for name, slot in found.items()}


def imported(scene: Scene, instance: oasis.Instance) -> oasis.Instance:
    """The instance as it is read back from the cluster; of several, from the nodes of its pool."""
    pools = [node["metadata"]["labels"].get("pool") for node in scene.admin.list_all(NODES)[0]]
    selector = f"pool={scene.namespace}" if scene.namespace in pools else None
    listed, _ = scene.admin.list_all(NODES, selector=selector)
    clock, resources = scene.clock, DEFAULT_RESOURCES
    site = Machines.of(Seen({NODES.plural: listed}), resources, None, clock.work_seconds).site
    items = {i["metadata"]["name"]: i for i in scene.admin.list_all(OASIS_JOBS, scene.namespace)[0]}
    specs = [
        (parse_job(items[job.id], clock, resources), job.arrival)
        for job in instance.jobs_by_arrival()
    ]
    return instance_of(specs, site, instance.horizon, {})
