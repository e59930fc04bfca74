"""How capacity windows are planned, and what is told of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oasis.driver.books import place_fewest
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry
from oasis.kubernetes.api.resources import WINDOWS
from oasis.kubernetes.cluster.nodes import Machines
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import WINDOW_KIND
from oasis.kubernetes.objects.capacity_window import CapacityWindow
from oasis.kubernetes.objects.conditions import time_text, with_condition
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry
from oasis.scheduling.placement import Room

log = logging.getLogger("oasis.kubernetes")

ACCEPTED = "Accepted"  # the condition that says whether it is kept
SHOWN = 5  # nodes that are named one by one
NOTHING = "; nothing of it is done"
FINE = frozenset({ACCEPTED, "Over"})  # reasons that are no news in the log


class WindowOutcome(NamedTuple):
    """Whether a window is kept, with the reason and message of its condition."""

    is_kept: bool
    reason: str  # in one word
    message: str


class Windows:
    """The capacity windows of a cluster, rounded outwards to the slots of `clock`."""

    def __init__(self, settings: ControllerSettings, clock: SlotClock) -> None:
        self._settings, self._clock = settings, clock
        self._calendar = EVER_OPEN
        self.outcomes: dict[str, WindowOutcome] = {}  # what becomes of each, by name

    def calendar(self, seen: Seen, machines: Machines, now: float) -> Calendar:
        """Return the calendar of closed nodes, from the slot at `now` on; log faulty windows."""
        reserved: list[CalendarEntry] = []
        outcomes: dict[str, WindowOutcome] = {}
        for name, window in seen.windows.items():
            if isinstance(window, str):
                outcomes[name] = WindowOutcome(False, "Invalid", f"{window}{NOTHING}")
                continue
            entries, outcomes[name] = self._placed(window, seen.nodes, machines, now)
            reserved += entries
        for name in sorted(outcomes):
            if self.outcomes.get(name) != outcomes[name] and outcomes[name].reason not in FINE:
                log.warning("%s %s: %s", WINDOW_KIND, name, outcomes[name].message)
        # In the order in which they begin, in that of their names where it is the same.
        reserved.sort(key=lambda one: (one.begin, one.name))
        self.outcomes, self._calendar = outcomes, Calendar(tuple(reserved))
        return self._calendar

    def outdated(self, seen: Seen, now: float) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """Yield each window whose conditions are out of date, with the conditions to write."""
        mine = self._settings.controller
        for item in seen.of(WINDOWS):
            before = (item.get("status") or {}).get("conditions") or []
            after = [entry for entry in before if entry.get("controller") != mine]
            result = self.outcomes.get(item["metadata"]["name"])
            if result is None:  # it came after the boundary
                continue
            # What is to be kept on the nodes of another controller is that one's to tell.
            if result.reason != "NoNode" or not after:
                own = [entry for entry in before if entry.get("controller") == mine]
                generation = int(item["metadata"].get("generation", 1))
                kept, at = str(result.is_kept), self._clock.wall(now)
                conditions = with_condition(own, ACCEPTED, kept, *result[1:], at, generation)
                after += [{**entry, "controller": mine} for entry in conditions]
            after.sort(key=lambda entry: str(entry.get("controller")))
            if after != before:
                yield item, after

    def _placed(
        self, window: CapacityWindow, nodes: Mapping[str, Any], machines: Machines, now: float
    ) -> tuple[list[CalendarEntry], WindowOutcome]:
        """Return the calendar entries of a window, and the outcome to report on it."""
        times = list(window.times(self._clock.wall(now)))
        if not times:
            return [], WindowOutcome(True, "Over", f"it ended at {time_text(window.end)}")
        concerned = {name for name, node in nodes.items() if window.concerns(node)}
        closed = frozenset(k for k, at in enumerate(machines.places) if at.node in concerned)
        reserved = {machines.places[k].node for k in closed}
        missing = [name for name in window.nodes if name not in reserved]
        lacks = f"expected nodes with a role, found none of {', '.join(missing)}" if missing else ""
        if not closed:
            lacks = lacks or "no node with a role has its labels"
            return [], WindowOutcome(False, "NoNode", f"{lacks}{NOTHING}")
        entries = [
            CalendarEntry(window.name, *window.slots(self._clock, *at), closed) for at in times
        ]
        if lacks:
            return entries, WindowOutcome(True, "Partly", lacks)
        when = " until ".join(map(time_text, times[0]))
        again = ", and every week from then on" if window.weekly else ""
        names = list(dict.fromkeys(machines.places[k].node for k in sorted(closed)))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        named = f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names[:SHOWN])}{more}"
        return entries, WindowOutcome(True, ACCEPTED, f"keeps {named} from {when}{again}")

    def cause(self, entry: Entry[JobSpec], driver: Driver[JobSpec]) -> str | None:
        """Return which windows keep a waiting job from starting now; None if none does."""
        if not self._calendar or entry.allocation.workers:
            return None
        site, free, closing = driver.site, driver.free, driver.closing
        unclosed = [(0,) * len(row) if k in closing else row for k, row in enumerate(free)]
        closed, forms = driver.closed - driver.away, entry.forms or (entry.job,)
        for k in closed:
            free[k] = site.machines[k].capacity
        starts = any(place_fewest(Room(site, unclosed, driver.down), job) for job in forms)
        if starts or not any(place_fewest(Room(site, free, driver.away), job) for job in forms):
            return None
        ahead = [one for one in self._calendar.windows if one.machines & (closed | closing)]
        if not ahead:  # it went while the policy fails, so that the last plan still keeps it
            return None
        now = [one for one in ahead if one.holds(int(driver.now))] or ahead[:1]
        return f"waits for maintenance window {' and '.join(one.name for one in now)}"
