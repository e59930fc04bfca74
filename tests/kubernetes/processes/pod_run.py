"""One pod on a process node: its container from the first start to the last end, and its status."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.processes.container import Container, Host, UnsupportedError

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
