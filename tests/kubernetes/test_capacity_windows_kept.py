"""A maintenance window and a reservation on a real control plane, and a change of controllers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oasis
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import PODS, WINDOWS
from oasis.kubernetes.cluster.nodes import has_ended
from oasis.kubernetes.control.windows import parse_window
from oasis.kubernetes.objects.conditions import time_text
from tests.kubernetes.adapter import CLOCK, call, elastic, running_workers, scene_with
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene
from tests.unit.kubernetes.test_objects import ROWS


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    found = scene_with(cluster, {"n0": "worker", "n1": "worker", "p0": "ps"})
    yield found
    for item in found.admin.list_all(WINDOWS)[0]:
        found.admin.delete(WINDOWS, item)


def declare(scene: Scene, name: str, **spec: Any) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": names.WINDOW_KIND, "metadata": {"name": name}}
    scene.admin.connection.request("POST", WINDOWS.path(), body={**body, "spec": spec})


def on_nodes(scene: Scene) -> dict[str, int]:
    """Pods of ours on each node, also those that are ending."""
    found: dict[str, int] = {}
    for pod in scene.admin.list_all(PODS, scene.namespace)[0]:
        node = pod["spec"].get("nodeName")
        if node and not has_ended(pod):
            found[node] = found.get(node, 0) + 1
    return found


def planner() -> oasis.Recourse:
    return oasis.Recourse.rolling(80, rounds=3, keep_admitted=True)


def conditions(scene: Scene, name: str) -> list[tuple[str, str, str]]:
    found = scene.admin.get(WINDOWS, name)
    assert found is not None
    told = (found.get("status") or {}).get("conditions") or []
    return [(each["status"], each["reason"], each["message"]) for each in told]


def columns(scene: Scene, binary: Path, name: str) -> list[str]:
    """Columns that ``kubectl get`` prints of a window after its times."""
    words = ["get", WINDOWS.plural, name, "--no-headers"]
    config = str(scene.plane.admin.kubeconfig())
    made = [str(binary), "kubectl", "--kubeconfig", config, *words]
    return subprocess.run(made, capture_output=True, text=True, check=True).stdout.split()[3:]


def explained(scene: Scene, name: str) -> str:
    return " ".join(call(scene, "explain", name, "-n", scene.namespace).split())


BEGIN, END = "2030-01-31T22:00:00Z", "2030-02-01T02:00:00Z"


@pytest.mark.parametrize("row", ROWS["refused_windows"], ids=str)
def test_what_makes_no_sense_is_refused(cluster: Cluster, row: dict[str, Any]) -> None:
    given = {"begin": BEGIN, "end": END, "nodes": ["n1"]} | row["spec"]
    with pytest.raises(ApiError, match=row["says"]) as error:
        declare(Scene(cluster.plane, cluster.namespace, CLOCK), "wrong", **given)
    assert "\n" not in str(error.value)


def test_what_makes_sense_is_taken(cluster: Cluster) -> None:
    scene = Scene(cluster.plane, cluster.namespace, CLOCK)
    for k, spec in enumerate(
        (
            {"nodes": [], "nodeSelector": {"node-role.example/gpu": ""}},
            {"end": "2030-01-31T22:00:00-00:30", "nodes": ["n1"]},
            {"end": "2030-02-07T21:59:59Z", "repeat": "weekly", "nodes": ["n1"]},
        )
    ):
        declare(scene, f"fine-{k}", **{"begin": BEGIN, "end": END, **spec})
    for item in scene.admin.list_all(WINDOWS)[0]:
        parse_window(item)
        scene.admin.delete(WINDOWS, item)


def test_no_pod_is_there_when_a_window_begins_and_jobs_are_told(
    scene: Scene, controlplane_binary: Path
) -> None:
    now = int(time.time())
    begin, end = now + 36, now + 50
    during = {"begin": time_text(begin), "end": time_text(end)}
    declare(scene, "firmware", **during, nodes=["n1"])
    waits = "waits for maintenance window firmware"
    with scene.controller(planner):
        scene.submit(elastic(scene, "long", 2, 8, 600.0))
        until(lambda: running_workers(scene) == {"long": 8}, "it has both nodes", 6.0)
        kept = f"keeps node n1 from {during['begin']} until {during['end']}"
        until(lambda: conditions(scene, "firmware") == [("True", "Accepted", kept)], "told", 6.0)
        declare(scene, "odd", **during, nodes=["n7"])
        lacks = "expected nodes with a role, found none of n7; nothing of it is done"
        until(lambda: conditions(scene, "odd") == [("False", "NoNode", lacks)], "told, too", 6.0)
        assert columns(scene, controlplane_binary, "firmware") == ['["n1"]', "True", "Accepted"]
    with scene.controller(planner, identity="two"):
        time.sleep(max(0.0, begin - time.time()))
        scene.submit(elastic(scene, "gang", 4, 4, 100.0))
        while time.time() < end - 1:
            held = on_nodes(scene)
            assert held.get("n1", 0) == 0
            if time.time() > begin + 5:
                running = running_workers(scene)
                assert sum(running.values()) == 4, "one goes on beside the window"
                (other,) = {"long", "gang"} - running.keys()
                assert waits in explained(scene, other)
            time.sleep(0.5)
        until(lambda: on_nodes(scene).get("n1", 0) > 0, "the node is back", 15.0)
        until(lambda: sum(running_workers(scene).values()) > 4, "and used", 15.0)
