"""One pod on a process node, from the first start of its container to the last end, and its status.

A container is a process of this machine, in namespaces of its own. It finds its variables, and in
/etc/hosts what DNS says of headless Services.

It has mounts, a host name and process numbers of its own. It is the first process of its namespace,
as in a container: what it started ends with it, and SIGTERM does nothing to it unless it listens.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
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


# -- the pod --------------------------------------------------------------------------------------

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 10.0  # seconds; a real kubelet begins with ten
Start = Callable[["PodRun"], Container]


def timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PodRun:
    """A pod that runs: `look` moves it on, `status` is its status, `start` starts its container."""

    def __init__(self, pod: Mapping[str, Any], ip: str, start: Start) -> None:
        self.pod, self.ip, self._start = pod, ip, start
        self.container: Container | None = None  # as long as a process of it may run
        self._spec = pod["spec"]["containers"][0]
        self._readiness = self._spec.get("readinessProbe")
        self._began, self._phase, self._ready = timestamp(), "Pending", False
        self._state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        self._last: dict[str, Any] = {}
        self._conditions: dict[str, dict[str, str]] = {}
        self._restarts, self._again_at = 0, 0.0
        self._kill_at: float | None = None
        self._probe: subprocess.Popen[bytes] | None = None
        self._probe_at, self._probe_over = 0.0, 0.0

    @property
    def is_over(self) -> bool:
        return self._phase in {"Succeeded", "Failed"}

    @property
    def host(self) -> Host:
        return Host(self.pod, self.ip, self._ready)

    def look(self) -> None:
        leaves = "deletionTimestamp" in self.pod["metadata"]
        if self.container is None:
            if not self.is_over and not leaves and time.monotonic() >= self._again_at:
                self._begin()
        elif (code := self.container.exit_code()) is not None:
            self._note_end(code, leaves)
        elif leaves:
            self._make_leave(self.container)
        elif self._readiness is not None:
            self._look_whether_ready(self.container, self._readiness)

    def end_now(self) -> None:
        if self.container is not None:
            self.container.send(signal.SIGKILL)

    def _begin(self) -> None:
        try:
            self.container = self._start(self)
        except UnsupportedError as error:
            ended = {"exitCode": 128, "reason": "Unsupported", "message": str(error)}
            self._phase, self._state = "Failed", {"terminated": ended}
            return
        self._phase, self._state = "Running", {"running": {"startedAt": timestamp()}}
        self._ready = self._readiness is None
        delay = (self._readiness or {}).get("initialDelaySeconds", 0)
        self._probe_at = time.monotonic() + delay

    def _note_end(self, code: int, leaves: bool) -> None:
        reason = "Completed" if code == 0 else "Error"
        ended = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
        self.container, self._ready, self._state = None, False, {"terminated": ended}
        if self._probe is not None:  # it was in the namespaces that have just ended
            self._probe.wait()
            self._probe = None
        policy = self.pod["spec"].get("restartPolicy", "Always")
        if leaves or policy == "Never" or (code == 0 and policy == "OnFailure"):
            self._phase = "Failed" if code else "Succeeded"
            return
        wait = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2**self._restarts)
        self._restarts, self._again_at = self._restarts + 1, time.monotonic() + wait
        message = f"back-off {wait:g} s after exit code {code}"
        self._last = self._state
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}

    def _make_leave(self, container: Container) -> None:
        """SIGTERM, and SIGKILL when the grace period is over."""
        now, grace = time.monotonic(), self.pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self._ready = False
        if self._kill_at is None and grace:
            container.send(signal.SIGTERM)
        if self._kill_at is None or now + grace < self._kill_at:  # the grace may be cut short
            self._kill_at = now + grace
        if now >= self._kill_at:
            container.send(signal.SIGKILL)

    def _look_whether_ready(self, container: Container, probe: Mapping[str, Any]) -> None:
        """Ask the probe, one command at a time: with the defaults, one answer counts."""
        now = time.monotonic()
        if self._probe is None:
            if now >= self._probe_at:
                self._probe = container.probe(probe["exec"]["command"])
                self._probe_at = now + probe.get("periodSeconds", 10)
                self._probe_over = now + probe.get("timeoutSeconds", 1)
        elif (code := self._probe.poll()) is not None:
            self._ready, self._probe = code == 0, None
        elif now > self._probe_over:
            self._probe.kill()

    def status(self) -> dict[str, Any]:
        ready = str(self._ready)
        for kind, value in {
            "Initialized": "True",
            "ContainersReady": ready,
            "Ready": ready,
        }.items():
            if self._conditions.get(kind, {}).get("status") != value:
                entry = {"type": kind, "status": value, "lastTransitionTime": timestamp()}
                self._conditions[kind] = entry
        container = {
            "name": self._spec["name"],
            "image": self._spec.get("image", ""),
            "imageID": "",
            "ready": self._ready,
            "started": "running" in self._state,
            "restartCount": self._restarts,
            "state": self._state,
            "lastState": self._last,
        }
        return {
            "phase": self._phase,
            "startTime": self._began,
            "hostIP": "127.0.0.1",
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "conditions": list(self._conditions.values()),
            "containerStatuses": [container],
        }
