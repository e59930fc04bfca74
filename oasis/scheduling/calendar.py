"""Capacity that a calendar keeps, in the grid units of a site."""

from __future__ import annotations

import math
from collections.abc import Iterable

from oasis.model.calendar import Calendar
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import Room
from oasis.scheduling.site import Site

Row = tuple[int, ...]


def kept_capacity(
    calendar: Calendar, slot: int, site: Site, *, shared: bool = True
) -> dict[int, Row]:
    """Return the capacity that no job may use in `slot`, by machine, in the grid units of `site`.

    What is kept only for some jobs counts unless `shared` is False.
    """
    found: dict[int, Row] = {}
    for window in calendar.at(slot, shared=shared):
        for machine, kept in window.machines.items():
            most = site.machines[machine].capacity
            before = found.get(machine, (0,) * len(most))
            # Rounded up: a part of a grid unit cannot be used either.
            added = most if kept is None else [math.ceil(a * site.grid) for a in kept]
            both = zip(before, added, most, strict=True)
            # Windows that overlap add up, but keep no more than there is.
            found[machine] = tuple(min(old + new, whole) for old, new, whole in both)
    return found


def held_back(
    calendar: Calendar,
    slot: int,
    site: Site,
    held: Iterable[tuple[PolicyJob, Allocation]],
    job_id: str = "",
) -> dict[int, Row]:
    """Return the capacity that is kept in `slot` for some jobs and not used by them.

    By machine, in grid units; without the capacity kept for the job with this id.

    Parameters
    ----------
    held : iterable of pair of PolicyJob and Allocation
        All jobs with their present allocations.
    """
    found: dict[int, Row] = {}
    nothing, held = (0,) * len(site.resources), list(held)
    mine = calendar.users_of(job_id)
    for users in {window.users for window in calendar.at(slot) if window.users} - {mine}:
        own = Calendar(tuple(w for w in calendar.windows if w.users == users))
        kept = kept_capacity(own, slot, site)
        room = Room(site, [kept.get(k, nothing) for k in range(len(site.machines))])
        for job, allocation in held:
            if calendar.users_of(job.id) == users:
                room.occupy(job, allocation)
        for k in kept:
            # Those jobs may hold more than their share: that is no share of others.
            pairs = zip(found.get(k, nothing), room.free[k], strict=True)
            found[k] = tuple(a + max(0, b) for a, b in pairs)
    return found
