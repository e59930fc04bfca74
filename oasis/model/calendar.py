"""Capacity by slot that is known beforehand: maintenance windows and reservations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """Capacity of some machines, closed or reserved from slot `begin` to the slot before `end`."""

    name: str
    begin: int
    end: int
    machines: Mapping[int, tuple[float, ...] | None]
    users: tuple[str, ...] = ()

    def holds(self, slot: int) -> bool:
        """Whether the entry covers `slot`."""
        return self.begin <= slot < self.end


@dataclass(frozen=True, slots=True)
class Calendar:
    """The windows that are known; an empty one changes no decision."""

    windows: tuple[CalendarEntry, ...] = ()
    # by machine, when something is kept of it
    _spans: dict[int, list[tuple[int, int]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for window in self.windows:
            for machine in window.machines:
                self._spans.setdefault(machine, []).append((window.begin, window.end))

    def __bool__(self) -> bool:
        return bool(self.windows)

    def __deepcopy__(self, memo: dict[int, object]) -> Calendar:
        """Return itself, because it is immutable."""
        return self

    def at(self, slot: int, *, shared: bool = True) -> list[CalendarEntry]:
        """The windows that are for `slot`; those that some jobs may use only if `shared`."""
        return [w for w in self.windows if w.holds(slot) and (shared or not w.users)]

    def users_of(self, job_id: str) -> tuple[str, ...]:
        """The `users` of a window that keeps something for a job; empty if none does."""
        return next((w.users for w in self.windows if w.users and job_id.startswith(w.users)), ())

    def closed(self, slot: int, *, shared: bool = True) -> frozenset[int]:
        """Machines on which no task may run in `slot`."""
        return frozenset(
            machine
            for window in self.at(slot, shared=shared)
            for machine, kept in window.machines.items()
            if kept is None
        )

    def next_begin(self, machine: int, slot: int) -> int | None:
        """The first slot after `slot` in which a window begins on `machine`; None if none does."""
        begins = (begin for begin, _ in self._spans.get(machine, ()) if begin > slot)
        return min(begins, default=None)

    def closing(self, slot: int, needs: Iterable[int]) -> frozenset[int]:
        """Machines on which a window would interrupt a job that begins in `slot`.

        Jobs that need more than there is between two windows of a machine do not count: they would
        wait for ever.
        """
        needs, found = set(needs), set()
        for machine, spans in self._spans.items():
            ahead = sorted(span for span in spans if span[0] > slot)
            if not ahead:
                continue
            ends = accumulate((end for _, end in ahead), max)  # one may lie within another
            gaps = [begin - end for end, (begin, _) in zip(ends, ahead[1:], strict=False)]
            longest, left = max(gaps, default=math.inf), ahead[0][0] - slot
            if any(left < need <= longest for need in needs):
                found.add(machine)
        return frozenset(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "windows": [
                {
                    "name": window.name,
                    "begin": window.begin,
                    "end": window.end,
                    "machines": [
                        [machine, None if kept is None else list(kept)]
                        for machine, kept in sorted(window.machines.items())
                    ],
                    "users": list(window.users),
                }
                for window in self.windows
            ]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calendar:
        """The inverse of `to_dict`."""
        return cls(
            tuple(
                CalendarEntry(
                    entry["name"],
                    entry["begin"],
                    entry["end"],
                    {
                        machine: None if kept is None else tuple(kept)
                        for machine, kept in entry["machines"]
                    },
                    tuple(entry["users"]),
                )
                for entry in data["windows"]
            )
        )


EVER_OPEN = Calendar()
