"""Events in the middle of a slot, and plans that take long, on a real control plane."""

from __future__ import annotations

import time

from baselines import FIFO
from oasis.kubernetes.api.resources import PODS
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.objects.existing import JOB
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.scheduling.policy import Plan, View
from tests.kubernetes.adapter import delete_job, elastic, running_workers, scene_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import job_spec, make, marked, read
from tests.kubernetes.scene import Scene

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


def running_of(scene: Scene, name: str) -> set[str]:
    """Running pods of a Job."""
    return {
        pod["metadata"]["uid"]
        for pod in scene.admin.list_all(PODS, scene.namespace)[0]
        if pod["metadata"]["name"].startswith(name) and pod["status"]["phase"] == "Running"
    }


def test_a_batch_job_begins_at_its_arrival_and_runs_on_under_another_controller(
    cluster: Cluster,
) -> None:
    scene, slots = scene_of(cluster), 1.5 * SLOT  # seconds; another controller begins in one, too
    scene.clock = SlotClock(slots, 1.0)
    with scene.controller(FIFO) as controller:
        scene.submit(elastic(scene, "first", 2, 2, 600.0))
        until(lambda: running_workers(scene) == {"first": 2}, "the first runs", 60.0)
        reconciler = at_work(controller)
        until(lambda: 2.5 * SOON < left(reconciler) < slots - 1.0, "early in a slot", 2 * slots)
        slot, begin = reconciler.slot, time.monotonic()
        make(scene, JOB, marked(scene, JOB, "second", job_spec(2), 200.0))
        until(lambda: len(running_of(scene, "second")) == 2, "the second runs", SLOT)
        assert time.monotonic() - begin < SOON
        pods = running_of(scene, "second")
    with scene.controller(FIFO, identity="two") as other:
        reconciler = at_work(other)
        assert reconciler.slot == slot, "before the boundary"
        assert reconciler.between.held.keys() - reconciler.driver.by_uid.keys()
        until(lambda: (reconciler.slot or 0) > (slot or 0), "the next slot", 2 * slots)
        time.sleep(1.0)
        assert running_of(scene, "second") == pods, "they stay"
        assert read(scene, JOB, "second")["spec"]["suspend"] is False


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
