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

from urllib3.exceptions import HTTPError

from tests.background import beside
from tests.kubernetes.controlplane.api import RefusedError, path_of
from tests.kubernetes.controlplane.guardian import Guardian
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.processes.container import (
    Container,
    PodRun,
    UnsupportedError,
    environment,
    hosts_file,
    timestamp,
)

_POLL = 0.1  # seconds between two looks at the pods and their processes
_HEARTBEAT = 4.0  # seconds; a node is given up after twenty
# 127.0.0.0/8 in pieces, one for each program that has process nodes at the same time.
_PIECE = 1024


class ProcessNodes:
    """Process nodes of a control plane, until the end of the block: then all that ran has ended."""

    # `directory` outlives the pods, but not the block; `guardian` ends what is started by it.
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._api = plane.api
        self.directory = Path(tempfile.mkdtemp(prefix="oasis-processes-"))
        self._env = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self._names: list[str] = []
        self._runs: dict[str, PodRun] = {}
        self._said: dict[str, dict[str, Any]] = {}
        self._first_ip = IPv4Address("127.0.0.0") + _PIECE * (1 + os.getpid() % 16000)
        self._begun: list[tuple[str, str]] = []  # name and uid of pods
        self._stack = ExitStack()

    def __enter__(self) -> ProcessNodes:
        self.guardian = self._stack.enter_context(Guardian(self.directory))
        self._stack.enter_context(beside(self._work))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, name: str, room: Mapping[str, str], labels: Mapping[str, str]) -> None:
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
        self._api.create("nodes", {"metadata": meta})
        ready = {"type": "Ready", "status": "True", "reason": "Processes"}
        ready |= dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), timestamp())
        room = {"pods": "110", **room}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self._patch_status("nodes", {"name": name}, status)
        lease = {"metadata": {"name": name}, "spec": _sign_of_life(name)}
        self._write("POST", path_of("leases", "kube-node-lease"), lease)  # it outlives its node
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
                            spec = _sign_of_life(name)
                            self._api.patch("leases", name, "kube-node-lease", spec=spec)
                over.wait(_POLL)
                with _unless_away():
                    self._look(self._api.items("pods"), self._api.items("services"))
        finally:
            for run in self._runs.values():
                run.end_now()

    def _look(self, pods: list[dict[str, Any]], services: list[dict[str, Any]]) -> None:
        ours = [pod for pod in pods if pod["spec"].get("nodeName") in self._names]
        there = {pod["metadata"]["uid"]: pod for pod in ours}
        for uid, pod in there.items():
            if uid in self._runs:
                self._runs[uid].pod = pod
            elif (pod.get("status") or {}).get("phase") == "Pending":
                self._begun.append((pod["metadata"]["name"], uid))
                if len(self._begun) >= _PIECE:
                    raise RuntimeError(f"process nodes have {_PIECE} addresses, all were given out")
                ip = str(self._first_ip + len(self._begun))
                self._runs[uid] = PodRun(pod, ip, self._start)
        self._write_hosts(services)
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
            self._patch_status("pods", meta, status)
            self._said[uid] = status
        if meta.get("deletionTimestamp") and run.container is None:
            now = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
            self._write("DELETE", path_of("pods", meta["namespace"], meta["name"]), now)

    def _patch_status(self, plural: str, meta: Mapping[str, Any], status: Any) -> None:
        path = path_of(plural, meta.get("namespace"), meta["name"], "status")
        body = {"metadata": {"uid": meta["uid"]} if "uid" in meta else {}, "status": status}
        self._write("PATCH", path, body, "application/strategic-merge-patch+json")

    def _write(self, *request: Any) -> None:
        """Write, unless the object has gone, or another has its name."""
        try:
            self._api.ask(*request)
        except RefusedError as error:
            if error.status not in (404, 409):
                raise

    # -- what a container finds --------------------------------------------------------------------

    def _write_hosts(self, services: list[dict[str, Any]]) -> None:
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
    except HTTPError:
        return
    except RefusedError as error:
        if error.status < 500:
            raise


def _sign_of_life(name: str) -> dict[str, Any]:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}


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
