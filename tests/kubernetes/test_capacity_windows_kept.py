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
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import CLOCK, Scene, scene_of
from tests.unit.kubernetes.test_objects import ROWS


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    found = scene_of(cluster, {"n0": "worker", "n1": "worker", "p0": "ps"})
    yield found
    for item in found.admin.list_all(WINDOWS)[0]:
        found.admin.delete(WINDOWS, item)


def declare(scene: Scene, name: str, **spec: Any) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": names.WINDOW_KIND, "metadata": {"name": name}}
    scene.admin.connection.request("POST", WINDOWS.path(), body={**body, "spec": spec})


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


def test_a_window_is_kept_and_says_so(scene: Scene) -> None:
    """What becomes of jobs before, in and after one: windows in scenarios.yaml."""
    now = int(time.time())
    during = {"begin": time_text(now + 40), "end": time_text(now + 3600)}
    declare(scene, "firmware", **during, nodes=["n1"])
    declare(scene, "odd", **during, nodes=["n7"])
    kept = f"keeps node n1 from {during['begin']} until {during['end']}"
    lacks = "expected nodes with a role, found none of n7; nothing of it is done"
    with scene.controller(lambda: oasis.Recourse.rolling(80, rounds=3, keep_admitted=True)):
        scene.submit(scene.elastic("long", 2, 8, 600.0))
        until(lambda: scene.workers() == {"long": 8}, "it has both nodes", 6.0)
        until(lambda: conditions(scene, "firmware") == [("True", "Accepted", kept)], "told", 6.0)
        until(lambda: conditions(scene, "odd") == [("False", "NoNode", lacks)], "told, too", 6.0)
        columns = scene.plane.kubectl("get", WINDOWS.plural, "firmware", "--no-headers").split()
        assert columns[3:] == ['["n1"]', "True", "Accepted"]
        time.sleep(max(0.0, now + 40 - time.time()))
        pods = scene.admin.list_all(PODS, scene.namespace)[0]
        there = {pod["spec"].get("nodeName") for pod in pods if not has_ended(pod)}
        assert "n1" not in there, "nor one that is ending"
        assert "n0" in there, "it goes on beside the window"
