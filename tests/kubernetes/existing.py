"""Jobs, JobSets and TrainJobs for tests, and stand-ins for the controllers of the others.

The stand-ins do what the controllers do that the adapter can see: a JobSet makes a Job for each
replicated job, suspended as it is itself, with its name on the pods; a TrainJob makes a JobSet of
its own name. When all Jobs are complete, so is the JobSet, and then the TrainJob.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    JOBSET_NAME,
    REPLICATED_JOB,
    TRAINJOB,
    ExistingKind,
)
from tests.background import beside
from tests.kubernetes.cluster import GPU
from tests.kubernetes.scene import Scene

Object = dict[str, Any]


def template(lasts: str | None = None, *, gate: str = names.GATE) -> Object:
    """Gated pods of one GPU that succeed after the time `lasts`, such as "6s"."""
    resources = {"requests": {"cpu": "1"}, "limits": {GPU: "1"}}
    notes = {} if lasts is None else {"oasis.test/succeeds-after": lasts}
    return {
        "metadata": {"annotations": notes},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "schedulingGates": [{"name": gate}],
            "containers": [{"name": "train", "image": "train", "resources": resources}],
        },
    }


def marked(
    scene: Scene, kind: ExistingKind, name: str, spec: Object, seconds: float = 20.0, **notes: str
) -> Object:
    """An object that is ours, suspended; `notes` are annotations by the names in `names`."""
    said = {
        names.UTILITY: json.dumps({"kind": "constant", "value": 10}),
        names.WORK: json.dumps({"workerSeconds": seconds}),
        **{getattr(names, key): value for key, value in notes.items()},
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": name,
            "namespace": scene.namespace,
            "labels": {names.SCHEDULED: "true"},
            "annotations": said,
        },
        "spec": {"suspend": True, **spec},
    }


def job_spec(workers: int, lasts: str | None = None, **more: Any) -> Object:
    """The spec of a Job."""
    return {"parallelism": workers, "template": template(lasts), **more}


def replicated(name: str, pods: int, lasts: str) -> Object:
    """A replicated Job of a JobSet."""
    spec = {"parallelism": pods, "completions": pods, "template": template(lasts)}
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def make(scene: Scene, kind: ExistingKind, body: Object) -> Object:
    """Create an object in the way its owner would."""
    path = kind.where.path(scene.namespace)
    return scene.admin.connection.request("POST", path, body=body, query={"fieldManager": "owner"})


def read(scene: Scene, kind: ExistingKind, name: str) -> Object:
    """An object that is there."""
    found = scene.admin.get(kind.where, name, scene.namespace)
    assert found is not None
    return found


def status(scene: Scene, kind: ExistingKind, name: str) -> Object:
    """Read the status in our annotation."""
    notes = read(scene, kind, name)["metadata"].get("annotations") or {}
    return json.loads(notes.get(names.STATUS) or "{}")


def definition(kind: ExistingKind) -> Object:
    """A small CRD of the same group, names and fields that matter."""
    group, _, version = kind.api_version.partition("/")
    words = {"PLURAL": kind.where.plural, "SINGULAR": kind.name.lower(), "KIND": kind.name}
    text = Path(__file__).with_name("crd.yaml").read_text(encoding="utf-8")
    for word, value in {**words, "GROUP": group, "VERSION": version}.items():
        text = text.replace(f"${word}", value)
    return yaml.safe_load(text)  # type: ignore[no-any-return]


@contextmanager
def stand_ins(scene: Scene) -> Iterator[None]:
    """The controllers of JobSets and TrainJobs, looking five times a second."""

    def work(over: threading.Event) -> None:
        while not over.wait(0.2):
            for item in scene.admin.list_if_served(TRAINJOB.where, scene.namespace):
                _trainjob(scene, item)
            for item in scene.admin.list_if_served(JOBSET.where, scene.namespace):
                _jobset(scene, item)

    with beside(work):
        yield


def _trainjob(scene: Scene, item: Object) -> None:
    spec = item["spec"]
    pods = replicated("node", spec["trainer"]["numNodes"], "4s")
    body = {"replicatedJobs": [pods], "suspend": spec["suspend"]}
    child = _child(scene, JOBSET, item, item["metadata"]["name"], body)
    if any(c["type"] == "Completed" for c in (child.get("status") or {}).get("conditions") or ()):
        _complete(scene, TRAINJOB, item, "Complete")


def _jobset(scene: Scene, item: Object) -> None:
    done = []
    for entry in item["spec"]["replicatedJobs"]:
        name = f"{item['metadata']['name']}-{entry['name']}-0"
        body = json.loads(json.dumps(entry["template"]["spec"]))
        labels = {JOBSET_NAME: item["metadata"]["name"], REPLICATED_JOB: entry["name"]}
        body["template"]["metadata"]["labels"] = labels
        child = _child(scene, JOB, item, name, {**body, "suspend": item["spec"]["suspend"]})
        conditions = (child.get("status") or {}).get("conditions") or ()
        done.append(any(c["type"] == "Complete" for c in conditions))
    if all(done):
        _complete(scene, JOBSET, item, "Completed")


def owned_by(owner: Object) -> Object:
    """The reference of its controller that an object has."""
    names_of = {name: owner["metadata"][name] for name in ("name", "uid")}
    return {
        **names_of,
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "controller": True,
    }


def _child(scene: Scene, kind: ExistingKind, owner: Object, name: str, spec: Object) -> Object:
    """The object that `owner` makes, suspended as it is."""
    found = scene.admin.get(kind.where, name, scene.namespace)
    if found is None:
        meta = {"name": name, "namespace": scene.namespace, "ownerReferences": [owned_by(owner)]}
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}
        return make(scene, kind, body)
    if bool(found["spec"].get("suspend")) != bool(spec["suspend"]):
        meta = {"name": name, "namespace": scene.namespace}
        change = {"metadata": meta, "spec": {"suspend": spec["suspend"]}}
        return scene.admin.merge_patch(kind.where, change)
    return found


def _complete(scene: Scene, kind: ExistingKind, item: Object, condition: str) -> None:
    conditions = [{"type": condition, "status": "True", "reason": "AllDone", "message": "all done"}]
    meta = item["metadata"]
    try:
        scene.admin.connection.request(
            "PATCH",
            kind.where.path(meta["namespace"], meta["name"], "status"),
            body={"status": {"conditions": conditions}},
            content_type="application/merge-patch+json",
        )
    except ApiError as error:
        if error.status != 404:
            raise
