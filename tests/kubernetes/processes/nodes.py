"""Nodes whose pods are processes of this machine: a kubelet for tests, without containers.

kwok only writes statuses, here something runs: the first container of each pod that is bound to one
of these nodes. It needs root and `unshare`. What a pod may ask for beyond that (several containers,
volumes, probes over the network) it is refused: it fails, and its status says why.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from oasis.kubernetes.api.connection import RETRIED, ApiError, LostAnswerError
from oasis.kubernetes.api.resources import LEASES, NODES, PODS, ResourceKind
from oasis.kubernetes.api.watching import Watcher
from tests.background import beside
from tests.kubernetes.controlplane.guardian import Guardian
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.processes.container import (
    Container,
    UnsupportedError,
    environment,
    hosts_file,
)
from tests.kubernetes.processes.pod_run import PodRun, timestamp

_WHOLE_PODS = ResourceKind("/api/v1", "pods", kept=dict)
_SERVICES = ResourceKind("/api/v1", "services", kept=dict)
_POLL = 0.1  # seconds between two looks at the processes
_HEARTBEAT = 4.0  # seconds; a node is given up after twenty
# 127.0.0.0/8 in pieces, one for each program that has process nodes at the same time.
_PIECE = 1024


class ProcessNodes:
    """Process nodes of a control plane, until the end of the block: then all that ran has ended."""

    # `directory` outlives the pods, but not the block; `guardian` ends what is started by it.
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._objects = plane.objects
        self.directory = Path(tempfile.mkdtemp(prefix="oasis-processes-"))
        self._env = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self._names: list[str] = []
        self._runs: dict[str, PodRun] = {}
        self._said: dict[str, dict[str, Any]] = {}
        self._first_ip = IPv4Address("127.0.0.0") + _PIECE * (1 + os.getpid() % 16000)
        self._begun: list[tuple[str, str]] = []  # name and uid of pods
        self._news, self._over = threading.Event(), threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> ProcessNodes:
        self.guardian = self._stack.enter_context(Guardian(self.directory))
        self._pods, self._services = (
            Watcher(self._objects, kind, lambda *_: self._news.set(), self._over)
            for kind in (_WHOLE_PODS, _SERVICES)
        )
        for watcher in (self._pods, self._services):
            watcher.start()
        self._stack.enter_context(beside(self._work, self._news.set))
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._stack.close()

    def add(self, name: str, room: Mapping[str, str], labels: Mapping[str, str]) -> None:
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
        self._objects.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        ready = {"type": "Ready", "status": "True", "reason": "Processes"}
        ready |= dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), timestamp())
        room = {"pods": "110", **room}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self._patch_status(NODES, {"name": name}, status)
        self._beat(name)
        self._names.append(name)
        self._plane.nodes.wait_ready(name)

    def logs(self, prefix: str = "") -> str:
        found = []
        for name, uid in self._begun:
            file = self.directory / uid / "log"
            if name.startswith(prefix):
                text = file.read_text(errors="replace") if file.exists() else ""
                found.append(f"{name}:\n{text}")
        return "\n".join(found)

    # -- the thread that does it all ---------------------------------------------------------------

    def _work(self, over: threading.Event) -> None:
        beaten = 0.0
        try:
            while not over.is_set():
                if time.monotonic() - beaten > _HEARTBEAT:
                    beaten = time.monotonic()
                    for name in tuple(self._names):
                        with _unless_away():
                            self._beat(name)
                self._news.wait(_POLL)
                self._news.clear()
                self._look()
        finally:
            for run in self._runs.values():
                run.end_now()

    def _look(self) -> None:
        for watcher in (self._pods, self._services):
            if watcher.failure is not None:
                raise watcher.failure
        there = {
            pod["metadata"]["uid"]: pod
            for pod in self._pods.store.items()
            if pod["spec"].get("nodeName") in self._names
        }
        for uid, pod in there.items():
            if uid in self._runs:
                self._runs[uid].pod = pod
            elif (pod.get("status") or {}).get("phase") == "Pending":
                self._begun.append((pod["metadata"]["name"], uid))
                if len(self._begun) >= _PIECE:
                    raise RuntimeError(f"process nodes have {_PIECE} addresses, all were given out")
                ip = str(self._first_ip + len(self._begun))
                self._runs[uid] = PodRun(pod, ip, self._start)
        self._write_hosts()
        for uid, run in list(self._runs.items()):
            if uid not in there:  # deleted without grace: nobody waits for its end
                run.end_now()
                del self._runs[uid]
                continue
            with _unless_away():
                run.look()
                self._say(uid, run)

    def _say(self, uid: str, run: PodRun) -> None:
        """Write the status if it is new; a pod that was to leave and has ended goes."""
        status, meta = run.status(), run.pod["metadata"]
        if status != self._said.get(uid):
            self._patch_status(PODS, meta, status)
            self._said[uid] = status
        if meta.get("deletionTimestamp") and run.container is None:
            now = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
            self._request("DELETE", PODS.path(meta["namespace"], meta["name"]), now)

    def _patch_status(
        self, kind: ResourceKind, meta: Mapping[str, Any], status: Mapping[str, Any]
    ) -> None:
        path = kind.path(meta.get("namespace"), meta["name"], "status")
        body = {"metadata": {"uid": meta["uid"]} if "uid" in meta else {}, "status": status}
        content = "application/strategic-merge-patch+json"
        self._request("PATCH", path, body, content_type=content)

    def _request(self, method: str, path: str, body: Mapping[str, Any], **more: str) -> None:
        """Write, unless the object has gone, or another has its name."""
        try:
            self._objects.connection.request(method, path, body=body, **more)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _beat(self, name: str) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
        meta = {"name": name, "namespace": "kube-node-lease"}
        self._objects.apply(LEASES, {**head, "metadata": meta, "spec": spec})

    # -- what a container finds --------------------------------------------------------------------

    def _write_hosts(self) -> None:
        services = self._services.store.items()
        hosts = [run.host for run in self._runs.values() if not run.is_over]
        for uid, run in self._runs.items():
            home = self.directory / uid
            home.mkdir(exist_ok=True)
            file, text = home / "hosts", hosts_file(run.host, hosts, services)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)  # the same file: it is mounted in the pod

    def _start(self, run: PodRun) -> Container:
        pod, meta = run.pod, run.pod["metadata"]
        _check(pod["spec"])
        home = self.directory / meta["uid"]
        account = home / "account"
        account.mkdir(exist_ok=True)
        name = pod["spec"].get("serviceAccountName") or "default"
        (account / "token").write_text(self._plane.token(name, meta["namespace"], meta))
        (account / "namespace").write_text(meta["namespace"])
        (account / "ca.crt").write_text(self._plane.admin.authority.read_text())
        host, _, port = self._plane.url.removeprefix("https://").rpartition(":")
        server = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        env = environment(pod, {**self._env, **server, "POD_IP": run.ip})
        container = pod["spec"]["containers"][0]
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        at = Path(container.get("workingDir") or home)
        return Container(self.guardian, words, env, run.host.name, home, at)


@contextmanager
def _unless_away() -> Iterator[None]:
    """What an API server that is away keeps from being done is done at the next look."""
    try:
        yield
    except LostAnswerError:
        return
    except ApiError as error:
        if error.status not in RETRIED:
            raise


def _check(spec: Mapping[str, Any]) -> None:
    """Refuse what would run otherwise than on a real node."""
    container = spec["containers"][0]
    if len(spec["containers"]) > 1 or spec.get("initContainers"):
        raise UnsupportedError("containers: expected one, without initContainers")
    if not container.get("command"):
        raise UnsupportedError("command: expected one, there are no images")
    if "exec" not in container.get("readinessProbe", {"exec": {}}):
        raise UnsupportedError("readinessProbe: expected exec")
    for volume in spec.get("volumes") or ():
        if "projected" not in volume:  # the token of the service account
            raise UnsupportedError(f"volumes: expected none, got {volume['name']}")
