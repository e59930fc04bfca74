"""Pods that are not ours take the room that they take, whatever they carry; none is touched."""

from __future__ import annotations

import itertools
from copy import deepcopy
from typing import Any

import pytest

from oasis.kubernetes import names
from tests.unit.kubernetes.played import GPU, Played, job, node, policy

OWNER = {"kind": names.KIND, "controller": True, "name": "j", "uid": "j-1"}
MARKS: dict[str, dict[str, Any]] = {  # all that tells a pod of ours, each of which may be copied
    "labels": {names.JOB_UID: "j-1", names.TASK: "worker", names.JOB_NAME: "j"},
    "annotations": {names.NODE: "n0", names.PLAN: "x", names.SLOT: "0", names.PROGRESS: "1e9"},
    "ownerReferences": [OWNER],  # type: ignore[dict-item]
    "managedFields": [{"manager": names.FIELD_MANAGER}],  # type: ignore[dict-item]
}


def foreign(bound: str | None, gpus: int, namespace: str = "ns", **meta: Any) -> dict[str, Any]:
    asked = {"resources": {"requests": {GPU: str(gpus)}}}
    made = {"name": "foreign", "namespace": namespace, "uid": "foreign", **deepcopy(meta)}
    spec = {"containers": [asked], **({"nodeName": bound} if bound else {})}
    return {"metadata": made, "spec": spec, "status": {"phase": "Running" if bound else "Pending"}}


def played(pod: dict[str, Any]) -> tuple[Played, str]:
    """Two nodes of four GPUs, the pod, and a job that takes whatever there is."""
    made = Played(policy("dorm"))
    made.nodes = [node("n0", "worker", 4), node("n1", "worker", 4)]
    made.pods["foreign"] = pod
    made.restart()
    return made, made.submit(job("j", slots=80.0, minimum=1, initial=1, maximum=8))


def ours(made: Played) -> int:
    """Pods that run beside the foreign one."""
    return sum("nodeName" in pod["spec"] for name, pod in made.pods.items() if name != "foreign")


def subsets() -> list[tuple[str, ...]]:
    """Those that lack a label, the owner or the manager; all three together make a pod ours."""
    found = [s for k in range(len(MARKS)) for s in itertools.combinations(MARKS, k)]
    return [s for s in found if set(MARKS) - {"annotations"} - set(s)]


@pytest.mark.parametrize("marks", subsets(), ids="+".join)
def test_a_bound_pod_with_some_of_our_marks_is_counted_and_left_alone(
    marks: tuple[str, ...],
) -> None:
    made, uid = played(foreign("n0", 3, **{name: MARKS[name] for name in marks}))
    made.run(2)
    assert ours(made) == 5, "three of the eight GPUs are taken"
    assert "foreign" in made.pods
    assert made.status(uid)["progress"]["workerSeconds"] < 1e6


def test_a_whole_copy_in_another_namespace_is_counted_and_left_alone() -> None:
    made, _ = played(foreign("n0", 3, namespace="other", **MARKS))
    made.run(2)
    assert (ours(made), "foreign" in made.pods) == (5, True)
