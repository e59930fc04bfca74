"""Capacity windows, in which administrators close nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from oasis.kubernetes.names import WINDOW_KIND
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.schema import checked, schema_of
from oasis.model.errors import InstanceError, located_at

WEEK = 7 * 86400.0  # seconds
SLACK = 1e-3  # of a slot: a window may miss a boundary by this much without taking another slot
AHEAD = 53  # weeks for which a window that repeats is foreseen


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

    def concerns(self, node: Mapping[str, Any]) -> bool:
        """Return whether the window applies to a node."""
        if self.nodes:
            return node["metadata"]["name"] in self.nodes
        labels = node["metadata"].get("labels") or {}
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

    def slots(self, clock: SlotClock, begin: float, end: float) -> tuple[int, int]:
        """Return the first slot of a repetition, notice to pods included, and the one after it."""
        notice = clock.slot_seconds if self.notice_seconds is None else self.notice_seconds
        zero = clock.wall(clock.epoch)
        first = math.floor((begin - notice - zero) / clock.slot_seconds + SLACK)
        return first, math.ceil((end - zero) / clock.slot_seconds - SLACK)


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
