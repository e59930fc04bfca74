"""The ``UtilityClass``: what administrators let jobs claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.objects.oasis_job import UTILITY_FIELDS, SlotClock, parse_utility, parse_work
from oasis.kubernetes.objects.schema import checked, schema_of
from oasis.model.errors import InstanceError, located_at
from oasis.model.utility import Sigmoid, Utility

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UtilityClass:
    """Limits on the utility that a job of this class may claim."""

    name: str
    maximum: float  # that a job may claim
    kinds: tuple[str, ...]  # forms of utility
    namespaces: tuple[str, ...] | None  # whose jobs may be of this class; None: all
    is_default: bool  # of jobs that name no class
    overrun_factor: float  # beyond so much of its declared work a job is worth nothing
    # Utility and work, as JSON, of jobs of other kinds that say none, by name of their annotation.
    defaults: Mapping[str, str] = field(default_factory=dict)

    def serves(self, namespace: str) -> bool:
        """Return whether jobs of a namespace may use this class."""
        return self.namespaces is None or namespace in self.namespaces

    def refusal(self, kind: str, claim: float) -> str | None:
        """Return why a utility of `kind` worth `claim` is not allowed; None if it is."""
        allows = f"{names.CLASS_KIND} {self.name} allows"
        if kind not in self.kinds:
            return f"has a utility of kind {kind}, and {allows} {', '.join(self.kinds)}"
        if claim > self.maximum:
            return f"claims {claim:.6g}, and {allows} at most {self.maximum:.6g}"
        return None


def claim_of(utility: Utility) -> float:
    """Return the most that a utility says its job is worth."""
    return float(utility.priority if isinstance(utility, Sigmoid) else utility(0))


def parse_class(item: Object) -> UtilityClass:
    """Read a ``UtilityClass``; an `InstanceError` names a wrong field."""
    with located_at("spec"):
        spec = checked(schema_of(names.CLASS_KIND)["spec"], item.get("spec") or {})
        utility_class = UtilityClass(
            item["metadata"]["name"],
            spec["maximum"],
            tuple(spec.get("kinds", UTILITY_FIELDS)),
            tuple(spec["namespaces"]) if "namespaces" in spec else None,
            spec["default"],
            spec["overrunFactor"],
        )
        clock, defaults = SlotClock(1.0), {}
        if "utility" in spec:
            claim = claim_of(parse_utility(spec["utility"], clock))
            if (refusal := utility_class.refusal(spec["utility"]["kind"], claim)) is not None:
                raise InstanceError("utility", f"expected what the class allows itself: {refusal}")
            defaults[names.UTILITY] = json.dumps(spec["utility"])
        if "work" in spec:
            parse_work(spec["work"], 1, clock)
            defaults[names.WORK] = json.dumps(spec["work"])
        return replace(utility_class, defaults=defaults)


class Classes:
    """The utility classes of a cluster."""

    # Without any, every job may claim what it likes.
    def __init__(self, items: Iterable[Object]) -> None:
        self.errors: dict[str, str] = {}  # what is wrong with a class, by its name
        self._known: dict[str, UtilityClass] = {}
        for item in items:
            name = item["metadata"]["name"]
            try:
                self._known[name] = parse_class(item)
            except InstanceError as error:
                self.errors[name] = str(error)

    def __bool__(self) -> bool:
        return bool(self._known or self.errors)

    def find(self, name: str | None, namespace: str) -> UtilityClass | str:
        """Return the class `name`, None: the default of `namespace`; or why there is none."""
        if name is None:
            # Of several defaults the strictest counts, as at admission, where each is asked.
            defaults = [each for each in self._known.values() if each.is_default]
            defaults = [each for each in defaults if each.serves(namespace)]
            if defaults:
                return min(defaults, key=lambda each: (each.maximum, each.name))
            return f"names no utility class, and no class is the default of namespace {namespace}"
        if name in self.errors:
            return f"is of {names.CLASS_KIND} {name}, which makes no sense: {self.errors[name]}"
        if name not in self._known:
            return f"is of {names.CLASS_KIND} {name}, which does not exist"
        utility_class = self._known[name]
        if not utility_class.serves(namespace):
            served = ", ".join(utility_class.namespaces or ()) or "none"
            return f"is of {names.CLASS_KIND} {name}, which is for jobs in namespaces {served}"
        return utility_class

    def filled(self, item: Object) -> Object:
        """Return a job with the utility and the work of its class, where it states none."""
        meta = item["metadata"]
        notes = meta.get("annotations") or {}
        if notes.keys() >= {names.UTILITY, names.WORK}:
            return item
        utility_class = self.find(notes.get(names.UTILITY_CLASS), meta["namespace"])
        if isinstance(utility_class, str):  # whoever reads the job says so
            return item
        return {**item, "metadata": {**meta, "annotations": {**utility_class.defaults, **notes}}}
