"""Two controllers with the same jobs share them out, and leave each other's pods alone."""

from __future__ import annotations

from baselines import FIFO
from oasis.kubernetes.api.resources import PODS
from tests.kubernetes.adapter import rigid, running_workers, scene_of, wait_ended, wait_phases
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.scene import SYSTEM


def test_two_controllers_leave_each_others_jobs_alone(cluster: Cluster) -> None:
    # All jobs fit on either node. Two controllers that plan at the same moment can both take the
    # last GPUs of a node; pods without room are then withdrawn and made anew.
    scene = scene_of(cluster, gpus=8)
    other = f"{cluster.namespace}-b"
    with scene.controller(FIFO):
        scene.submit(rigid(scene, "old", 2, 4.0))
        wait_phases(scene, {"old": "Running"})
        with scene.controller(FIFO, name=other, identity="two"):
            for k in range(3):
                scene.submit(rigid(scene, f"new-{k}", 1, 2.0))
            seen: dict[str, set[str]] = {}
            while len(scene.phases()) > sum(p == "Completed" for p in scene.phases().values()):
                for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
                    owner = pod["metadata"]["ownerReferences"][0]["name"]
                    seen.setdefault(owner, set()).add(pod["metadata"]["uid"])
            wait_ended(scene, 4)
    named = {name: status["controller"] for name, status in scene.statuses().items()}
    assert named["old"] == f"{SYSTEM}/{cluster.namespace}"
    assert set(named.values()) <= {f"{SYSTEM}/{cluster.namespace}", f"{SYSTEM}/{other}"}
    assert {name: len(pods) for name, pods in seen.items()} == {
        "old": 2,
        **{f"new-{k}": 1 for k in range(3)},
    }
    assert running_workers(scene) == {}
