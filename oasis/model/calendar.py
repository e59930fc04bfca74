"""Closures of machines that are known beforehand: maintenance windows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from oasis.model.summary import Unchanging


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """Machines that are closed from slot `begin` to the slot before `end`."""

    name: str
    begin: int
    end: int
    machines: frozenset[int]

    def holds(self, slot: int) -> bool:
        """Whether the entry covers `slot`."""
        return self.begin <= slot < self.end


@dataclass(frozen=True, slots=True)
class Calendar(Unchanging):
    """All maintenance windows: when each machine is closed."""

    windows: tuple[CalendarEntry, ...] = ()
    # by machine, when it is closed
    _spans: dict[int, list[tuple[int, int]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for window in self.windows:
            for machine in window.machines:
                self._spans.setdefault(machine, []).append((window.begin, window.end))

    def __bool__(self) -> bool:
        return bool(self.windows)

    def closed(self, slot: int) -> frozenset[int]:
        """Return the machines on which no task may run in `slot`."""
        return frozenset(k for w in self.windows if w.holds(slot) for k in w.machines)

    def closing(self, slot: int, needs: Iterable[int]) -> frozenset[int]:
        """Return machines whose next window would interrupt a job of `needs` slots from `slot`."""
        needs, machines = set(needs), set()
        for machine, spans in self._spans.items():
            ahead = sorted(span for span in spans if span[0] > slot)
            if not ahead:
                continue
            ends = accumulate((end for _, end in ahead), max)  # one may lie within another
            gaps = [begin - end for end, (begin, _) in zip(ends, ahead[1:], strict=False)]
            longest, remaining = max(gaps, default=math.inf), ahead[0][0] - slot
            # A job that fits between no two windows does not count: it would wait for ever.
            if any(remaining < need <= longest for need in needs):
                machines.add(machine)
        return frozenset(machines)

    def to_dict(self) -> dict[str, Any]:
        """Return the calendar as plain data for JSON, the inverse of `from_dict`."""
        return {
            "windows": [asdict(one) | {"machines": sorted(one.machines)} for one in self.windows]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calendar:
        """Rebuild a calendar from the data of `to_dict`."""
        windows = ({**one, "machines": frozenset(one["machines"])} for one in data["windows"])
        return cls(tuple(CalendarEntry(**one) for one in windows))


EVER_OPEN = Calendar()
