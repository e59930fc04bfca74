"""The ``CapacityWindow``: times in which nodes are closed, as administrators declare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from oasis.kubernetes.names import WINDOW_KIND
from oasis.kubernetes.objects.manifests import schema_of
from oasis.kubernetes.objects.schema import checked
from oasis.model.errors import InstanceError, located_at

Object = Mapping[str, Any]

WEEK = 7 * 86400.0  # seconds
AHEAD = 53  # weeks for which a window that repeats is foreseen
ACCEPTED = "Accepted"  # the condition that says whether it is kept


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
        """Begin and end of each repetition that is not over at `now`, for at most a year ahead."""
        if not self.weekly:
            if self.end > now:
                yield self.begin, self.end
            return
        first = max(0, math.floor((now - self.end) / WEEK) + 1)
        for week in range(first, first + AHEAD):
            yield self.begin + week * WEEK, self.end + week * WEEK


def parse_window(item: Object) -> CapacityWindow:
    """Read a ``CapacityWindow``."""
    with located_at("spec"):
        spec = checked(schema_of(WINDOW_KIND)["spec"], item.get("spec") or {})
        begin, end = _time(spec["begin"], "begin"), _time(spec["end"], "end")
        if end <= begin:
            raise InstanceError("end", "expected a time after begin", spec["end"])
        if "repeat" in spec and end - begin >= WEEK:
            expected = "expected less than a week after begin, as it repeats weekly"
            raise InstanceError("end", expected, spec["end"])
        nodes, labels = tuple(spec.get("nodes", ())), spec.get("nodeSelector", {})
        if nodes and labels:
            raise InstanceError("nodeSelector", "expected none where nodes are named", labels)
        if not (nodes or labels):
            raise InstanceError("nodes", "expected names of nodes, or nodeSelector; none is given")
        name, notice = item["metadata"]["name"], spec.get("noticeSeconds")
        return CapacityWindow(name, begin, end, "repeat" in spec, nodes, labels, notice)


def _time(value: str, path: str) -> float:
    expected = "expected a time with its zone, as 2030-01-31T22:00:00Z"
    try:
        moment = datetime.fromisoformat(value)
        seconds = moment.astimezone(UTC).timestamp()  # as messages tell it
    except ValueError:
        raise InstanceError(path, expected, value) from None
    except OverflowError:
        raise InstanceError(path, "expected a year before 10000 in UTC", value) from None
    if moment.tzinfo is None:
        raise InstanceError(path, expected, value)
    return seconds
