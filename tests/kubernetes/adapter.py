"""Small clusters and small jobs for the tests of the adapter."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any
from unittest.mock import patch

import pytest

from experiments.cli.main import main
from oasis.kubernetes.api.resources import OASIS_JOBS
from oasis.kubernetes.names import API_VERSION, KIND, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.background import beside
from tests.kubernetes.cluster import Cluster, pod, room
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene
from tests.unit.kubernetes.played import job

CLOCK = SlotClock(slot_seconds=4.0, startup_seconds=2.5)
ENDED = {"Completed", "Rejected", "GivenUp"}


def scene_of(cluster: Cluster, nodes: int = 2, gpus: int = 4, clock: SlotClock = CLOCK) -> Scene:
    """A scene with nodes that take tasks of both kinds."""
    return scene_with(cluster, dict.fromkeys((f"n{k}" for k in range(nodes)), "both"), gpus, clock)


def scene_with(
    cluster: Cluster, roles: Mapping[str, str], gpus: int = 4, clock: SlotClock = CLOCK
) -> Scene:
    """A scene with these nodes: a role by name."""
    found = Scene(cluster.plane, cluster.namespace, clock)
    for name, role in roles.items():
        cluster.plane.nodes.add(name, room(gpus), {NODE_ROLE: role})
    cluster.plane.nodes.wait_ready(*roles)
    return found


def rigid(scene: Scene, name: str, workers: int, slots: float, **spec: Any) -> dict[str, Any]:
    """A job of `workers` workers with a GPU each that runs for `slots` slots."""
    seconds = workers * slots * scene.clock.work_seconds
    return elastic(scene, name, workers, workers, seconds, **spec)


def elastic(
    scene: Scene, name: str, minimum: int, maximum: int, seconds: float, **spec: Any
) -> dict[str, Any]:
    """A job of `minimum` to `maximum` workers with a GPU each and `seconds` of work."""
    template = {"spec": pod(name, 1)["spec"]}
    made = job(name, minimum=minimum, maximum=maximum, template=template)
    made["metadata"]["namespace"] = scene.namespace
    own = {"utility": {"kind": "constant", "value": 10}, "work": {"workerSeconds": seconds}}
    return {"apiVersion": API_VERSION, "kind": KIND, **made, "spec": made["spec"] | own | spec}


def wait_phases(scene: Scene, wanted: dict[str, str], within: float = 90.0) -> None:
    """Wait until the jobs are in these phases."""
    until(lambda: scene.phases().items() >= wanted.items(), f"phases {wanted}", within)


def wait_ended(scene: Scene, jobs: int, within: float = 120.0) -> dict[str, str]:
    """Wait until this number of jobs have ended; return their phases."""
    until(
        lambda: sum(phase in ENDED for phase in scene.phases().values()) == jobs,
        f"{jobs} jobs have ended",
        within,
    )
    return scene.phases()


def running_workers(scene: Scene) -> dict[str, int]:
    """Running pods of each job, by name of the job."""
    found: dict[str, int] = {}
    for pods in scene.our_pods().values():
        for one in pods.values():
            owner = one["metadata"]["ownerReferences"][0]["name"]
            if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"]:
                found[owner] = found.get(owner, 0) + 1
    return found


def delete_job(scene: Scene, name: str) -> None:
    """Delete a job in the way its owner would."""
    scene.admin.connection.request("DELETE", OASIS_JOBS.path(scene.namespace, name))


def edit_job(scene: Scene, name: str, spec: dict[str, Any]) -> None:
    """A merge patch of the spec, as its owner would."""
    meta = {"name": name, "namespace": scene.namespace}
    scene.admin.merge_patch(OASIS_JOBS, {"metadata": meta, "spec": spec})


@contextmanager
def watched_gangs(scene: Scene, wanted: dict[str, int]) -> Iterator[list[tuple[float, str, int]]]:
    """Looks all the time; what it finds partly placed: time, job and pods."""
    partly: list[tuple[float, str, int]] = []

    def look(over: threading.Event) -> None:
        while not over.wait(0.1):
            for name, count in running_workers(scene).items():
                if count != wanted[name]:
                    partly.append((time.time(), name, count))

    with beside(look):
        yield partly


def longest_stretch(partly: list[tuple[float, str, int]], name: str) -> float:
    """For how long a gang was partly there at a stretch, in seconds."""
    longest, begin, before = 0.0, 0.0, float("-inf")
    for at, gang, _ in partly:
        if gang == name:
            begin = begin if at - before < 1.0 else at
            longest, before = max(longest, at - begin), at
    return longest


def call(scene: Scene, *words: str, code: int = 0) -> str:
    """Run a subcommand as the admin, in this process, that ends with `code`; its output."""
    where = ("--kubeconfig", str(scene.plane.admin.kubeconfig()))
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ, COLUMNS="200"),
        pytest.raises(SystemExit) as ended,
    ):
        main(["kubernetes", *words, *where])
    assert ended.value.code == code, err.getvalue()
    return out.getvalue()
