"""A real control plane for tests: started on free ports of 127.0.0.1, gone without a trace."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from kubernetes.dynamic import DynamicClient

from tests.kubernetes.controlplane import audit
from tests.kubernetes.controlplane.access import Account, service_account
from tests.kubernetes.controlplane.build import CONTROLPLANE
from tests.kubernetes.controlplane.certificates import make_certificates
from tests.kubernetes.controlplane.components import (
    ADMIN,
    MACHINES,
    USERS,
    Components,
    Ports,
    Timing,
)
from tests.kubernetes.controlplane.gobuild import GoBuildError, GoMissingError, ensure
from tests.kubernetes.controlplane.guardian import Guardian
from tests.kubernetes.controlplane.nodes import Nodes
from tests.kubernetes.controlplane.waiting import answers, free_ports

_PATIENCE = 120.0  # seconds for one process to get ready; it takes one to ten on an idle machine
_POLL = 0.1


class StartError(Exception):
    """A process of the control plane ended, or did not get ready; with the end of its log."""


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
        etcd, peer, api_server, manager, scheduler, *machines = free_ports(5 + len(MACHINES))
        ports = Ports(etcd, peer, api_server, manager, scheduler, tuple(machines))
        self.components = Components(
            binary=binary,
            directory=self.directory,
            certificates=make_certificates(self.directory),
            ports=ports,
            timing=timing or Timing(),
        )
        self._tokens = {process: secrets.token_hex(16) for process in USERS}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """Address of the API server."""
        return self.components.url

    @property
    def admin(self) -> Account:
        """The one who may do everything."""
        return self._account(ADMIN)

    @cached_property
    def client(self) -> DynamicClient:
        """The admin's client."""
        return self.admin.client()

    @cached_property
    def nodes(self) -> Nodes:
        """The machines."""
        return Nodes(self.client, self._running)

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

    def service_account(
        self, name: str, namespace: str, manifests: Iterable[dict[str, Any]] = ()
    ) -> Account:
        """ServiceAccount `name`, with the rights of `manifests` alone."""
        return service_account(self.admin, name, namespace, manifests)

    def requests(self, account: Account, start: int = 0) -> list[audit.Request]:
        """Return requests of `account` in the audit log from `start`, an `audit_position`, on."""
        return audit.read_audit(self.components.audit_log, account.username, start)

    def audit_position(self) -> int:
        """Return the present end of the audit log."""
        return self.components.audit_log.stat().st_size

    def kill(self, process: str) -> None:
        """End a process by SIGKILL, as a crash would: "kube-apiserver", "kube-scheduler", ..."""
        self._running[process].kill()
        self._running[process].wait()

    def restart_api_server(self, *flags: str) -> None:
        """Start a killed API server again: same address, same data, an empty watch cache."""
        if self._running["kube-apiserver"].poll() is None:
            self.kill("kube-apiserver")
        self.run(
            "kube-apiserver", self.components.command("kube-apiserver", *flags), self._api_ready
        )

    def pids(self) -> dict[str, int]:
        """Process id of each process by name."""
        return {name: process.pid for name, process in self._running.items()}

    def _start(self) -> None:
        parts = self.components
        parts.write_files(self._tokens)
        for process in USERS:
            self._account(process).kubeconfig().replace(parts.kubeconfig(process))
        self.run("etcd", parts.command("etcd"), partial(answers, f"{parts.etcd_url}/health"))
        self.run("kube-apiserver", parts.command("kube-apiserver"), self._api_ready)
        scheduler = f"https://127.0.0.1:{parts.ports.scheduler}/healthz"
        asked = (
            ("kube-controller-manager", self._accounts_ready),
            ("kube-scheduler", partial(answers, scheduler)),
        )
        rest = [(name, parts.command(name), ready) for name, ready in asked]
        for name, port in zip(MACHINES, parts.ports.machines, strict=True):
            ready = partial(answers, f"http://127.0.0.1:{port}/healthz")
            rest.append((name, parts.kwok(name), ready))
        for name, command, _ in rest:
            self._launch(name, command)
        for name, _, ready in rest:
            self._wait(name, ready)

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
        return Account(
            username=USERS[process][0],
            token=self._tokens[process],
            url=self.url,
            authority=self.components.certificates.authority,
            directory=self.directory,
        )

    def _api_ready(self) -> bool:
        return self._api_answers("/readyz")

    def _accounts_ready(self) -> bool:
        """Pods can be made once the controller manager has made the default service account."""
        return self._api_answers("/api/v1/namespaces/default/serviceaccounts/default")

    def _api_answers(self, path: str) -> bool:
        authority = self.components.certificates.authority
        return answers(self.url + path, authority, self._tokens[ADMIN])
