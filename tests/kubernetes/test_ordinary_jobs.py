"""Ordinary jobs, and owners who act at a bad moment, on a real control plane."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from experiments.evaluation.live import cluster_policy
from oasis.kubernetes import names
from tests.kubernetes.adapter import (
    delete_job,
    elastic,
    rigid,
    running_workers,
    scene_of,
    wait_phases,
)
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.unit.kubernetes.test_jobs_of_any_shape import DRAWING


@pytest.mark.parametrize("name", DRAWING)
def test_a_job_without_initial_workers_or_parameter_servers_gets_its_maximum(
    cluster: Cluster, name: str
) -> None:
    """The first job of the tutorial, under the policies that draw how many tasks a job has."""
    scene = scene_of(cluster)
    with scene.controller(cluster_policy(name, {}, lookahead=20)):
        scene.submit(elastic(scene, "first", 1, 8, seconds=16 * scene.clock.work_seconds))
        until(lambda: running_workers(scene) == {"first": 8}, "all eight run", 40.0)
        tasks = {
            pod["metadata"]["labels"][names.TASK]
            for found in scene.our_pods().values()
            for pod in found.values()
        }
        assert tasks == {"worker"}
        wait_phases(scene, {"first": "Completed"}, 40.0)


def test_a_job_that_is_deleted_in_the_slot_in_which_its_work_is_done(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    made = cluster_policy("fifo", {}, lookahead=20)
    with scene.controller(made) as controller:
        scene.submit(rigid(scene, "other", workers=2, slots=6))
        scene.submit(rigid(scene, "gone", workers=2, slots=1))
        until(lambda: running_workers(scene) == {"other": 2, "gone": 2}, "both run", 40.0)
        reconciler = controller.reconciler
        assert reconciler is not None
        slot = reconciler.slot
        assert slot is not None
        time.sleep(max(0.0, reconciler.clock.begin(slot + 1) - 0.3 - time.time()))
        delete_job(scene, "gone")
        until(lambda: running_workers(scene) == {"other": 2}, "it is gone", 20.0)
    arrived = scene.statuses()["other"]["arrivalSlot"]
    with scene.controller(made, identity="two"):
        wait_phases(scene, {"other": "Completed"}, 60.0)
    assert scene.statuses()["other"]["arrivalSlot"] == arrived


def test_a_job_that_is_made_again_under_its_name(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    with scene.controller(cluster_policy("recourse", {}, lookahead=20), ps_share=Fraction(1, 4)):
        scene.submit(rigid(scene, "j", workers=2, slots=20))
        until(lambda: running_workers(scene) == {"j": 2}, "it runs", 40.0)
        delete_job(scene, "j")
        scene.submit(rigid(scene, "j", workers=3, slots=1))
        until(lambda: running_workers(scene) == {"j": 3}, "the new one runs", 40.0)
        wait_phases(scene, {"j": "Completed"}, 40.0)
