"""Nodes of the control plane: made, cordoned, made not ready, lost with their machine, deleted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.kubernetes.controlplane.api import Client
from tests.kubernetes.controlplane.waiting import until

MACHINES = ("machines", "losable-machines")  # one kwok each: stop one, and its nodes are lost
MACHINES_ANNOTATION = "oasis.test/machines"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"


class Nodes:
    """The machines of a control plane. Times that calls wait are in seconds."""

    def __init__(self, api: Client, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
        self._api, self._processes = api, processes

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
        room = {"pods": "110", **allocatable}
        meta = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {MACHINES_ANNOTATION: MACHINES[losable]},
        }
        status = {"allocatable": room, "capacity": room}
        self._api.create("nodes", {"metadata": meta, "status": status})

    def wait_ready(self, *names: str, within: float = 60.0) -> None:
        """Wait until all of `names` are Ready and schedulable as far as the control plane knows."""
        until(lambda: self._ready().issuperset(names), f"{names} are ready", within)

    def read(self, name: str) -> dict[str, Any]:
        found = self._api.get("nodes", name)
        assert found is not None, name
        return found

    def cordon(self, name: str) -> None:
        self._api.patch("nodes", name, spec={"unschedulable": True})

    def uncordon(self, name: str) -> None:
        self._api.patch("nodes", name, spec={"unschedulable": None})

    def break_down(self, name: str) -> None:
        """Let the node report that it is not ready; wait for the taint."""
        self._api.patch("nodes", name, metadata={"labels": {"oasis.test/unready": "true"}})
        until(lambda: _NOT_READY in self._taints(name), f"{name} is not ready")

    def lose_machines(self) -> None:
        """All losable nodes fall silent, as machines without power do."""
        # Leave as many others: the control plane evicts nothing where more than 55 % are silent.
        self._processes[MACHINES[True]].send_signal(signal.SIGSTOP)

    def find_machines(self) -> None:
        self._processes[MACHINES[True]].send_signal(signal.SIGCONT)

    def wait_lost(self, name: str) -> None:
        until(lambda: _UNREACHABLE in self._taints(name), f"{name} is lost", 90.0)

    def declare_dead(self, name: str, *, is_dead: bool = True) -> None:
        """Out of service: the control plane may forget the pods that were on it."""
        taint = {"key": _OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        others = [t for key, t in self._taints(name).items() if key != _OUT_OF_SERVICE]
        self._api.patch("nodes", name, spec={"taints": [*others, *[taint] * is_dead]})

    def delete(self, name: str) -> None:
        """Remove the node; its pods are collected by the control plane a minute later."""
        self._api.delete("nodes", name)

    def clear(self) -> None:
        """Remove all nodes and, without grace, the pods on them."""
        self.find_machines()
        for pod in self._api.items("pods", fieldSelector="spec.nodeName!="):
            self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
        self._api.delete("nodes")
        until(lambda: not self._api.items("nodes"), "no node is left")

    def _taints(self, name: str) -> dict[str, Any]:
        return {taint["key"]: taint for taint in self.read(name)["spec"].get("taints") or ()}

    def _ready(self) -> set[str]:
        """Names of the nodes that pods may go to, from one list."""
        ready = set()
        for node in self._api.items("nodes"):
            conditions = node["status"].get("conditions") or []
            taints = {taint["key"] for taint in node["spec"].get("taints") or []}
            says = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            if says and taints.isdisjoint({_NOT_READY, _UNREACHABLE}):
                ready.add(node["metadata"]["name"])
        return ready
