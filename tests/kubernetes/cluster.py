"""The part of a cluster that a test has for itself: a namespace, nodes, and pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.names import GPU, JOB_UID

Object = dict[str, Any]
# Labels of pods with the uid of their job, whoever makes them.
OWNERS = (JOB_UID, "jobset.sigs.k8s.io/jobset-uid", "batch.kubernetes.io/controller-uid")


def pod(name: str, gpus: int, **meta: Any) -> Object:
    """A training pod. The annotations oasis.test/starts-after, succeeds-after, fails-after and
    stops-after ("2s") say what kwok makes of it (controlplane/stages/pods.yaml)."""
    resources = {"requests": {"cpu": "1"}, "limits": {GPU: str(gpus)}}
    spec = {"containers": [{"name": "train", "image": "train", "resources": resources}]}
    return {"metadata": {"name": name, **meta}, "spec": spec}


def is_running(pod: Object) -> bool:
    return pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]


def has_ended(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def told(status: Object) -> dict[str, Object]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


def condition(item: Object, kind: str) -> Object:
    """The condition of this type; an empty one if there is none."""
    return told(item.get("status") or {}).get(kind, {})


def owner_of(pod: Object) -> str | None:
    """The uid of the job that a pod is part of, by its labels."""
    labels = pod["metadata"].get("labels") or {}
    return next((labels[name] for name in OWNERS if name in labels), None)


def report_rights(namespace: str, account: str = "default") -> list[dict[str, Any]]:
    """Manifests by which a service account may write how far its training is."""
    text = Path(__file__).with_name("report_rights.yaml").read_text(encoding="utf-8")
    text = text.replace("$NAMESPACE", namespace).replace("$ACCOUNT", account)
    return list(yaml.safe_load_all(text))


def room(gpus: int) -> dict[str, str]:
    return {GPU: str(gpus), "cpu": "96", "memory": "1Ti"}


class Cluster:
    """`namespace` and all nodes of `plane` belong to one test."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace

    def create_namespace(self) -> None:
        """Make it, and wait for what the control plane puts into every new one: the service account
        that pods need, and a ConfigMap."""
        self.plane.kubectl("create", "namespace", self.namespace)
        words = ("get", "--output=name", f"--namespace={self.namespace}")
        for kind in ("serviceaccounts", "configmaps"):
            until(lambda kind=kind: self.plane.kubectl(*words, kind), "it is furnished")

    def create(self, *pods: dict[str, Any]) -> None:
        """Make pods, as somebody else than a controller does."""
        for body in pods:
            self.plane.api.create("pods", body, self.namespace)

    def read(self) -> dict[str, dict[str, Any]]:
        found = self.plane.api.items("pods", self.namespace)
        return {pod["metadata"]["name"]: pod for pod in found}

    def running(self) -> dict[str, str]:
        found = self.read().items()
        return {name: pod["spec"]["nodeName"] for name, pod in found if is_running(pod)}

    def clear(self) -> None:
        """Take away the namespace (which takes a while), and at once nodes, pods and the rest."""
        # The namespace first: nobody makes a pod there any more, which would be bound to a node of
        # the same name in the next test, and take its room. The test may have done it.
        quick = ("--ignore-not-found", "--wait=false")
        self.plane.kubectl("delete", "namespace", self.namespace, *quick)
        self.plane.nodes.clear()
        for plural in ("utilityclasses", "capacitywindows"):
            self.plane.api.delete(plural)
        self.plane.api.delete("pods", space=self.namespace)
        until(lambda: not self.read(), "the Job controller lets go of its pods")
