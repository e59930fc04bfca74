"""The cost of changing a running job, measured on the changes that were requested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from oasis.driver.entry import Entry
from oasis.kubernetes.objects.oasis_job import JobSpec

ENOUGH = 3  # measured changes of a job: from then on the others of its kind do not count
OF_JOB, OF_KIND = 9, 99  # measurements kept: enough for a median, few enough to follow a trend


@dataclass(slots=True)
class _Change:
    """A change that is under way."""

    kind: str
    wanted: int  # workers of the new gang
    at: float  # up to when it was counted
    working: int = 0
    lost: float = 0.0  # seconds of work of the whole gang


@dataclass(slots=True)
class Changes:
    """Seconds of work lost by each change, from its request until the gang is complete.

    A gang loses less if a part of it works on. For example, a change from two workers to
    four takes 30 s, and two work on meanwhile: it costs 15 s. A change that is followed by another
    one before its gang was whole is counted with it; one that ends in a pause is not counted.

    Parameters
    ----------
    observe : callable
        Told kind and seconds of each.

    Examples
    --------
    >>> changes = Changes(lambda kind, seconds: None)
    >>> changes.begin("j", "elastic", 4, at=0.0)
    >>> changes.note("j", 2, at=0.0)
    >>> changes.note("j", 4, at=30.0)
    >>> changes.cost("j", "elastic"), changes.cost("other", "restart")
    (15.0, None)
    """

    observe: Callable[[str, float], object]
    _open: dict[str, _Change] = field(default_factory=dict)
    _resizes: dict[str, int] = field(default_factory=dict)  # changes of a job that began before
    _jobs: dict[str, list[float]] = field(default_factory=dict)
    _kinds: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, changed: Iterable[str], live: Mapping[str, Entry[JobSpec]], at: float) -> None:
        """Begin to measure what a boundary `changed`, and forget the jobs that are not `live`."""
        for uid in changed:
            entry = live.get(uid)
            if entry is None or not entry.allocation.workers:
                self._open.pop(uid, None)
            elif entry.resizes > self._resizes.get(uid, 0):
                self._resizes[uid] = entry.resizes
                self.begin(uid, entry.spec.resize, entry.allocation.worker_count, at)
        for kept in (self._open, self._resizes, self._jobs):
            for uid in kept.keys() - live.keys():
                del kept[uid]

    def begin(self, uid: str, kind: str, wanted: int, at: float) -> None:
        """Begin to measure a change to `wanted` workers, requested at `at`."""
        before = self._open.get(uid)
        if before is not None:
            self.note(uid, before.working, at)
        lost = 0.0 if before is None else before.lost
        self._open[uid] = _Change(kind, wanted, at, lost=lost)

    def note(self, uid: str, working: int, at: float) -> None:
        """Record that `working` workers of a job work from `at` on."""
        change = self._open.get(uid)
        if change is None:
            return
        idle = 1.0 - min(1.0, change.working / change.wanted)
        change.lost += idle * max(0.0, at - change.at)
        change.at, change.working = max(at, change.at), working
        if working >= change.wanted:
            del self._open[uid]
            for last, most in (
                (self._jobs.setdefault(uid, []), OF_JOB),
                (self._kinds.setdefault(change.kind, []), OF_KIND),
            ):
                last.append(round(change.lost, 3))
                del last[:-most]
            self.observe(change.kind, change.lost)

    def cost(self, uid: str, kind: str) -> float | None:
        """Seconds that a change of a job is expected to take; None if none was measured.

        The median of its own changes if there are `ENOUGH` of them, otherwise that of its kind.
        """
        own = self._jobs.get(uid, ())
        last = own if len(own) >= ENOUGH else self._kinds.get(kind, ())
        return median(last) if last else None

    def costs(self, live: Mapping[str, Entry[JobSpec]], slot_seconds: float) -> dict[str, float]:
        """Expected cost of a change in slots, for every live job with a known cost."""
        found = {uid: self.cost(uid, entry.spec.resize) for uid, entry in live.items()}
        return {uid: cost / slot_seconds for uid, cost in found.items() if cost is not None}

    def state(self) -> dict[str, Any]:
        """Plain data for a takeover, without changes that are under way."""
        return {"resizes": self._resizes, "jobs": self._jobs, "kinds": self._kinds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the measured costs from the data of `state`."""
        self._resizes = dict(state["resizes"])
        self._jobs = {uid: list(last) for uid, last in state["jobs"].items()}
        self._kinds = {kind: list(last) for kind, last in state["kinds"].items()}
