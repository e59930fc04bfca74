"""Pods of other controllers that know each other, on a real control plane."""

from __future__ import annotations

from typing import Any

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import PODS
from oasis.kubernetes.objects.existing import JOB
from tests.kubernetes.adapter import scene_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import (
    make,
    marked,
    read,
    status,
    template,
)
from tests.kubernetes.scene import Scene


def running(scene: Scene, prefix: str) -> dict[str, dict[str, Any]]:
    """Running pods whose names begin so."""
    return {
        pod["metadata"]["name"]: pod
        for pod in scene.admin.list_all(PODS, scene.namespace)[0]
        if pod["metadata"]["name"].startswith(prefix) and pod["status"]["phase"] == "Running"
    }


def test_the_pods_of_an_indexed_job_know_each_other_and_are_resized(cluster: Cluster) -> None:
    """Beside the Job controller itself: 4 workers, 2 while an urgent job runs, then 4."""
    scene = scene_of(cluster, nodes=1, gpus=4)
    made = template()
    made["spec"]["subdomain"] = "train"
    env = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{path}']"}}}
        for name, path in (
            ("RANK", f"{names.ENV}JAX_PROCESS_ID"),
            ("HOSTS", f"{names.ENV}OASIS_HOSTS"),
        )
    ]
    made["spec"]["containers"][0]["env"] = env
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": made}
    bounds = {"MINIMUM": "1", "MAXIMUM": "4", "FRAMEWORK": "jax"}

    def told() -> set[tuple[str, str, str]]:
        notes = [pod["metadata"]["annotations"] for pod in running(scene, "bert-").values()]
        names_of = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS")
        return {tuple(each[f"{names.ENV}{name}"] for name in names_of) for each in notes}  # type: ignore[misc]

    def gang(count: int) -> set[tuple[str, str, str]]:
        return {(str(k), str(count), "bert-0.train:2222") for k in range(count)}

    with scene.controller(FIFO):
        make(scene, JOB, marked(scene, JOB, "bert", spec, seconds=1e6, **bounds))
        until(lambda: told() == gang(4), "four workers know each other", 60.0)
        hosts = {
            pod["metadata"]["annotations"][f"{names.ENV}OASIS_HOSTS"]
            for pod in running(scene, "bert-").values()
        }
        assert hosts == {"bert-0.train,bert-1.train,bert-2.train,bert-3.train"}
        found = read(scene, JOB, "bert")["spec"]
        assert (found["parallelism"], found["completions"]) == (4, 4)
        cluster.plane.nodes.cordon("n0")
        until(lambda: not running(scene, "bert-"), "it pauses", 60.0)
        cluster.plane.nodes.uncordon("n0")
        change = {"metadata": {"name": "bert", "namespace": scene.namespace}}
        change["metadata"]["annotations"] = {names.MAXIMUM: "3"}
        scene.admin.merge_patch(JOB.where, change)
        until(lambda: told() == gang(3), "three workers know each other", 60.0)
        until(lambda: status(scene, JOB, "bert")["phase"] == "Running", "the gang works", 60.0)
