"""Nodes of the control plane: made, cordoned, made not ready, lost with their machine, deleted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from tests.kubernetes.controlplane.components import MACHINES, MACHINES_ANNOTATION
from tests.kubernetes.controlplane.waiting import until

_UNREADY = "oasis.test/unready"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_MERGE = "application/merge-patch+json"
_PODS_PER_NODE = "110"


class Nodes:
    """The machines of a control plane. Times that calls wait are in seconds."""

    def __init__(
        self, client: DynamicClient, processes: Mapping[str, subprocess.Popen[bytes]]
    ) -> None:
        self._nodes = client.resources.get(api_version="v1", kind="Node")
        self._pods = client.resources.get(api_version="v1", kind="Pod")
        self._processes = processes

    def add(
        self,
        name: str,
        allocatable: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        *,
        losable: bool = False,
    ) -> None:
        """A node with `allocatable` ({"nvidia.com/gpu": "8", "cpu": "96"}); no wait until ready."""
        # A `losable` node belongs to the machines that `lose_machines` takes.
        room = {"pods": _PODS_PER_NODE, **allocatable}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                "annotations": {MACHINES_ANNOTATION: MACHINES[losable]},
            },
            "status": {"allocatable": room, "capacity": room},
        }
        self._nodes.create(body=body)

    def wait_ready(self, *names: str, within: float = 60.0) -> None:
        """Wait until all of `names` are Ready and schedulable as far as the control plane knows."""
        until(lambda: self._ready().issuperset(names), f"{names} are ready", within)

    def read(self, name: str) -> dict[str, Any]:
        return self._nodes.get(name=name).to_dict()

    def cordon(self, name: str) -> None:
        self._patch(name, {"spec": {"unschedulable": True}})

    def uncordon(self, name: str) -> None:
        self._patch(name, {"spec": {"unschedulable": None}})

    def break_down(self, name: str) -> None:
        """Let the node report that it is not ready; wait for the taint."""
        self._patch(name, {"metadata": {"labels": {_UNREADY: "true"}}})
        until(lambda: self._tainted(name, _NOT_READY), f"{name} is not ready")

    def lose_machines(self) -> None:
        """All losable nodes fall silent, as machines without power do."""
        # Leave as many others: the control plane evicts nothing where more than 55 % are silent.
        self._processes[MACHINES[True]].send_signal(signal.SIGSTOP)

    def find_machines(self) -> None:
        """The end of `lose_machines`."""
        self._processes[MACHINES[True]].send_signal(signal.SIGCONT)

    def wait_lost(self, name: str) -> None:
        """Wait until the control plane has given up on the node."""
        until(lambda: self._tainted(name, _UNREACHABLE), f"{name} is lost", 90.0)

    def taint(self, name: str, *taints: str) -> None:
        """Set the taints of the node, each as ``key=value:effect``; those of its state stay."""
        others = [t for t in self._taints(name) if t["key"].startswith("node.kubernetes.io/")]
        self._patch(name, {"spec": {"taints": [*others, *map(taint_object, taints)]}})

    def declare_dead(self, name: str, *, is_dead: bool = True) -> None:
        """Out of service: the control plane may forget the pods that were on it."""
        taint = {"key": _OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        others = [t for t in self._taints(name) if t["key"] != _OUT_OF_SERVICE]
        self._patch(name, {"spec": {"taints": [*others, *[taint] * is_dead]}})

    def delete(self, name: str) -> None:
        """Remove the node; its pods are collected by the control plane a minute later."""
        self._nodes.delete(name=name)

    def clear(self) -> None:
        """Remove all nodes and, without grace, the pods on them."""
        self.find_machines()
        for pod in self._pods.get(field_selector="spec.nodeName!=").items:
            try:
                self._pods.delete(
                    name=pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    body={"gracePeriodSeconds": 0},
                )
            except NotFoundError:
                continue  # it went by itself
        for node in self._nodes.get().items:
            self.delete(node.metadata.name)
        until(lambda: not self._nodes.get().items, "no node is left")

    def _patch(self, name: str, body: dict[str, Any]) -> None:
        self._nodes.patch(body=body, name=name, content_type=_MERGE)

    def _taints(self, name: str) -> list[dict[str, Any]]:
        return self.read(name)["spec"].get("taints") or []

    def _tainted(self, name: str, key: str) -> bool:
        return any(taint["key"] == key for taint in self._taints(name))

    def _ready(self) -> set[str]:
        """Names of the nodes that pods may go to, from one list."""
        ready = set()
        for node in (item.to_dict() for item in self._nodes.get().items):
            conditions = node["status"].get("conditions") or []
            taints = {taint["key"] for taint in node["spec"].get("taints") or []}
            says = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            if says and taints.isdisjoint({_NOT_READY, _UNREACHABLE}):
                ready.add(node["metadata"]["name"])
        return ready


def taint_object(text: str) -> dict[str, str]:
    """A taint that is written as kubectl takes it."""
    name, effect = text.split(":")
    key, _, value = name.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})
