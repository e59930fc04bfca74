"""One container as a process of this machine, in namespaces of its own, and what it finds: its
variables, and in /etc/hosts what DNS says of headless Services.

It has mounts, a host name and process numbers of its own. It is the first process of its namespace,
as in a container: what it started ends with it, and SIGTERM does nothing to it unless it listens.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.guardian import Guardian

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# The first process that is started in a new process namespace is its first process, so that all has
# to be made ready within. `unshare --fork` would lose the number of the signal that ended it.
_UNSHARE = ("unshare", "--mount", "--uts", "--pid", "sh", "-c")
_OUTER = 'setpriv --pdeathsig KILL sh -c "$@"; exit $?'
# A file system of its own over /var/run: nothing is left of it on the machine.
_INNER = (
    "mount -t proc proc /proc && mount -t tmpfs tmpfs /var/run &&"
    ' mount --bind "$1" /etc/hosts && hostname "$2" &&'
    ' mkdir -p "$4" && mount --bind "$3" "$4" && cd "$5" && shift 5 && exec "$@"'
)
_SECONDS = 10.0  # that `unshare` may take to begin


def why_not() -> str:
    """Return why processes cannot have namespaces of their own here; empty if they can."""
    if os.geteuid() != 0:
        return "pods as processes need root"
    try:
        command = [*_UNSHARE, _OUTER, "-", "mount -t proc proc /proc && hostname pod"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "pods as processes need unshare (util-linux)"
    return f"pods as processes: {done.stderr.strip()}" if done.returncode else ""


class Container:
    """A process in namespaces of its own, with its own /etc/hosts, account and log."""

    def __init__(
        self,
        guardian: Guardian,
        words: Sequence[str],
        env: Mapping[str, str],
        host: str,
        home: Path,  # of these three
        at: Path,  # where it is started
    ) -> None:
        ready = (str(home / "hosts"), host, str(home / "account"), ACCOUNT, str(at))
        command = [*_UNSHARE, _OUTER, "-", _INNER, "-", *ready, *words]
        self._outer = guardian.start(command, home / "log", env)
        self._pid = self._first_child()
        if self._pid is not None:
            guardian.watch(self._pid)
        self._env = dict(env)

    def _first_child(self) -> int | None:
        """Process id of the container's own process; None if it has ended already."""
        file = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        deadline = time.monotonic() + _SECONDS
        while self._outer.poll() is None:
            with suppress(FileNotFoundError, ProcessLookupError):
                found = file.read_text().split()
                if found:
                    return int(found[0])
            if time.monotonic() > deadline:
                raise TimeoutError(f"unshare had no child within {_SECONDS:.0f} s")
            time.sleep(0.002)
        return None

    def exit_code(self) -> int | None:
        return self._outer.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there: to its first process alone, as a kubelet does."""
        # The number is still its own: its parent waits for it, and has not ended.
        if self.exit_code() is None and self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def probe(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        enter = ("nsenter", f"--target={self._pid}", "--mount", "--uts", "--pid", "--")
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen([*enter, *words], env=self._env, **silent)


Object = Mapping[str, Any]
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class UnsupportedError(Exception):
    """A pod that asks for what a process node does not give."""


def environment(pod: Object, given: Mapping[str, str]) -> dict[str, str]:
    """Variables of the first container of `pod`, after those `given`: as its ``env`` says."""
    found, container = dict(given), pod["spec"]["containers"][0]
    if container.get("envFrom"):
        raise UnsupportedError("envFrom: expected variables in env")
    for entry in container.get("env") or ():
        source, value = entry.get("valueFrom") or {}, entry.get("value") or ""
        if "$(" in value or not source.keys() <= {"fieldRef"}:
            raise UnsupportedError(f"env {entry['name']}: expected a value or a fieldRef")
        path = source.get("fieldRef", {}).get("fieldPath")
        found[entry["name"]] = value if path is None else _field(pod["metadata"], path)
    return found


def _field(meta: Object, path: str) -> str:
    if (entry := _MAP_ENTRY.fullmatch(path)) is not None:
        return str((meta.get(entry[1]) or {}).get(entry[2], ""))
    if path != "metadata.name":
        raise UnsupportedError(f"fieldRef: expected a label, an annotation or the name, got {path}")
    return str(meta["name"])


@dataclass(frozen=True, slots=True)
class Host:
    """A pod that others may find: where it is, and whether it is ready."""

    pod: Object
    ip: str
    ready: bool

    @property
    def name(self) -> str:
        return str(self.pod["spec"].get("hostname") or self.pod["metadata"]["name"])


def hosts_file(own: Host, others: Iterable[Host], services: Iterable[Object]) -> str:
    """The file of the pod `own`: a kubelet writes the first two lines, DNS answers the rest."""
    # A pod has a name in the headless Service that is its subdomain: one that is ready, or any if
    # the Service publishes those that are not.
    space = own.pod["metadata"]["namespace"]
    near = [each for each in services if each["metadata"]["namespace"] == space]
    lines = ["127.0.0.1 localhost", " ".join([own.ip, own.name, *_names(own, near, is_own=True)])]
    for other in others:
        names = _names(other, near, is_own=False)
        if other.ip != own.ip and other.pod["metadata"]["namespace"] == space and names:
            lines.append(" ".join([other.ip, *names]))
    return "\n".join(lines) + "\n"


def _names(host: Host, services: Iterable[Object], *, is_own: bool) -> list[str]:
    labels, within = host.pod["metadata"].get("labels") or {}, host.pod["spec"].get("subdomain")
    return [
        f"{host.name}.{within}"
        for service in services
        if service["metadata"]["name"] == within and service["spec"].get("clusterIP") == "None"
        if (service["spec"].get("selector") or {"": ""}).items() <= labels.items()
        if host.ready or is_own or service["spec"].get("publishNotReadyAddresses")
    ]
