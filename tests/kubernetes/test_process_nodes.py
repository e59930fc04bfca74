"""Pods as processes: what a container finds, how it ends, and what the API server is told of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, report_rights
from tests.kubernetes.controlplane.access import apply
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes

ACCOUNTS = Path("/var/run/secrets")
ROOM = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}


@pytest.fixture
def nodes(process_nodes: ProcessNodes) -> Iterator[ProcessNodes]:
    process_nodes.add("machine", ROOM, {})
    return process_nodes


def process_pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs a command; `container` is added to its container."""
    container = {"name": "main", "image": "none", "command": list(command)}
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "test"}, **spec.pop("metadata", {})},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def ended(cluster: Cluster, name: str) -> dict[str, Any]:
    """Status of a pod once it is Succeeded or Failed."""
    over = {"Succeeded", "Failed"}
    until(lambda: cluster.read()[name]["status"]["phase"] in over, f"{name} has ended")
    return cluster.read()[name]["status"]


def terminated(status: dict[str, Any]) -> tuple[str, int]:
    """Phase and exit code."""
    return status["phase"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]


PROGRAM = """
import json, os, pathlib, socket
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
print(json.dumps({
    "host": socket.gethostname(), "address": socket.gethostbyname(socket.gethostname()),
    "namespace": (account / "namespace").read_text(), "pid": os.getpid(),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
    **{key: os.environ[key] for key in ("RANK", "NODE", "ADDRESS", "BOTH")},
}))
from deploy.reporter import report
report(12.0, loss=0.5)
"""


def test_a_container_finds_what_kubernetes_promises(cluster: Cluster, nodes: ProcessNodes) -> None:
    there = ACCOUNTS.exists()
    apply(cluster.plane.client, report_rights(cluster.namespace))
    env = [
        {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['rank']"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "BOTH", "value": "$(RANK) of $(NODE), $$(RANK)"},
        {"name": "PYTHONPATH", "value": os.getcwd()},
    ]
    pod = process_pod("one", sys.executable, "-c", PROGRAM, container={"env": env})
    pod["metadata"]["annotations"] = {"rank": "3"}
    cluster.create(pod)
    assert terminated(ended(cluster, "one")) == ("Succeeded", 0), nodes.logs()
    found = json.loads(nodes.log(cluster.namespace, "one"))
    read = cluster.read()["one"]
    assert found == {
        "host": "one",
        "address": read["status"]["podIP"],
        "namespace": cluster.namespace,
        "pid": 1,
        "processes": 1,
        "RANK": "3",
        "NODE": "machine",
        "ADDRESS": read["status"]["podIP"],
        "BOTH": "3 of machine, $(RANK)",
    }
    assert read["metadata"]["annotations"]["oasis-scheduler.io/loss"] == "0.5"
    assert ACCOUNTS.exists() == there, "nothing is left on the machine"


@pytest.mark.parametrize(
    ("handler", "grace", "code"),
    [("echo saved; exit 0", 30, 0), ("", 1, 137)],
    ids=["it saves and ends", "it does not listen"],
)
def test_a_deleted_pod_has_its_grace_period(
    handler: str, grace: int, code: int, cluster: Cluster, nodes: ProcessNodes
) -> None:
    script = f"trap '{handler}' TERM; echo up; while true; do sleep 0.05; done"
    body = process_pod("one", "sh", "-c", script, terminationGracePeriodSeconds=grace)
    body["metadata"]["finalizers"] = ["oasis.test/look"]  # keeps it for us to look at
    cluster.create(body)
    until(lambda: "up" in nodes.log(cluster.namespace, "one"), "it is up")
    cluster.delete("one")
    assert terminated(ended(cluster, "one")) == ("Failed" if code else "Succeeded", code)
    assert ("saved" in nodes.log(cluster.namespace, "one")) == (code == 0)
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    kind = "application/json-patch+json"
    cluster.pods.patch(body=patch, name="one", namespace=cluster.namespace, content_type=kind)
    until(lambda: "one" not in cluster.read(), "it has gone")


STUBBORN = "trap '' TERM; setsid sh -c 'echo $$ > inner; sleep 600' & sleep 600"


@pytest.mark.usefixtures("namespaces")
def test_nothing_runs_on_after_the_nodes(cluster: Cluster) -> None:
    """Nor what a pod has started in a session of its own."""
    with ProcessNodes(cluster.plane) as nodes:
        nodes.add("machine", ROOM, {})
        cluster.create(process_pod("one", "sh", "-c", STUBBORN))
        (inner,) = until(lambda: list(nodes.directory.glob("*/inner")), "it runs")
        assert processes_in(inner.parent)
    assert not processes_in(inner.parent)
    assert not nodes.directory.exists()


def processes_in(directory: Path) -> list[str]:
    """Processes whose working directory is `directory`, which a container's is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if str(directory) in os.readlink(entry / "cwd"):
                found.append(entry.name)
    return found
