"""A real control plane for tests: started on free ports of 127.0.0.1, gone without a trace."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from tests.kubernetes.controlplane import audit
from tests.kubernetes.controlplane.api import Client
from tests.kubernetes.controlplane.build import CONTROLPLANE, GoBuildError, GoMissingError, ensure
from tests.kubernetes.controlplane.certificates import make_certificates
from tests.kubernetes.controlplane.guardian import Guardian
from tests.kubernetes.controlplane.nodes import MACHINES, MACHINES_ANNOTATION, Nodes
from tests.kubernetes.controlplane.waiting import answers, free_ports

_PATIENCE = 120.0  # seconds for one process to get ready; it takes one to ten on an idle machine
_POLL = 0.1
_HERE = Path(__file__).resolve().parent
_COMMANDS = yaml.safe_load((_HERE / "commands.yaml").read_text(encoding="utf-8"))
_ADMIN = "admin"
# What the processes call themselves, and whose rights they have: the first two get theirs from the
# roles that the API server makes by itself, kwok stands in for the kubelets of all nodes.
_USERS = {
    _ADMIN: ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
}


class StartError(Exception):
    """A process of the control plane ended, or did not get ready; with the end of its log."""


@dataclass(frozen=True)
class Timing:
    """Seconds until the control plane gives up on a node: `grace` without a sign of life make it
    Unknown, pods leave it `toleration` later; kwok renews a node's lease within `lease`. And the
    requests a second that the scheduler makes at most, which makes two or three for a pod.

    A healthy node must not be given up because kwok had no processor for a few seconds: once all
    nodes are silent, the control plane evicts nothing any more."""

    grace: int = 20
    toleration: int = 5
    lease: int = 8
    scheduler_requests: int = 1000  # 50 as it comes, which makes tests slow

    @property
    def scheduler_burst(self) -> int:
        return max(100, self.scheduler_requests)


@contextmanager
def control_plane(what: str, timing: Timing | None = None) -> Iterator[ControlPlane]:
    """One for a command, which ends with a line if it cannot be built."""
    try:
        binary = ensure(CONTROLPLANE)
    except (GoMissingError, GoBuildError) as error:
        sys.exit(f"{what}: {error}")
    with ControlPlane(binary, timing) as plane:
        yield plane


class ControlPlane:
    """etcd, API server, controller manager, scheduler, and two kwok processes for the machines."""

    # Use as a context manager. RBAC is on; `admin` may do all, every other account has the rights
    # that it is given. `nodes` makes and breaks nodes. `directory` holds logs and files until the
    # end, and is then removed.
    def __init__(self, binary: Path, timing: Timing | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="oasis-controlplane-"))
        self.audit_log = self.directory / "audit.log"
        self.certificates = make_certificates(self.directory)
        etcd, peer, api, manager, scheduler, *machines = free_ports(5 + len(MACHINES))
        self._binary, self._machines = binary, dict(zip(MACHINES, machines, strict=True))
        self.url = f"https://127.0.0.1:{api}"  # of the API server
        self._flags: dict[str, Any] = {
            "etcd": f"http://127.0.0.1:{etcd}",
            "peer": f"http://127.0.0.1:{peer}",
            "directory": self.directory,
            "files": self.certificates,
            "ports": SimpleNamespace(api_server=api, manager=manager, scheduler=scheduler),
            "timing": timing or Timing(),
            "audit_log": self.audit_log,
            "audit_policy": _HERE / "audit-policy.yaml",
        }
        self._tokens = {process: secrets.token_hex(16) for process in _USERS}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    @cached_property
    def admin(self) -> Account:
        """The one who may do everything."""
        return self._account(_ADMIN)

    @cached_property
    def api(self) -> Client:
        return self.admin.client()

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(self.api, self._running)

    def __enter__(self) -> ControlPlane:
        self._guardian = self._stack.enter_context(Guardian(self.directory))
        try:
            self._start()
        except BaseException:
            self._stack.close()  # also when a test is interrupted while it waits here
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kubectl(self, *words: str, given: str = "") -> str:
        config = (f"--kubeconfig={self.admin.kubeconfig()}", f"--cache-dir={self.directory}/kube")
        command = [str(self._binary), "kubectl", *config, *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Server-side apply, in their order; what others own is taken over."""
        own = ("--server-side", "--force-conflicts", "--validate=ignore", "-f", "-")
        self.kubectl("apply", *own, given="\n---\n".join(map(json.dumps, manifests)))

    def define(self, crds: Iterable[Mapping[str, Any]]) -> None:
        """Apply CustomResourceDefinitions and wait until the API server serves what they define."""
        crds = list(crds)
        self.apply(crds)
        named = [f"crd/{body['metadata']['name']}" for body in crds]
        self.kubectl("wait", "--for=condition=established", "--timeout=120s", *named)

    def service_account(
        self, name: str, namespace: str, manifests: Iterable[Mapping[str, Any]] = ()
    ) -> Account:
        """ServiceAccount `name`, made if it is not there, with the rights of `manifests`."""
        meta = {"name": name, "namespace": namespace}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
        self.apply([home, made, *manifests])
        username, token = f"system:serviceaccount:{namespace}:{name}", self.token(name, namespace)
        return Account(username, token, self.url, self.certificates.authority, self.directory)

    def token(self, account: str, namespace: str, pod: Mapping[str, Any] | None = None) -> str:
        """A token of a service account; given the metadata of a pod, that of a kubelet."""
        bound = {} if pod is None else {"kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
        more = [f"--bound-object-{name}={value}" for name, value in bound.items()]
        words = ("create", "token", account, f"--namespace={namespace}", "--duration=24h", *more)
        return self.kubectl(*words).strip()

    def requests(self, account: Account, start: int = 0) -> list[audit.Request]:
        return audit.read_audit(self.audit_log, account.username, start)

    def audit_position(self) -> int:
        return self.audit_log.stat().st_size

    def kill(self, process: str) -> None:
        """End a process by SIGKILL, as a crash would: "kube-apiserver", "kube-scheduler", ..."""
        self._running[process].kill()
        self._running[process].wait()

    def restart_api_server(self, *flags: str) -> None:
        """Start a killed API server again: same address, same data, an empty watch cache."""
        if self._running["kube-apiserver"].poll() is None:
            self.kill("kube-apiserver")
        self.run("kube-apiserver", self._command("kube-apiserver", *flags), self._api_ready)

    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def _start(self) -> None:
        """Write the tokens of the fixed users, and kwok's stages in one file; start all of it."""
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        rows = [f'{self._tokens[k]},{name},{name},"{of}"' for k, (name, of) in _USERS.items()]
        tokens.write_text("\n".join(rows) + "\n")
        stages = [file.read_text() for file in sorted((_HERE / "stages").glob("*.yaml"))]
        (self.directory / "stages.yaml").write_text("---\n".join(stages))
        for process in _USERS:
            self._account(process).kubeconfig().replace(self.directory / f"{process}.kubeconfig")
        self.run("etcd", self._command("etcd"), partial(answers, f"{self._flags['etcd']}/health"))
        self.run("kube-apiserver", self._command("kube-apiserver"), self._api_ready)
        scheduler = f"https://127.0.0.1:{self._flags['ports'].scheduler}/healthz"
        ready: dict[str, Callable[[], bool]] = {
            # Pods can be made once it has made the default service account.
            "kube-controller-manager": partial(
                self._api_answers, "/api/v1/namespaces/default/serviceaccounts/default"
            ),
            "kube-scheduler": partial(answers, scheduler),
        }
        for name in ready:
            self._launch(name, self._command(name))
        for k, (name, port) in enumerate(self._machines.items()):
            own = {"annotation": MACHINES_ANNOTATION, "machines": name, "network": 128 + k}
            self._launch(name, self._command("kwok", port=port, **own))
            ready[name] = partial(answers, f"http://127.0.0.1:{port}/healthz")
        for name, is_ready in ready.items():
            self._wait(name, is_ready)

    def _command(self, process: str, *flags: str, **more: object) -> list[str]:
        given = [flag.format(**self._flags, **more) for flag in _COMMANDS[process]]
        return [str(self._binary), process, *given, *flags]

    def run(self, name: str, command: list[str], ready: Callable[[], bool]) -> None:
        """Start a process that ends with the others, and wait until it is ready."""
        self._launch(name, command)
        self._wait(name, ready)

    def _launch(self, name: str, command: list[str]) -> None:
        self._running[name] = self._guardian.start(command, self.directory / f"{name}.log")

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ready():
            ended = self._running[name].poll()
            if ended is not None or time.monotonic() > deadline:
                what = f"took more than {_PATIENCE:.0f} s" if ended is None else f"exited ({ended})"
                log = (self.directory / f"{name}.log").read_text(errors="replace")
                raise StartError(f"{name} {what}: " + "\n".join(log.splitlines()[-5:]))
            time.sleep(_POLL)

    def _account(self, process: str) -> Account:
        name, token = _USERS[process][0], self._tokens[process]
        return Account(name, token, self.url, self.certificates.authority, self.directory)

    def _api_ready(self) -> bool:
        return self._api_answers("/readyz")

    def _api_answers(self, path: str) -> bool:
        return answers(self.url + path, self.certificates.authority, self._tokens[_ADMIN])


@dataclass(frozen=True)
class Account:
    """Someone who may talk to the API server: `username` is what the audit log calls them."""

    username: str
    token: str
    url: str
    authority: Path
    directory: Path

    def client(self) -> Client:
        return Client(self.url, self.authority, self.token)

    def kubeconfig(self) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path = self.directory / f"{self.username.replace(':', '.')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path


def binding(
    account: str, kind: str, role: str, space: str, *, everywhere: bool = True
) -> dict[str, Any]:
    """What gives the rights of a role to an account, in all namespaces or in its own."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding" if everywhere else "RoleBinding",
        "metadata": {"name": f"{account}-{role}"} | ({} if everywhere else {"namespace": space}),
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": space}],
    }
