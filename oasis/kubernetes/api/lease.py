"""Leader election by a Lease: one controller acts, the others wait."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from oasis.kubernetes.api.connection import ApiError, Connection, LostAnswerError, TooLateError
from oasis.kubernetes.api.resources import LEASES, Object, Objects
from oasis.kubernetes.api.watching import Asker

log = logging.getLogger("oasis.kubernetes")

# The monotonic clock of Linux stands still while a machine sleeps: one that wakes up would go on
# with a lease that another has had for long.
CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC


def steady_seconds() -> float:
    """Return the seconds of a steady clock, which changes of the system time do not affect."""
    return time.clock_gettime(CLOCK)


def micro_time(time: float) -> str:
    """Return a time as Leases write it, with microseconds."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Lease(Asker):
    """Takes the lease when it is free, renews it, and knows whether it is held."""

    # A lease of another counts as free when it has not changed for its whole duration on our own
    # clock; the clocks of two machines are never compared. We stop acting on it a third of the
    # duration before another controller may begin. `on_change` is called with whether we hold it.
    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        seconds: float,
        stopping: threading.Event,
        on_change: Callable[[bool], None],
    ) -> None:
        super().__init__("lease", stopping)
        self._objects = Objects(connection, left=lambda: self._until - steady_seconds())
        self._namespace, self._name = namespace, name
        self._identity, self._seconds = identity, seconds
        self._on_change = on_change
        self._renewed, self._until = -math.inf, math.inf  # until when a request of ours may last
        self._seen: tuple[str, float] = ("", 0.0)
        self._was_held = False
        self._found: Object | None = None  # as we renewed it last; None if that is not known
        self._times: tuple[str, ...] = ()  # of our renewals, of which it shows one
        self.other = ""  # who holds it instead of us

    @property
    def is_held(self) -> bool:
        """Return whether this controller may act now."""
        return steady_seconds() < self._ends

    @property
    def _ends(self) -> float:
        # Time counts from when the renewal was asked for.
        # Others count from when they see it, which is later.
        return self._renewed + self._seconds * 2 / 3

    def left(self) -> float:
        """Return the seconds in which a write that begins now has to end; 0: none may begin."""
        # They end when others may begin to act, a third of the duration after we stop.
        return self._renewed + self._seconds - steady_seconds() if self.is_held else 0.0

    def _ask(self) -> float:
        self._tell()
        # However late an answer is, it is waited for as long as the lease is ours.
        self._until = self._ends if self.is_held else math.inf
        try:
            self._try()
        except ApiError as error:
            if error.status != 409:  # another one was faster, which is an answer
                raise
        self._answered()
        self._tell()
        return self._pause()

    def _after_error(self, error: ApiError | LostAnswerError | TooLateError) -> float:
        super()._after_error(error)
        return self._pause()

    def _pause(self) -> float:
        """Return the seconds to the next attempt, which comes before the lease has run out."""
        remaining = self._ends - steady_seconds()
        return min(self._seconds / 6, remaining) if remaining > 0 else self._seconds / 6

    def _tell(self) -> None:
        """Log that the lease was lost and call `on_change`, once each time it was won or lost."""
        if self.is_held == self._was_held:
            return
        self._was_held = not self._was_held
        if not self._was_held and not self._stopping.is_set():
            why = f"{self.other} has it" if self.other else self._cause
            log.error(
                "lost the lease %s/%s (%s): nothing is written until it is ours again",
                self._namespace,
                self._name,
                why,
            )
        self._on_change(self._was_held)

    def release(self) -> None:
        """Give up the lease, so that another controller can take over at once."""
        self._until = math.inf
        lease = self._objects.get(LEASES, self._name, self._namespace)
        if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
            lease["spec"]["holderIdentity"] = ""
            self._objects.replace(LEASES, lease)
        self._renewed = -math.inf

    def _try(self) -> None:
        asked, now = steady_seconds(), micro_time(time.time())
        if self._found is not None and self.is_held:
            try:
                self._renew(self._found, asked, now)
            except ApiError as error:
                if error.status != 409:  # somebody has changed it: who holds it is asked
                    raise
            else:
                return
        lease = self._objects.get(LEASES, self._name, self._namespace)
        spec: Object = {
            "holderIdentity": self._identity,
            # The API server takes whole seconds above 0 only.
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": now,
            "acquireTime": now,
        }
        # Another process may have our name: its renewals are none of ours. Our own renewals whose
        # answers were lost may have been carried out.
        shown = (lease or {"spec": {}})["spec"].get("renewTime")
        known = self._times
        if lease is None:
            meta = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            self._found = self._objects.create(LEASES, {**body, "metadata": meta, "spec": spec})
            self._has(asked, now)
            return
        holder = lease["spec"].get("holderIdentity")
        is_ours = holder == self._identity and (not known or shown in known)
        if holder and not is_ours and not self._expired(lease):
            twin = ", another process of the same name," if holder == self._identity else ""
            self._renewed, self.other = -math.inf, f"{holder}{twin}"
            self._times = known or ("",)
            return
        if is_ours:
            spec["acquireTime"] = lease["spec"].get("acquireTime") or now
        spec["leaseTransitions"] = int(lease["spec"].get("leaseTransitions") or 0) + (not is_ours)
        self._renew({**lease, "spec": spec}, asked, now)

    def _renew(self, lease: Object, asked: float, now: str) -> None:
        self._found, self._times = None, (*self._times, now)
        spec = {**lease["spec"], "renewTime": now}
        # Refused if anybody else was faster.
        self._found = self._objects.replace(LEASES, {**lease, "spec": spec})
        self._has(asked, now)

    def _has(self, asked: float, time: str) -> None:
        self._renewed, self._times, self.other = asked, (time,), ""

    def _expired(self, lease: Object) -> bool:
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = version, steady_seconds()
        # The holder may run with another duration: the longer one counts.
        seconds = max(self._seconds, float(lease["spec"].get("leaseDurationSeconds") or 0))
        return steady_seconds() > self._seen[1] + seconds
