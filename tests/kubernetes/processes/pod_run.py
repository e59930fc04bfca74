"""One pod on a process node: its container from the first start to the last end, and its status."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.processes.container import Container
from tests.kubernetes.processes.environment import Host, UnsupportedError

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 10.0  # seconds; a real kubelet begins with ten
Start = Callable[["PodRun"], Container]


def timestamp() -> str:
    """The present moment as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PodRun:
    """A pod that runs: `look` moves it on, `status` is its status, `start` starts its container."""

    def __init__(self, pod: Mapping[str, Any], ip: str, start: Start) -> None:
        self.pod, self.ip, self._start = pod, ip, start
        self._container: Container | None = None
        self._began = timestamp()
        self._phase, self._state = "Pending", {"waiting": {"reason": "ContainerCreating"}}
        self._last: dict[str, Any] = {}
        self._ready = False
        self._conditions: dict[str, dict[str, str]] = {}
        self._restarts, self._again_at = 0, 0.0
        self._kill_at: float | None = None
        self._probe: subprocess.Popen[bytes] | None = None
        self._probe_at, self._probe_over = 0.0, 0.0

    @property
    def is_over(self) -> bool:
        """Whether the container has ended for good."""
        return self._phase in {"Succeeded", "Failed"}

    @property
    def has_process(self) -> bool:
        """Whether a process of the pod may still run."""
        return self._container is not None

    @property
    def host(self) -> Host:
        """The name under which other pods find it."""
        return Host(self.pod, self.ip, self._ready)

    def look(self) -> None:
        """Start, start again, note an end, ask whether it is ready."""
        if self.is_over:
            return
        if self._container is None:
            if time.monotonic() >= self._again_at and not self._leaves:
                self._begin()
            return
        code = self._container.exit_code()
        if code is not None:
            self._note_end(code)
        elif self._leaves:
            self._make_leave()
        else:
            self._look_whether_ready()

    def end_now(self) -> None:
        """Kill what runs."""
        if self._container is not None:
            self._container.send(signal.SIGKILL)

    @property
    def _leaves(self) -> bool:
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    def _begin(self) -> None:
        try:
            self._container = self._start(self)
        except UnsupportedError as error:
            self._phase = "Failed"
            self._state = {"terminated": {"exitCode": 128, "reason": "Unsupported"}}
            self._state["terminated"]["message"] = str(error)
            return
        probe = self._readiness()
        self._phase, self._state = "Running", {"running": {"startedAt": timestamp()}}
        self._ready = probe is None
        delay = 0 if probe is None else probe.get("initialDelaySeconds", 0)
        self._probe_at = time.monotonic() + delay

    def _note_end(self, code: int) -> None:
        reason = "Completed" if code == 0 else "Error"
        ended = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
        self._container, self._ready, self._state = None, False, {"terminated": ended}
        if self._probe is not None:  # it was in the namespaces that have just ended
            self._probe.wait()
            self._probe = None
        policy = self.pod["spec"].get("restartPolicy", "Always")
        if self._leaves or policy == "Never" or (code == 0 and policy == "OnFailure"):
            self._phase = "Failed" if code else "Succeeded"
            return
        self._last = self._state
        self._restarts += 1
        wait = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (self._restarts - 1))
        self._again_at = time.monotonic() + wait
        message = f"back-off {wait:g} s after exit code {code}"
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}

    def _make_leave(self) -> None:
        """SIGTERM, and SIGKILL when the grace period is over."""
        assert self._container is not None
        now = time.monotonic()
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self._ready = False
        if self._kill_at is None and grace:
            self._container.send(signal.SIGTERM)
        if self._kill_at is None or now + grace < self._kill_at:  # the grace may be cut short
            self._kill_at = now + grace
        if now >= self._kill_at:
            self._container.send(signal.SIGKILL)

    def _readiness(self) -> Mapping[str, Any] | None:
        return self.pod["spec"]["containers"][0].get("readinessProbe")

    def _look_whether_ready(self) -> None:
        """Ask the probe, one command at a time: with the defaults, one answer counts."""
        probe = self._readiness()
        if probe is None or self._container is None:
            return
        now = time.monotonic()
        if self._probe is None:
            if now >= self._probe_at:
                self._probe = self._container.probe(probe["exec"]["command"])
                self._probe_at = now + probe.get("periodSeconds", 10)
                self._probe_over = now + probe.get("timeoutSeconds", 1)
        elif (code := self._probe.poll()) is not None:
            self._ready, self._probe = code == 0, None
        elif now > self._probe_over:
            self._probe.kill()

    def status(self) -> dict[str, Any]:
        """The status of the pod."""
        container = {
            "name": self.pod["spec"]["containers"][0]["name"],
            "image": self.pod["spec"]["containers"][0].get("image", ""),
            "imageID": "",
            "ready": self._ready,
            "started": "running" in self._state,
            "restartCount": self._restarts,
            "state": self._state,
            "lastState": self._last,
        }
        return {
            "phase": self._phase,
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "hostIP": "127.0.0.1",
            "startTime": self._began,
            "conditions": self._conditions_now(),
            "containerStatuses": [container],
        }

    def _conditions_now(self) -> list[dict[str, str]]:
        """Each with the time of its last change."""
        ready = "True" if self._ready else "False"
        now = {"Initialized": "True", "ContainersReady": ready, "Ready": ready}
        for kind, value in now.items():
            if self._conditions.get(kind, {}).get("status") != value:
                entry = {"type": kind, "status": value, "lastTransitionTime": timestamp()}
                self._conditions[kind] = entry
        return list(self._conditions.values())
