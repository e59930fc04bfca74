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
from oasis.kubernetes.objects.capacity_window import (
    ACCEPTED,
    CapacityWindow,
    Reserve,
    parse_window,
)
from oasis.kubernetes.objects.conditions import time_text, with_condition
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.quantities import Amounts, summed
from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup
from oasis.scheduling.placement import BestFit, Room

log = logging.getLogger("oasis.kubernetes")

Seen = Mapping[str, list[Any]]
SLACK = 1e-3  # of a slot: a window may miss a boundary by this much without taking another slot
SHOWN = 5  # nodes that are named one by one
NOTHING = "; nothing of it is done"
FINE = frozenset({ACCEPTED, "Over"})  # reasons that are no news in the log
PARTS = 1000  # of a reservation without whole things in it, such as GPUs


class Said(NamedTuple):
    """What becomes of a window, as it is told on the object."""

    is_kept: bool
    reason: str  # in one word
    message: str


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


class _Placed(NamedTuple):
    """What a window keeps of each machine, whatever its pods have of it; None: all."""

    window: CapacityWindow
    shares: Mapping[int, Amounts | None]


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
        self.said: dict[str, Said] = {}  # what becomes of each, by name

    def calendar(self, seen: Seen, machines: Machines, now: float) -> Calendar:
        """Calendar of reserved capacity from the slot at `now` on; what is not kept is logged."""
        found: list[_Held] = []
        windows: list[CapacityWindow] = []
        said: dict[str, Said] = {}
        for item in seen.get(WINDOW_PLURAL, ()):
            try:
                windows.append(parse_window(item))
            except InstanceError as error:
                said[item["metadata"]["name"]] = Said(False, "Invalid", f"{error}{NOTHING}")
        placed: list[_Placed] = []
        live = [window for window in windows if any(window.times(self._clock.wall(now)))]
        # Whole nodes are kept first: amounts then go where no other window keeps anything.
        for window in sorted(windows, key=lambda one: (one.is_partial, one.begin, one.name)):
            said[window.name] = Said(True, "Over", f"it ended at {time_text(window.end)}")
            # One that is over still says where others are, which are not to move when it ends.
            if not any(window.meets(other) for other in live):
                continue
            try:
                held, told = self._placed(window, placed, seen, machines, now)
                found += held
            except InstanceError as error:
                told = Said(False, "Invalid", f"{error}{NOTHING}")
            if window in live:
                said[window.name] = told
        for name in sorted(said):
            if self.said.get(name) != said[name] and said[name].reason not in FINE:
                log.warning("%s %s: %s", WINDOW_KIND, name, said[name].message)
        # In the order in which they begin, in that of their names where it is the same.
        found.sort(key=lambda one: (one.entry.begin, one.window.name))
        self.said, self._held = said, tuple(found)
        return Calendar(tuple(one.entry for one in found))

    def told(self, seen: Seen, now: float) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """Windows whose conditions are out of date, each with the conditions to write."""
        mine = self._settings.controller
        for item in seen.get(WINDOW_PLURAL, ()):
            before = (item.get("status") or {}).get("conditions") or []
            wanted = [entry for entry in before if entry.get("controller") != mine]
            said = self.said.get(item["metadata"]["name"])
            if said is None:  # it came after the boundary
                continue
            # What is to be kept on the nodes of another controller is that one's to tell.
            if said.reason != "NoNode" or not wanted:
                own = [entry for entry in before if entry.get("controller") == mine]
                generation = int(item["metadata"].get("generation", 1))
                made = with_condition(
                    own, ACCEPTED, str(said.is_kept), *said[1:], self._clock.wall(now), generation
                )
                wanted += [{**entry, "controller": mine} for entry in made]
            wanted.sort(key=lambda entry: str(entry.get("controller")))
            if wanted != before:
                yield item, wanted

    def _placed(
        self,
        window: CapacityWindow,
        placed: list[_Placed],
        seen: Seen,
        machines: Machines,
        now: float,
    ) -> tuple[list[_Held], Said]:
        """Return the calendar entries of a window and its verdict; append it to `placed`."""
        nodes = {node["metadata"]["name"]: node for node in seen["nodes"]}
        chosen = [
            k
            for k, place in enumerate(machines.places)
            if place.node in nodes
            and window.concerns(place.node, nodes[place.node]["metadata"].get("labels") or {})
        ]
        there = {machines.places[k].node for k in chosen}
        missing = [name for name in window.nodes if name not in there]
        lacks = f"expected nodes with a role, found none of {', '.join(missing)}" if missing else ""
        if not chosen:
            lacks = lacks or "no node with a role has its labels"
            return [], Said(False, "NoNode", f"{lacks}{NOTHING}")
        shares: dict[int, Amounts | None] = dict.fromkeys(chosen)
        if window.is_partial:
            others = _together(one.shares for one in placed if one.window.meets(window))
            order = self._in_order(chosen, seen, machines)
            shares, free = self._shares(window, order, others, nodes, machines)
            if not shares:
                lacks = f"its nodes have too little of what it reserves{NOTHING}"
                return [], Said(False, "NoRoom", lacks)
            if free < 1:
                lacks = f"the nodes have {math.floor(100 * free)}% of what it reserves"
                beside = " beside other windows; more is kept when those are over"
                lacks += beside if others else ", which is kept"
        placed.append(_Placed(window, shares))
        kept = self._beyond_theirs(window, shares, seen, machines)
        spaces = () if window.reserve is None else window.reserve.namespaces or ()
        users = tuple(f"{name}/" for name in spaces)  # as the ids of their jobs begin
        times = window.times(self._clock.wall(now))
        slots = ((b, e, *self._slots(window, b, e)) for b, e in times)
        found = [
            _Held(window, begin, end, CalendarEntry(window.name, first, after, kept, users))
            for begin, end, first, after in slots
        ]
        if lacks:
            return found, Said(True, "Partly", lacks)
        return found, Said(True, ACCEPTED, "".join(self._keeps(found, machines)))

    def _keeps(self, found: Sequence[_Held], machines: Machines) -> Iterator[str]:
        """What is kept, and when; nothing of a window that is over."""
        for one in found[:1]:
            when = f"from {time_text(one.begin)} until {time_text(one.end)}"
            yield f"keeps {self._named(one, machines)} {when}"
            if one.window.weekly:
                yield ", and every week from then on"

    def _slots(self, window: CapacityWindow, begin: float, end: float) -> tuple[int, int]:
        """First slot of a window, with the notice that pods get, and the first slot after it."""
        seconds, notice = self._clock.slot_seconds, window.notice_seconds
        begin -= seconds if notice is None else notice
        zero = self._clock.wall(self._clock.epoch)
        first = math.floor((begin - zero) / seconds + SLACK)
        return first, math.ceil((end - zero) / seconds - SLACK)

    def _in_order(self, chosen: Sequence[int], seen: Seen, machines: Machines) -> list[int]:
        """Machines from the last worker node on; those that are away now come last."""
        lost = machines.lost(seen)
        workers = {k for k in chosen if TaskGroup.WORKER in machines.places[k].hosts}
        return sorted(chosen, key=lambda k: (k in lost, k not in workers, -k))

    def _shares(
        self,
        window: CapacityWindow,
        order: Sequence[int],
        others: Mapping[int, Amounts | None],
        nodes: Mapping[str, Mapping[str, Any]],
        machines: Machines,
    ) -> tuple[dict[int, Amounts | None], Fraction]:
        """Amounts kept of each machine, and which part is kept beside the `others`.

        What does not fit beside them is kept of the same machines: they may be over sooner.
        """
        assert window.reserve is not None
        asked = {
            name: amount for name, amount in (window.reserve.resources or {}).items() if amount
        }
        entries = self._settings.resources.entries
        known = [resource for _, resource, _ in entries]
        for name in asked.keys() - set(known):
            expected = f"expected a resource that is planned, {', '.join(known)}"
            raise InstanceError(f"spec.reserve.resources.{name}", expected)
        # Whole GPUs, each with its part of the rest: half a GPU is of no use to a pod.
        gpus = asked.get(entries[0][1], Fraction(0))
        parts = int(gpus) if gpus and gpus.denominator == 1 else PARTS
        given: dict[int, Fraction] = {}
        lacking = [Fraction(1)]  # which part of it is kept nowhere yet
        for among in (others, {}):
            left = lacking[-1]
            for k in order:
                taken, before = among.get(k, {}), given.get(k, Fraction(0))
                if not left or taken is None:
                    continue
                place = machines.places[k]
                has = allocatable(nodes[place.node])
                fits = min(
                    (has.get(name, 0) * place.share - taken.get(name, 0)) / amount
                    for name, amount in asked.items()
                )
                part = min(left, Fraction(math.floor((fits - before) * parts), parts))
                if part > 0:
                    given[k] = before + part
                    left -= part
            lacking.append(left)
        return {
            k: {name: amount * part for name, amount in asked.items()} for k, part in given.items()
        }, 1 - lacking[1]

    def _beyond_theirs(
        self,
        window: CapacityWindow,
        shares: Mapping[int, Amounts | None],
        seen: Seen,
        machines: Machines,
    ) -> dict[int, tuple[float, ...] | None]:
        """Amounts of the model that are kept of each machine beyond what its pods have already."""
        theirs: dict[str, Amounts] = {}
        if window.reserve is not None and window.is_partial:
            theirs = _theirs(window.reserve, seen, machines)
        kept: dict[int, tuple[float, ...] | None] = {}
        for k, share in shares.items():
            if share is None:
                kept[k] = None
                continue
            have = theirs.get(machines.places[k].node, {})
            rest = {name: max(Fraction(0), a - have.get(name, 0)) for name, a in share.items()}
            kept[k] = tuple(self._settings.resources.amounts(rest).values())
        return kept

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


def _together(parts: Iterable[Mapping[int, Amounts | None]]) -> dict[int, Amounts | None]:
    """What several windows keep of each machine; None: all of it."""
    found: dict[int, Amounts | None] = {}
    for shares in parts:
        for k, share in shares.items():
            before = found.get(k, {})
            found[k] = None if share is None or before is None else summed((before, share))
    return found


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
