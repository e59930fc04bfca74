"""Jobs, JobSets and TrainJobs for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from oasis.kubernetes import names
from oasis.kubernetes.objects.existing import ExistingKind
from tests.kubernetes.cluster import GPU
from tests.kubernetes.scene import Scene
from tests.unit.kubernetes.test_existing_jobs import made

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
    said = {"WORK": json.dumps({"workerSeconds": seconds})}
    said["UTILITY"] = json.dumps({"kind": "constant", "value": 10})
    found = made(spec, **said | notes)
    meta = {**found["metadata"], "name": name, "namespace": scene.namespace, "uid": None}
    return {"apiVersion": kind.api_version, "kind": kind.name, **found, "metadata": meta}


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


def runtime(nodes: int, lasts: str) -> Object:
    """A ClusterTrainingRuntime of so many nodes with a GPU each."""
    text = Path(__file__).with_name("runtime.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.replace("$NODES", str(nodes)).replace("$LASTS", lasts))  # type: ignore[no-any-return]
