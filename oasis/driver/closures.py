"""Capacity that a calendar reserves in the present slot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from oasis.driver.entry import Entry
from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.errors import PolicyError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.calendar import Row, held_back, kept_capacity
from oasis.scheduling.job import NOTHING
from oasis.scheduling.site import Site

Entries = Mapping[int, Entry[Any]]
Kept = dict[int, Row]  # amounts by machine, in grid units


class Closures:
    """The calendar of a driver, as it stood at the last boundary."""

    def __init__(self, *, plans_around: bool) -> None:
        self.plans_around = plans_around  # whether the policy knows the calendar and sees to it
        self.calendar = EVER_OPEN
        self.closed: frozenset[int] = frozenset()  # machines, now
        self.kept: dict[int, Row] = {}  # what no job may use now, by machine, in grid units
        # Jobs that lost a closed machine while the policy failed, so that it does not know yet.
        self.untold: set[int] = set()
        self._slot = 0

    def come_to(self, calendar: Calendar, slot: int, site: Site) -> tuple[frozenset[int], set[int]]:
        """Move to `slot`; return the machines with less and those with more capacity than before.

        A reservation for some jobs is kept from all jobs, unless the policy plans around it.
        """
        shared, self._slot = not self.plans_around, slot
        before, self.kept = self.kept, kept_capacity(calendar, slot, site, shared=shared)
        self.calendar, self.closed = calendar, calendar.closed(slot, shared=shared)
        less = frozenset(k for k, row in self.kept.items() if _is_less(before.get(k), row))
        return less, {k for k, row in before.items() if _is_less(self.kept.get(k), row)}

    def copied(self) -> Closures:
        """Return an independent copy."""
        made = copy(self)
        made.untold = set(self.untold)
        return made

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
        # Only machines that are closed to all: what is reserved for some stays in use until the
        # policy works again.
        closed = calendar.closed(slot, shared=False)
        for index, entry in entries.items():
            if entry.allocation.machines & closed:
                entry.allocation, entry.waiting_since = NOTHING, slot
                self.untold.add(index)

    def held_back(self, entries: Iterable[Entry[Any]], site: Site, job_id: str = "") -> Kept:
        """Return the capacity by machine that is reserved now for other jobs and not used by them.

        Without what is kept for the job with this id. Nothing if it is kept from all jobs.
        """
        if not self.plans_around:
            return {}
        held = ((entry.job, entry.allocation) for entry in entries)
        return held_back(self.calendar, self._slot, site, held, job_id)

    def check(self, entries: Entries, free: Sequence[Row], site: Site, policy: str) -> None:
        """Raise `PolicyError` if a plan, which leaves `free`, uses closed or reserved capacity."""
        for entry in entries.values() if self.closed else ():
            for machine in sorted(entry.allocation.machines & self.closed):
                where = site.machines[machine].id
                raise PolicyError(policy, "is closed", job=entry.job.id, server=where)
        kept = self.held_back(entries.values(), site)
        for entry in entries.values() if kept else ():
            # The owner of a reservation may use it, and all other free capacity as well.
            if self.calendar.users_of(entry.job.id):
                continue
            demands = (entry.job.worker, entry.job.ps)
            for tasks, demand in zip(entry.allocation.by_group, demands, strict=True):
                for machine, _ in tasks:
                    if any(free[machine][r] < kept.get(machine, {r: 0})[r] for r, _ in demand):
                        where = site.machines[machine].id
                        detail = "uses what is kept for other jobs"
                        raise PolicyError(policy, detail, job=entry.job.id, server=where)


def slots_needed(entry: Entry[Any]) -> int:
    """Slots that a job takes with the workers that it has, or is likely to get."""
    held = entry.allocation.worker_count
    # The most cautious guess where nothing is known: fewer workers take more slots.
    workers = held or entry.job.initial_workers or entry.job.min_workers
    return math.ceil(entry.remaining / workers - TOLERANCE)


def _is_less(row: Row | None, other: Row) -> bool:
    """Return whether an amount of `row` is less than that of `other`; a missing row is zero."""
    return any(a < b for a, b in zip(row or (0,) * len(other), other, strict=True))
