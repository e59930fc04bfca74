"""The agenda of a run: known future events in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from oasis.driver.loop import INFINITY
from oasis.scheduling.job import PolicyJob

COMPLETION, LOSS, RETURN, SAVED = range(4)  # also the order at one instant; then the arrivals


@dataclass(frozen=True, slots=True)
class Outage:
    """Machine `machine` is lost at time `begin` and back at time `end`.

    Examples
    --------
    >>> Outage(3, begin=60.0)
    Outage(machine=3, begin=60.0, end=inf)
    """

    machine: int
    begin: float
    end: float = INFINITY


class Agenda:
    """Events by time; those of one instant by kind and then by job or machine."""

    __slots__ = ("_arrivals", "_heap", "_next")

    def __init__(self, jobs: tuple[PolicyJob, ...], outages: Iterable[Outage]) -> None:
        # Arrivals are sorted already and stay out of the heap, which keeps it small.
        self._arrivals = jobs
        self._next = 0
        self._heap: list[tuple[float, int, int, int]] = []
        for outage in outages:
            self._heap.append((outage.begin, LOSS, outage.machine, 0))
            if outage.end < INFINITY:
                self._heap.append((outage.end, RETURN, outage.machine, 0))
        heapify(self._heap)

    def add(self, time: float, kind: int, subject: int, version: int) -> None:
        """Schedule an event; `version` lets its receiver tell whether it still holds."""
        # Tuples compare by time, kind, subject: events of one instant
        # come in the same order in every run.
        heappush(self._heap, (time, kind, subject, version))

    @property
    def next_time(self) -> float:
        """Time of the next event; infinity if there is none."""
        time = self._heap[0][0] if self._heap else INFINITY
        if self._next < len(self._arrivals):
            arrival = self._arrivals[self._next].arrival
            return arrival if arrival < time else time
        return time

    def take_events(self, now: float) -> list[tuple[float, int, int, int]]:
        """All events but arrivals that are due at `now`, in their order."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= now:
            due.append(heappop(heap))
        return due

    def take_arrivals(self, now: float) -> list[PolicyJob]:
        """Jobs that arrive at `now`, in the order of the file."""
        begin = self._next
        while self._next < len(self._arrivals) and self._arrivals[self._next].arrival <= now:
            self._next += 1
        return list(self._arrivals[begin : self._next])
