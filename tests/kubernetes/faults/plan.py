"""A plan of faults for requests, drawn from a seed so that a failure can be repeated."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

STATUS_CODES = (409, 429, 500, 503, 504)
KINDS = ("status", "delay", "hang", "reset", "lost", "cut", "gone")
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong once.

    kind
        "status": the answer is `code`, and nothing was done; 429 carries Retry-After and a plain
        text, as the API server's own does. "delay": the answer comes `seconds` later. "hang":
        nothing comes for `seconds`, then the connection ends, and nothing was done. "reset": the
        connection is reset, and nothing was done. "lost": it was done, and the connection is reset
        before the answer. "cut": a watch is reset after `events` events. "gone": a watch ends with
        the event that its resourceVersion is too old (410).
    """

    kind: str
    code: int = 0
    seconds: float = 0.0
    events: int = 0

    def meets(self, method: str, *, watch: bool) -> bool:
        """Return whether a request can meet this fault."""
        if self.kind in {"cut", "gone"}:
            return watch
        if self.kind == "lost":
            return method in WRITES
        if self.kind == "status" and self.code == 409:
            return method in WRITES
        return not watch


@dataclass
class FaultPlan:
    """Faults in the order in which they strike, each after some requests that pass.

    `requests` and `watches` are two queues of (how many requests pass before it, the fault): what
    can happen to a watch never waits for a request that is none. Safe to use from several threads.
    """

    requests: list[tuple[int, Fault]] = field(default_factory=list)
    watches: list[tuple[int, Fault]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._passed = {True: 0, False: 0}

    @classmethod
    def of(cls, *faults: Fault) -> FaultPlan:
        """`faults` one after the other, as soon as requests come that can meet them."""
        at_once = [(0, fault) for fault in faults]
        return cls(
            requests=[entry for entry in at_once if not _of_watch(entry[1])],
            watches=[entry for entry in at_once if _of_watch(entry[1])],
        )

    @classmethod
    def drawn(
        cls,
        seed: int,
        count: int,
        *,
        pause: float = 5.0,
        longest: float = 2.0,
        watch_pause: float = 1.0,
    ) -> FaultPlan:
        """`count` faults from `seed`, with `pause` passing requests between two on
        average and `watch_pause` passing watches, delays and hanging up to `longest` seconds."""
        draw = random.Random(seed)
        faults = [_drawn(draw, draw.choice(KINDS), longest) for _ in range(count)]
        return cls(
            requests=[(_pause(draw, pause), fault) for fault in faults if not _of_watch(fault)],
            watches=[(_pause(draw, watch_pause), fault) for fault in faults if _of_watch(fault)],
        )

    def next(self, method: str, *, watch: bool) -> Fault | None:
        """The fault that this request meets, or None; each fault is given out once."""
        with self._lock:
            queue = self.watches if watch else self.requests
            if not queue:
                return None
            passing, fault = queue[0]
            if self._passed[watch] >= passing and fault.meets(method, watch=watch):
                self._passed[watch] = 0
                queue.pop(0)
                return fault
            self._passed[watch] += 1
            return None

    @property
    def left(self) -> int:
        """Number of faults that have not struck yet."""
        with self._lock:
            return len(self.requests) + len(self.watches)


def _of_watch(fault: Fault) -> bool:
    return fault.kind in {"cut", "gone"}


def _drawn(draw: random.Random, kind: str, longest: float) -> Fault:
    if kind == "status":
        return Fault(kind, code=draw.choice(STATUS_CODES))
    if kind in {"delay", "hang"}:
        return Fault(kind, seconds=round(draw.uniform(0.1, longest), 2))
    if kind == "cut":
        return Fault(kind, events=draw.randint(0, 3))
    return Fault(kind)


def _pause(draw: random.Random, mean: float) -> int:
    return round(draw.expovariate(1 / mean)) if mean > 0 else 0
