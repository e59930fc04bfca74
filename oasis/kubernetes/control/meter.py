"""Counts the work that gangs do: worker-seconds of pods seen Running and Ready, never more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from oasis.kubernetes.api.lease import steady_seconds
from oasis.kubernetes.objects.oasis_job import SlotClock

log = logging.getLogger("oasis.kubernetes")

JUMP = 1.0  # seconds; by less, a clock is only corrected


class SteadyTime:
    """A clock for slots and work that is not affected by changes of the system time."""

    def __init__(
        self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = steady_seconds
    ) -> None:
        self._wall, self._passed = wall, passed
        self.begin()

    def begin(self) -> None:
        """Set the clock to the present wall-clock time."""
        self._offset, self._drift = self._wall() - self._passed(), 0.0

    def __call__(self) -> float:
        """Return seconds since 1970 by the wall clock at the start, advanced by a steady clock."""
        return self._offset + self._passed()

    def drift(self) -> float:
        """Return by how much the wall clock was set since the start; less than `JUMP` is none."""
        drift = self._wall() - self()
        if abs(drift - self._drift) >= JUMP:
            log.warning(
                "the clock of this machine was set by %+.0f s: slots and work go on by the time "
                "that passes, and no job is credited with it",
                drift - self._drift,
            )
            self._drift = drift
        return self._drift


@dataclass(slots=True)
class _Gang:
    since: float
    workers: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)  # by worker, in the present slot


class WorkMeter:
    """Counts the work of each job, worker by worker."""

    # A worker is credited for the time in which its gang was complete, but never with more than a
    # worker-slot a slot. What it saw begin is counted from when it saw it, so the sum is at most
    # the time for which the pods ran.
    def __init__(self, clock: SlotClock) -> None:
        self._clock = clock
        self._gangs: dict[str, _Gang] = {}

    def note(self, uid: str, workers: Iterable[str], at: float) -> None:
        """Record the workers of a job that work from `at` on; none while its gang is incomplete."""
        gang = self._gangs.setdefault(uid, _Gang(at))
        _credit(gang, at)
        gang.workers = tuple(workers)

    def close(self, at: float) -> dict[str, float]:
        """End a slot at `at`; return the worker-slots of each job since the last call."""
        most = self._clock.work_seconds
        done = {}
        for uid, gang in self._gangs.items():
            _credit(gang, at)
            done[uid] = sum(min(most, seconds) for seconds in gang.seconds.values()) / most
            gang.seconds.clear()
        return done

    def working(self, uid: str) -> set[str]:
        """Return the workers of a job that are credited now."""
        gang = self._gangs.get(uid)
        return set() if gang is None else set(gang.workers)

    def forget(self, keep: Callable[[str], bool]) -> None:
        """Drop all jobs but those whose uids `keep` accepts."""
        self._gangs = {uid: gang for uid, gang in self._gangs.items() if keep(uid)}


def _credit(gang: _Gang, at: float) -> None:
    """Credit the workers of a gang with the time up to `at`."""
    # Notes may come out of order, as a boundary is noted at its nominal time: no time counts twice.
    at = max(at, gang.since)
    for worker in gang.workers:
        gang.seconds[worker] = gang.seconds.get(worker, 0.0) + (at - gang.since)
    gang.since = at
