"""Leader election by a Lease: one controller acts, the others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from oasis.kubernetes.api.connection import ApiError, LostAnswerError
from oasis.kubernetes.api.resources import LEASES, Object, Objects


def micro_time(time: float) -> str:
    """A time as Leases write it."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Lease(threading.Thread):
    """Takes the lease when it is free, renews it, and knows whether it is held.

    A lease of another counts as free when it has not changed for its whole duration on our own
    clock; the clocks of two machines are never compared. We stop acting on it a third of the
    duration before anybody else may begin.

    Parameters
    ----------
    objects : Objects
        Reads and writes.
    namespace, name, identity : str
        Of the lease, and of us.
    seconds : float
        Its duration.
    stopping : threading.Event
        Ends it.
    on_change : callable
        Called with whether we hold it, whenever that changes.
    """

    def __init__(
        self,
        objects: Objects,
        namespace: str,
        name: str,
        identity: str,
        seconds: float,
        stopping: threading.Event,
        on_change: Callable[[bool], None],
    ) -> None:
        super().__init__(name="lease", daemon=True)
        self._objects, self._namespace, self._name = objects, namespace, name
        self._identity, self._seconds = identity, seconds
        self._stopping, self._on_change = stopping, on_change
        self._renewed = -float("inf")
        self._seen: tuple[str, float] = ("", 0.0)
        self._was_held = False
        self.failure: Exception | None = None

    @property
    def is_held(self) -> bool:
        """Whether we may act now."""
        # Time counts from when the renewal was asked for.
        # Others count from when they see it, which is later.
        return time.monotonic() < self._renewed + self._seconds * 2 / 3

    def run(self) -> None:
        try:
            self._keep()
        except Exception as error:  # noqa: BLE001 (the controller raises it again)
            self.failure = error

    def _keep(self) -> None:
        while not self._stopping.is_set():
            with suppress(ApiError, LostAnswerError):  # tried again; `is_held` ends by itself
                self._try()
            if self.is_held != self._was_held:
                self._was_held = self.is_held
                self._on_change(self._was_held)
            # Four attempts fit into the two thirds for which a renewal holds.
            self._stopping.wait(self._seconds / 6)

    def release(self) -> None:
        """Let the next one take over at once."""
        found = self._objects.get(LEASES, self._name, self._namespace)
        if found is not None and found["spec"].get("holderIdentity") == self._identity:
            found["spec"]["holderIdentity"] = ""
            self._objects.replace(LEASES, found)
        self._renewed = -float("inf")

    def _try(self) -> None:
        asked = time.monotonic()
        found = self._objects.get(LEASES, self._name, self._namespace)
        now = micro_time(time.time())
        spec: Object = {
            "holderIdentity": self._identity,
            # The API server takes whole seconds above 0 only.
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": now,
            "acquireTime": now,
        }
        if found is None:
            meta = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            self._objects.create(LEASES, {**body, "metadata": meta, "spec": spec})
            self._renewed = asked
            return
        holder = found["spec"].get("holderIdentity")
        if holder and holder != self._identity and not self._expired(found):
            return
        if holder == self._identity:
            spec["acquireTime"] = found["spec"].get("acquireTime") or now
        spec["leaseTransitions"] = int(found["spec"].get("leaseTransitions") or 0) + (
            holder != self._identity
        )
        found["spec"] = spec
        self._objects.replace(LEASES, found)  # refused if anybody else was faster
        self._renewed = asked

    def _expired(self, found: Object) -> bool:
        version = found["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = version, time.monotonic()
        # The holder may run with another duration: the longer one counts.
        seconds = max(self._seconds, float(found["spec"].get("leaseDurationSeconds") or 0))
        return time.monotonic() > self._seen[1] + seconds
