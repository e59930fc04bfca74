"""A job that starves by its policy says so on its object, until it runs."""

from __future__ import annotations

import json

from baselines.kod2 import Kod2
from tests.kubernetes.adapter import call, rigid, scene_of, wait_ended, wait_phases
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene


def state(scene: Scene, name: str) -> str | None:
    """The reason of the condition that a policy has a word of its own for."""
    conditions = scene.statuses()[name].get("conditions") or ()
    return next((c["reason"] for c in conditions if c["type"] == "PolicyState"), None)


def test_kod2s_starving_job_has_a_condition_until_it_runs(cluster: Cluster) -> None:
    scene = scene_of(cluster, nodes=1, gpus=4)
    scene.submit(rigid(scene, "first", 4, 8))
    with scene.controller(lambda: Kod2(starve_limit=scene.clock.work_seconds)):
        wait_phases(scene, {"first": "Running"})
        scene.submit(rigid(scene, "second", 4, 1))
        until(lambda: state(scene, "second") == "Starving", "the second job starves", 60.0)
        assert state(scene, "first") is None
        where = ("-n", cluster.namespace, "--json")
        said = json.loads(call(scene, "explain", "second", *where))["explanation"]
        assert [entry["advice"] is not None for entry in said if entry["reason"] == "Starving"]
        told = json.loads(call(scene, "status", "--namespace", cluster.namespace, "--json"))["jobs"]
        reasons = {job["job"].rpartition("/")[2]: job["reasons"] for job in told}
        assert reasons["second"]["PolicyState"] == "Starving"
        assert "PolicyState" not in reasons["first"]
        wait_phases(scene, {"second": "Running"}, within=120.0)
        until(lambda: state(scene, "second") is None, "it starves no more", 10.0)
        assert set(wait_ended(scene, 2).values()) == {"Completed"}
