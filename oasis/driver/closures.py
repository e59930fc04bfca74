"""Machines that a calendar closes in the present slot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oasis.driver.entry import Entry
from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.errors import PolicyError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING
from oasis.scheduling.site import Site

Entries = Mapping[int, Entry[Any]]


class Closures:
    """The calendar of a driver, as it stood at the last boundary."""

    def __init__(self, *, plans_around: bool) -> None:
        self.plans_around = plans_around  # whether the policy knows the calendar and sees to it
        self.calendar = EVER_OPEN
        self.closed: frozenset[int] = frozenset()  # machines, now
        # Jobs that lost a closed machine while the policy failed, so that it does not know yet.
        self.untold: frozenset[int] = frozenset()

    def move_to(self, calendar: Calendar, slot: int) -> None:
        """Move to `slot`."""
        self.calendar, self.closed = calendar, calendar.closed(slot)

    def closing(self, entries: Entries, slot: int) -> frozenset[int]:
        """Machines on which no job should start in `slot`, because a window would interrupt it.

        The longest waiting job decides, because it is unknown which job the policy would start.
        """
        # A policy that plans around the calendar keeps clear of windows by itself.
        if not self.calendar or self.plans_around:
            return frozenset()
        waiting = (entry for entry in entries.values() if not entry.complete)
        return self.calendar.closing(slot, map(slots_needed, waiting))

    def leave(self, calendar: Calendar, entries: Entries, slot: int) -> None:
        """Take jobs off the machines that are closed in `slot`, also when the policy fails."""
        closed = calendar.closed(slot)
        for index, entry in entries.items():
            if entry.allocation.machines & closed:
                entry.allocation, entry.waiting_since = NOTHING, slot
                self.untold |= {index}

    def check(self, entries: Entries, site: Site, policy: str) -> None:
        """Raise `PolicyError` if a plan uses a closed machine."""
        for entry in entries.values() if self.closed else ():
            for machine in sorted(entry.allocation.machines & self.closed):
                where = site.machines[machine].id
                raise PolicyError(policy, "is closed", job=entry.job.id, server=where)


def slots_needed(entry: Entry[Any]) -> int:
    """Slots that a job takes with the workers that it has, or is likely to get."""
    count = entry.allocation.worker_count
    # The most cautious guess where nothing is known: fewer workers take more slots.
    workers = count or entry.job.initial_workers or entry.job.min_workers
    return math.ceil(entry.remaining / workers - TOLERANCE)
