"""The ``CapacityWindow``: maintenance and reservations, as administrators declare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from oasis.kubernetes.objects.quantities import Amounts, quantity
from oasis.model.errors import InstanceError, located_at
from oasis.model.validation import check_keys, check_list, number, text

Object = Mapping[str, Any]

WEEK = 7 * 86400.0  # seconds
REPEATS = ("weekly",)
AHEAD = 53  # weeks for which a window that repeats is foreseen
ACCEPTED = "Accepted"  # the condition that says whether it is kept


@dataclass(frozen=True, slots=True)
class Reserve:
    """Capacity that a reservation keeps, and the namespaces that may use it."""

    resources: Amounts | None = None  # None: whole nodes
    namespaces: tuple[str, ...] | None = None  # whose it is; None: of pods that are not ours


@dataclass(frozen=True, slots=True)
class CapacityWindow:
    """A time in which some nodes, or a part of them, take no job that is planned here.

    Examples
    --------
    >>> made = CapacityWindow("firmware", begin=0.0, end=3600.0, nodes=("n1",))
    >>> made.what, made.concerns("n1", {}), made.concerns("n2", {})
    ('maintenance window firmware', True, False)
    """

    name: str
    begin: float  # seconds since 1970
    end: float
    weekly: bool = False
    nodes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # of the nodes, if none is named
    reserve: Reserve | None = None  # None: maintenance
    notice_seconds: float | None = None  # in which pods end before it begins; None: a slot

    @property
    def what(self) -> str:
        """Name of the window in messages."""
        return f"{'maintenance window' if self.reserve is None else 'reservation'} {self.name}"

    @property
    def reason(self) -> str:
        """Reason that conditions give for it."""
        return "Maintenance" if self.reserve is None else "Reserved"

    @property
    def is_partial(self) -> bool:
        """Whether it keeps amounts of resources, and no whole nodes."""
        return self.reserve is not None and self.reserve.resources is not None

    def concerns(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the window applies to the node with this name and these labels."""
        if self.nodes:
            return name in self.nodes
        return all(labels.get(key) == value for key, value in self.labels.items())

    def times(self, now: float) -> Iterator[tuple[float, float]]:
        """Begin and end of each repetition that is not over at `now`, for at most a year ahead.

        Examples
        --------
        >>> made = CapacityWindow("night", begin=0.0, end=3600.0, weekly=True, nodes=("n1",))
        >>> next(made.times(now=4000.0))
        (604800.0, 608400.0)
        """
        if not self.weekly:
            if self.end > now:
                yield self.begin, self.end
            return
        first = max(0, math.floor((now - self.end) / WEEK) + 1)
        for week in range(first, first + AHEAD):
            yield self.begin + week * WEEK, self.end + week * WEEK

    def meets(self, other: CapacityWindow) -> bool:
        """Return whether both hold at some time, in any of their repetitions.

        Examples
        --------
        >>> night = CapacityWindow("night", begin=0.0, end=9.0, weekly=True, nodes=("n1",))
        >>> once = CapacityWindow("once", begin=WEEK + 8.0, end=WEEK + 10.0, nodes=("n1",))
        >>> night.meets(once), once.meets(night), night.meets(night)
        (True, True, True)
        """
        one, two = sorted((self, other), key=lambda each: each.begin)
        if not one.weekly:
            return two.begin < one.end
        begin, _ = next(one.times(two.begin))
        return begin < two.end


def parse_window(found: Object) -> CapacityWindow:
    """Read a ``CapacityWindow``.

    Raises
    ------
    InstanceError
        Naming the field, and what was expected there.

    Examples
    --------
    >>> spec = {"begin": "2030-01-01T20:00:00Z", "end": "2030-01-01T22:00:00Z", "nodes": ["n1"]}
    >>> parse_window({"metadata": {"name": "firmware"}, "spec": spec}).nodes
    ('n1',)
    """
    with located_at("spec"):
        spec = found.get("spec") or {}
        known = ("repeat", "nodes", "nodeSelector", "reserve", "noticeSeconds")
        check_keys(spec, ("begin", "end"), known)
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
        reserve = _reserve(spec.get("reserve"))
        if not (nodes or labels or (reserve and reserve.resources)):
            expected = "expected names of nodes, or nodeSelector, or resources of a reserve"
            raise InstanceError("nodes", f"{expected}; none is given")
        notice = spec.get("noticeSeconds")
        return CapacityWindow(
            found["metadata"]["name"],
            begin,
            end,
            repeat is not None,
            nodes,
            dict(labels),
            reserve,
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


def _reserve(data: Any) -> Reserve | None:
    if data is None:
        return None
    with located_at("reserve"):
        check_keys(data, (), ("resources", "namespaces"))
        resources, namespaces = data.get("resources"), data.get("namespaces")
        if namespaces is not None:
            found = check_list(namespaces, "namespaces")
            namespaces = tuple(text(name, "namespaces") for name in found)
        if resources is None:
            return Reserve(None, namespaces)
        if not isinstance(resources, Mapping) or not resources:
            raise InstanceError("resources", "expected amounts of resources", resources)
        amounts: dict[str, Fraction] = {
            name: quantity(value, f"resources.{name}") for name, value in resources.items()
        }
        if not any(amounts.values()):
            raise InstanceError("resources", "expected an amount > 0", resources)
        return Reserve(amounts, namespaces)
