"""Capacity windows: the calendar of the plan, and the reasons that jobs are told."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from oasis.driver.closures import slots_needed
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry
from oasis.kubernetes.cluster.nodes import allocatable, foreign_use
from oasis.kubernetes.control.admission import reach_of
from oasis.kubernetes.control.machines import Machines, ours
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import WINDOW_KIND, WINDOW_PLURAL
from oasis.kubernetes.objects.capacity_window import CapacityWindow, Reserve, parse_window
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.quantities import Amounts
from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup
from oasis.scheduling.placement import BestFit, Room

log = logging.getLogger("oasis.kubernetes")

Seen = Mapping[str, list[Any]]
SLACK = 1e-3  # of a slot: a window may miss a boundary by this much without taking another slot
SHOWN = 5  # nodes that are named one by one
PARTS = 1000  # of a reservation without whole things in it, such as GPUs


class Cause(NamedTuple):
    """Reason why a job waits, or leaves its node."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Held:
    """A window as it stands in the calendar."""

    window: CapacityWindow
    begin: float  # on the clock on the wall, of this repetition
    end: float
    entry: CalendarEntry


class Windows:
    """The capacity windows of a cluster.

    Parameters
    ----------
    settings : ControllerSettings
        The length of a slot, and the names of resources.
    clock : SlotClock
        Its slots are what windows are rounded to, outwards.
    """

    def __init__(self, settings: ControllerSettings, clock: SlotClock) -> None:
        self._settings, self._clock = settings, clock
        self._held: tuple[_Held, ...] = ()
        self._said: dict[str, str] = {}  # what was logged last about each

    def calendar(self, seen: Seen, machines: Machines, now: float) -> Calendar:
        """Calendar of reserved capacity from the slot at `now` on; invalid windows are logged."""
        found: list[_Held] = []
        said: dict[str, str] = {}
        for item in seen.get(WINDOW_PLURAL, ()):
            name = item["metadata"]["name"]
            try:
                window = parse_window(item)
                held, said[name] = self._placed(window, seen, machines, now)
                found += held
            except InstanceError as error:
                said[name] = f"{error}; nothing of it is done"
        for name in sorted(said):
            if self._said.get(name) != said[name] and said[name]:
                log.warning("%s %s: %s", WINDOW_KIND, name, said[name])
        # In the order in which they begin, in that of their names where it is the same.
        found.sort(key=lambda one: (one.entry.begin, one.window.name))
        self._said, self._held = said, tuple(found)
        return Calendar(tuple(one.entry for one in found))

    def _placed(
        self, window: CapacityWindow, seen: Seen, machines: Machines, now: float
    ) -> tuple[list[_Held], str]:
        """Return the calendar entries of a window, and a message if it cannot hold as declared."""
        nodes = {node["metadata"]["name"]: node for node in seen["nodes"]}
        chosen = [
            k
            for k, place in enumerate(machines.places)
            if place.node in nodes
            and window.concerns(place.node, nodes[place.node]["metadata"].get("labels") or {})
        ]
        there = {machines.places[k].node for k in chosen}
        missing = [name for name in window.nodes if name not in there]
        said = f"expected nodes with a role, found none of {', '.join(missing)}" if missing else ""
        if not chosen and not missing:
            said = "no node with a role has its labels"
        kept: dict[int, tuple[float, ...] | None] = dict.fromkeys(chosen)
        if window.reserve is not None and window.reserve.resources is not None:
            kept, part = self._shares(window.reserve, chosen, nodes, machines)
            if part < 1:
                said = f"the nodes have {float(part):.0%} of what it reserves, which is kept"
            theirs = _theirs(window.reserve, seen, machines)
            for k, amounts in kept.items():
                use = self._settings.resources.amounts(theirs.get(machines.places[k].node, {}))
                if amounts is not None:  # what its pods have already is not kept once more
                    pairs = zip(amounts, use.values(), strict=True)
                    kept[k] = tuple(max(0.0, amount - used) for amount, used in pairs)
        spaces = () if window.reserve is None else window.reserve.namespaces or ()
        users = tuple(f"{name}/" for name in spaces)  # as the ids of their jobs begin
        slots = ((b, e, *self._slots(window, b, e)) for b, e in window.times(self._clock.wall(now)))
        return [
            _Held(window, begin, end, CalendarEntry(window.name, first, after, kept, users))
            for begin, end, first, after in slots
            if kept
        ], said

    def _slots(self, window: CapacityWindow, begin: float, end: float) -> tuple[int, int]:
        """First slot of a window, with the notice that pods get, and the first slot after it."""
        seconds, notice = self._clock.slot_seconds, window.notice_seconds
        begin -= seconds if notice is None else notice
        zero = self._clock.wall(self._clock.epoch)
        first = math.floor((begin - zero) / seconds + SLACK)
        return first, math.ceil((end - zero) / seconds - SLACK)

    def _shares(
        self,
        reserve: Reserve,
        chosen: Sequence[int],
        nodes: Mapping[str, Mapping[str, Any]],
        machines: Machines,
    ) -> tuple[dict[int, tuple[float, ...] | None], Fraction]:
        """Amounts kept of each machine, last worker node first, and which part of the request."""
        asked = {name: amount for name, amount in (reserve.resources or {}).items() if amount}
        known = [resource for _, resource, _ in self._settings.resources.entries]
        for name in asked.keys() - set(known):
            expected = f"expected a resource that is planned, {', '.join(known)}"
            raise InstanceError(f"spec.reserve.resources.{name}", expected)
        whole = [int(a) for name, a in asked.items() if "/" in name and a.denominator == 1]
        parts, left = max(whole, default=PARTS), Fraction(1)
        is_worker = {k: TaskGroup.WORKER in machines.places[k].hosts for k in chosen}
        kept: dict[int, tuple[float, ...] | None] = {}
        for k in sorted(chosen, key=lambda k: (not is_worker[k], -k)):
            place = machines.places[k]
            has = {n: a * place.share for n, a in allocatable(nodes[place.node]).items()}
            fits = min(has.get(name, Fraction(0)) / amount for name, amount in asked.items())
            # Whole GPUs, each with its part of the rest: half a GPU is of no use to a pod.
            part = min(left, Fraction(math.floor(fits * parts), parts))
            if part > 0:
                share = {name: amount * part for name, amount in asked.items()}
                kept[k] = tuple(self._settings.resources.amounts(share).values())
                left -= part
        return kept, 1 - left

    # -- what jobs are told ------------------------------------------------------------------------

    def cause(
        self, entry: Entry[JobSpec], driver: Driver[JobSpec], machines: Machines
    ) -> Cause | None:
        """The window for which a job waits, or before which it leaves a node; None if none."""
        if not self._held:
            return None
        slot = int(driver.now)
        if entry.allocation.workers:
            return self._leaving(entry, slot, machines)
        found = self._in_the_way(entry, driver, slot)
        if not found:
            return None
        return Cause(
            found[0].window.reason,
            " and ".join(f"waits for {self._keeping(one, slot, machines)}" for one in found),
        )

    def _keeping(self, one: _Held, slot: int, machines: Machines) -> str:
        begins = "" if one.entry.holds(slot) else f" from {time_text(one.begin)}"
        nodes = self._named(one, machines)
        return f"{one.window.what}, which keeps {nodes}{begins} until {time_text(one.end)}"

    def _leaving(self, entry: Entry[JobSpec], slot: int, machines: Machines) -> Cause | None:
        """The next window on a machine that the job has, if it is not complete before."""
        on, ends = entry.allocation.machines, slot + slots_needed(entry)
        ahead = [
            one
            for one in self._held
            if slot < one.entry.begin < ends and on & one.entry.machines.keys()
        ]
        if not ahead:
            return None
        first = [one for one in ahead if one.entry.begin == ahead[0].entry.begin]
        # The plan may have placed the rest of the job elsewhere, or later.
        said = (
            f"leaves {self._named(one, machines, on)} by {self._begin_of(one)}, as "
            f"{one.window.what} begins at {time_text(one.begin)}"
            for one in first
        )
        return Cause(first[0].window.reason, " and ".join(said))

    def _begin_of(self, one: _Held) -> str:
        return time_text(self._clock.wall(self._clock.begin(one.entry.begin)))

    def _in_the_way(self, entry: Entry[JobSpec], driver: Driver[JobSpec], slot: int) -> list[_Held]:
        """Windows without which the waiting job could start now."""
        free, closing = driver.free, driver.closing
        for k in closing:
            free[k] = (0,) * len(free[k])
        entries = driver.entries.values()
        others = driver.closures.held_back(entries, driver.site, entry.spec.id)
        if _placed(entry, Room(driver.site, free, driver.down).without(others)) is not None:
            return []
        free = driver.free
        for k, kept in driver.closures.kept.items():
            if k not in driver.away:
                free[k] = tuple(a + b for a, b in zip(free[k], kept, strict=True))
        used = _placed(entry, Room(driver.site, free, driver.away))
        if used is None:
            return []
        now = [o for o in self._held if o.entry.holds(slot) and used & o.entry.machines.keys()]
        soon = used & closing
        return (
            now
            or [
                one
                for one in self._held
                if soon & one.entry.machines.keys() and one.entry.begin > slot
            ][:1]
        )

    def _named(self, one: _Held, machines: Machines, among: Iterable[int] | None = None) -> str:
        kept = one.entry.machines.keys() if among is None else one.entry.machines.keys() & among
        names = list(dict.fromkeys(machines.places[k].node for k in sorted(kept)))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        word = "node" if len(names) == 1 else "nodes"
        part = "" if None in one.entry.machines.values() else "a part of "
        return f"{part}{word} {', '.join(names[:SHOWN])}{more}"

    def beside(self, reason: str, driver: Driver[JobSpec]) -> str:
        """Extend the reason of a rejection by the windows that the plan had to go around."""
        slot, reach = int(driver.now), reach_of(driver.policy)
        told = dict.fromkeys(
            f"{one.window.what} from {time_text(one.begin)} to {time_text(one.end)}"
            for one in self._held
            if reach is not None and one.entry.begin < slot + reach and one.entry.end > slot
        )
        return f"{reason}; planned around {', '.join(told)}" if told else reason


def _placed(entry: Entry[JobSpec], room: Room) -> set[int] | None:
    """Machines on which the fewest tasks of a job find room; None if they find none."""
    for job in entry.forms or (entry.job,):
        least = job.min_workers
        found = BestFit().place(room, job, least, job.ps_needed(least))
        if found is not None:
            return set(found.machines)
    return None


def _theirs(reserve: Reserve, seen: Seen, machines: Machines) -> dict[str, Amounts]:
    """Return the requests, by node, of the running pods for which capacity is reserved."""
    spaces = reserve.namespaces
    pods: Iterator[Any] = (
        pod for pod in seen["pods"] if spaces is None or pod["metadata"]["namespace"] in spaces
    )
    found = foreign_use(pods, ours(seen))
    return {
        node: {
            name: min(amount, machines.foreign.get(node, {}).get(name, Fraction(0)))
            for name, amount in asked.items()
        }
        for node, asked in found.items()
    }
