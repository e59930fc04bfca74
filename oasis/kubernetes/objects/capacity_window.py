"""The ``CapacityWindow``: times in which nodes are closed, as administrators declare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from oasis.model.errors import InstanceError, located_at
from oasis.model.validation import check_keys, check_list, number, text

Object = Mapping[str, Any]

WEEK = 7 * 86400.0  # seconds
REPEATS = ("weekly",)
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

    @property
    def what(self) -> str:
        """Name of the window in messages."""
        return f"maintenance window {self.name}"

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


def parse_window(found: Object) -> CapacityWindow:
    """Read a ``CapacityWindow``."""
    with located_at("spec"):
        spec = found.get("spec") or {}
        check_keys(spec, ("begin", "end"), ("repeat", "nodes", "nodeSelector", "noticeSeconds"))
        begin, end = _time(spec["begin"], "begin"), _time(spec["end"], "end")
        if end <= begin:
            raise InstanceError("end", "expected a time after begin", spec["end"])
        repeat = spec.get("repeat")
        if repeat is not None and repeat not in REPEATS:
            raise InstanceError("repeat", f"expected {', '.join(REPEATS)} or none", repeat)
        if repeat is not None and end - begin >= WEEK:
            expected = "expected less than a week after begin, as it repeats weekly"
            raise InstanceError("end", expected, spec["end"])
        nodes = tuple(text(name, "nodes") for name in check_list(spec.get("nodes", []), "nodes"))
        labels = spec.get("nodeSelector") or {}
        if not isinstance(labels, Mapping):
            raise InstanceError("nodeSelector", "expected labels with their values", labels)
        for key, value in labels.items():
            if not isinstance(value, str):  # which may be empty
                raise InstanceError(f"nodeSelector.{key}", "expected a string", value)
        if nodes and labels:
            raise InstanceError("nodeSelector", "expected none where nodes are named", labels)
        if not (nodes or labels):
            raise InstanceError("nodes", "expected names of nodes, or nodeSelector; none is given")
        notice = spec.get("noticeSeconds")
        return CapacityWindow(
            found["metadata"]["name"],
            begin,
            end,
            repeat is not None,
            nodes,
            dict(labels),
            None if notice is None else number(notice, "noticeSeconds"),
        )


def _time(value: Any, path: str) -> float:
    expected = "expected a time with its zone, as 2030-01-31T22:00:00Z"
    try:
        made = datetime.fromisoformat(text(value, path))
        seconds = made.astimezone(UTC).timestamp()  # as messages tell it
    except ValueError:
        raise InstanceError(path, expected, value) from None
    except OverflowError:
        raise InstanceError(path, "expected a year before 10000 in UTC", value) from None
    if made.tzinfo is None:
        raise InstanceError(path, expected, value)
    return seconds
