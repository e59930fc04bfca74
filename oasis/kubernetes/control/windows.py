"""Capacity windows, in which administrators close nodes: how they are read, planned and told."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from oasis.driver.books import place_fewest
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry
from oasis.kubernetes.api.resources import WINDOWS
from oasis.kubernetes.cluster.nodes import Machines
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import WINDOW_KIND
from oasis.kubernetes.objects.conditions import time_text, with_condition
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.schema import checked, schema_of
from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry
from oasis.model.errors import InstanceError, located_at
from oasis.scheduling.placement import Room

log = logging.getLogger("oasis.kubernetes")

WEEK = 7 * 86400.0  # seconds
AHEAD = 53  # weeks for which a window that repeats is foreseen
ACCEPTED = "Accepted"  # the condition that says whether it is kept
SLACK = 1e-3  # of a slot: a window may miss a boundary by this much without taking another slot
SHOWN = 5  # nodes that are named one by one
NOTHING = "; nothing of it is done"
FINE = frozenset({ACCEPTED, "Over"})  # reasons that are no news in the log


@dataclass(frozen=True, slots=True)
class CapacityWindow:
    """A time in which some nodes take no job that is planned here."""

    name: str
    begin: float  # seconds since 1970
    end: float
    weekly: bool = False
    nodes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # of the nodes, if none is named
    notice_seconds: float | None = None  # in which pods end before it begins; None: a slot

    def concerns(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the window applies to the node with this name and these labels."""
        if self.nodes:
            return name in self.nodes
        return all(labels.get(key) == value for key, value in self.labels.items())

    def times(self, now: float) -> Iterator[tuple[float, float]]:
        """Yield begin and end of each repetition not over at `now`, for at most a year ahead."""
        if not self.weekly:
            if self.end > now:
                yield self.begin, self.end
            return
        first = max(0, math.floor((now - self.end) / WEEK) + 1)
        for week in range(first, first + AHEAD):
            yield self.begin + week * WEEK, self.end + week * WEEK


def parse_window(item: Mapping[str, Any]) -> CapacityWindow:
    """Read a ``CapacityWindow``, of which the API server has checked the rules."""
    with located_at("spec"):
        spec = checked(schema_of(WINDOW_KIND)["spec"], item.get("spec") or {})
        nodes, labels = tuple(spec.get("nodes", ())), spec.get("nodeSelector", {})
        begin, end = _time(spec["begin"], "begin"), _time(spec["end"], "end")
        # Where an older CRD let them pass, one would close all nodes and the other none.
        if not (nodes or labels):
            raise InstanceError("nodes", "expected names of nodes, or nodeSelector; none is given")
        if end <= begin:
            raise InstanceError("end", "expected a time after begin", spec["end"])
        name, notice = item["metadata"]["name"], spec.get("noticeSeconds")
        return CapacityWindow(name, begin, end, "repeat" in spec, nodes, labels, notice)


def _time(value: str, path: str) -> float:
    try:
        return datetime.fromisoformat(value).astimezone(UTC).timestamp()  # as messages tell it
    except (ValueError, OverflowError):  # also of a second 60, which the API server takes
        raise InstanceError(path, "expected a time before the year 10000 in UTC", value) from None


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
        for item in seen.of(WINDOWS):
            name = item["metadata"]["name"]
            try:
                entries, outcomes[name] = self._placed(parse_window(item), seen, machines, now)
                reserved += entries
            except InstanceError as error:
                outcomes[name] = WindowOutcome(False, "Invalid", f"{error}{NOTHING}")
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
        self, window: CapacityWindow, seen: Seen, machines: Machines, now: float
    ) -> tuple[list[CalendarEntry], WindowOutcome]:
        """Return the calendar entries of a window, and the outcome to report on it."""
        times = list(window.times(self._clock.wall(now)))
        if not times:
            return [], WindowOutcome(True, "Over", f"it ended at {time_text(window.end)}")
        labels = {name: node["metadata"].get("labels") or {} for name, node in seen.nodes.items()}
        closed = frozenset(
            k
            for k, place in enumerate(machines.places)
            if place.node in labels and window.concerns(place.node, labels[place.node])
        )
        reserved = {machines.places[k].node for k in closed}
        missing = [name for name in window.nodes if name not in reserved]
        lacks = f"expected nodes with a role, found none of {', '.join(missing)}" if missing else ""
        if not closed:
            lacks = lacks or "no node with a role has its labels"
            return [], WindowOutcome(False, "NoNode", f"{lacks}{NOTHING}")
        entries = [CalendarEntry(window.name, *self._slots(window, *at), closed) for at in times]
        if lacks:
            return entries, WindowOutcome(True, "Partly", lacks)
        when = " until ".join(map(time_text, times[0]))
        again = ", and every week from then on" if window.weekly else ""
        names = list(dict.fromkeys(machines.places[k].node for k in sorted(closed)))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        named = f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names[:SHOWN])}{more}"
        return entries, WindowOutcome(True, ACCEPTED, f"keeps {named} from {when}{again}")

    def _slots(self, window: CapacityWindow, begin: float, end: float) -> tuple[int, int]:
        """Return the first slot of a window, notice to pods included, and the one after it."""
        seconds, notice = self._clock.slot_seconds, window.notice_seconds
        begin -= seconds if notice is None else notice
        zero = self._clock.wall(self._clock.epoch)
        first = math.floor((begin - zero) / seconds + SLACK)
        return first, math.ceil((end - zero) / seconds - SLACK)

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
