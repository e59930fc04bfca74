"""Events in the middle of a slot, and plans that take long, on a real control plane."""

from __future__ import annotations

import time

from baselines import FIFO
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.scheduling.policy import Plan, View
from tests.kubernetes.adapter import delete_job, elastic, running_workers, scene_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until

SLOT = 20.0  # seconds
SOON = 8.0  # seconds, on a busy machine


class Slow(FIFO):
    """Takes longer for a plan than the lease lasts, once a job has been planned."""

    def decide(self, view: View) -> Plan:
        if view.now > 0 and view.arrived:
            time.sleep(6.0)
        return super().decide(view)


def at_work(controller: Controller) -> Reconciler:
    """The reconciler; there is one as soon as the controller acts."""
    until(lambda: controller.reconciler is not None, "the controller is at work", 30.0)
    assert controller.reconciler is not None
    return controller.reconciler


def left(reconciler: Reconciler) -> float:
    """Seconds until the next slot."""
    return reconciler.next_boundary - reconciler.now()


def test_a_job_gets_its_pods_within_seconds_of_its_arrival(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    scene.clock = SlotClock(SLOT, 1.0)
    with scene.controller(FIFO) as controller:
        scene.submit(elastic(scene, "first", 2, 2, 400.0))
        until(lambda: running_workers(scene) == {"first": 2}, "the first runs", 60.0)
        reconciler = at_work(controller)
        until(lambda: SOON + 2.0 < left(reconciler) < SLOT - 1.0, "well inside a slot", 2 * SLOT)
        slot, begin = reconciler.slot, time.monotonic()
        scene.submit(elastic(scene, "second", 2, 2, 200.0))
        until(lambda: running_workers(scene).get("second") == 2, "the second runs", SLOT)
        assert time.monotonic() - begin < SOON
        assert reconciler.slot == slot, "before the boundary"
        names = {name for pods in scene.our_pods().values() for name in pods}
        until(lambda: (reconciler.slot or 0) > (slot or 0), "the next slot", 2 * SLOT)
        time.sleep(1.0)
        assert {name for pods in scene.our_pods().values() for name in pods} == names, "they stay"


def test_a_plan_that_takes_longer_than_the_lease_keeps_nothing_waiting(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    with scene.controller(Slow, lease_seconds=3.0) as controller:
        scene.submit(elastic(scene, "first", 2, 2, 400.0))
        until(lambda: running_workers(scene) == {"first": 2}, "the first runs", 60.0)
        reconciler = at_work(controller)
        scene.submit(elastic(scene, "second", 2, 2, 200.0))
        until(lambda: reconciler.driver.slot != reconciler.slot, "a plan is being made", 20.0)
        delete_job(scene, "first")
        until(lambda: "first" not in running_workers(scene), "its pods are gone", 20.0)
        until(lambda: running_workers(scene).get("second") == 2, "the second runs", 30.0)
        assert controller.reconciler is reconciler, "the lease was never lost"
