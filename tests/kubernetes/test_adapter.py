"""The adapter on a real control plane, with the shipped rights alone."""

from __future__ import annotations

import pytest

from baselines import DRF, FIFO
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import PODS
from tests.kubernetes.adapter import (
    delete_job,
    edit_job,
    elastic,
    longest_stretch,
    rigid,
    running_workers,
    scene_of,
    wait_ended,
    wait_phases,
    watched_gangs,
)
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.audit import denied, granted, verbs
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import rights
from tests.unit.kubernetes.played import merged
from tests.unit.kubernetes.test_wrong_objects import ROWS


def test_two_gangs_that_need_two_thirds_each_run_one_after_the_other(cluster: Cluster) -> None:
    scene = scene_of(cluster, nodes=2, gpus=3)
    start = cluster.plane.audit_position()
    with scene.controller(FIFO), watched_gangs(scene, {"one": 4, "two": 4}) as partly:
        for name in ("one", "two"):
            scene.submit(rigid(scene, name, workers=4, slots=2))
        wait_phases(scene, {"one": "Running", "two": "Waiting"})
        assert set(wait_ended(scene, 2).values()) == {"Completed"}
        until(lambda: not scene.our_pods(), "all pods are gone", 20.0)
    statuses = scene.statuses()
    slots = sorted(status["completionSlot"] for status in statuses.values())
    assert slots[1] - slots[0] >= 2
    for status in statuses.values():
        assert status["progress"]["percent"] == 100
    # pods of a gang start and end one by one, but a gang is never partly there for a slot
    for name in ("one", "two"):
        assert longest_stretch(partly, name) < scene.clock.slot_seconds
    used = verbs(cluster.plane.requests(scene.account, start))
    assert used <= granted(rights())
    assert not denied(cluster.plane.requests(scene.account, start))


def test_what_the_owner_edits_or_deletes_is_obeyed(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    with scene.controller(DRF):
        scene.submit(elastic(scene, "edited", 1, 2, seconds=1000.0))
        scene.submit(rigid(scene, "deleted", workers=2, slots=100))
        until(lambda: running_workers(scene) == {"edited": 2, "deleted": 2}, "both run", 40.0)
        edit_job(scene, "edited", {"workers": {"maximum": 5}})
        until(lambda: running_workers(scene).get("edited") == 5, "it has grown", 40.0)
        edit_job(scene, "edited", {"workers": {"maximum": 1}})
        until(lambda: running_workers(scene).get("edited") == 1, "it has shrunk", 40.0)
        delete_job(scene, "deleted")
        until(lambda: running_workers(scene) == {"edited": 1}, "only one is left", 40.0)
        assert scene.statuses()["edited"]["progress"]["percent"] < 100
        told = scene.statuses()["edited"]["resizes"]
        assert (told["count"], told["restarts"]) == (2, 0)


def test_malformed_jobs_are_refused_or_told_and_the_others_go_on(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    with scene.controller(FIFO):
        for k, row in enumerate(ROWS["refused_by_api_server"]):
            made = elastic(scene, f"bad{k}", 1, 3, 60.0)
            with pytest.raises(ApiError) as refused:
                scene.submit(merged(made, {"spec": row["spec"]}))
            assert refused.value.status == 422
            assert row["says"] in str(refused.value)
        odd = rigid(scene, "odd", 1, 1)
        resources = odd["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]
        resources["requests"]["cpu"] = "four"
        scene.submit(odd)
        scene.submit(rigid(scene, "good", 2, 1))
        wait_phases(scene, {"good": "Completed", "odd": "Invalid"})
        statuses = scene.statuses()
    message = {c["type"]: c["message"] for c in statuses["odd"]["conditions"]}["Valid"]
    assert "spec.workers.template.spec.containers[0].resources.requests.cpu" in message


def test_nothing_foreign_is_touched(cluster: Cluster) -> None:
    """A pod with our labels that we did not make, and one of the same name."""
    scene = scene_of(cluster)
    made = scene.submit(rigid(scene, "job", workers=1, slots=1))
    labels = {"oasis-scheduler.io/job-uid": made["metadata"]["uid"]}
    cluster.create(
        {
            "metadata": {"name": "mine", "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        }
    )
    with scene.controller(FIFO):
        assert wait_ended(scene, 1) == {"job": "Completed"}
        until(lambda: not scene.our_pods(), "our pods are gone", 20.0)
    names = [pod["metadata"]["name"] for pod in scene.admin.list_all(PODS, scene.namespace)[0]]
    assert names == ["mine"]
