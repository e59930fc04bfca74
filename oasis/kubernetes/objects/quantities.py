"""Amounts as Kubernetes writes them, exactly, and as the model counts them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from oasis.kubernetes.names import BANDWIDTH
from oasis.model.errors import InstanceError
from oasis.model.validation import LARGEST_AMOUNT, text

Amounts = dict[str, Fraction]
K = TypeVar("K")  # a resource, or a resource of a flavor
NOTHING = Fraction(0)

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")  # each is 1000 of the one before
_SUFFIX = {unit: Fraction(1000) ** power for power, unit in enumerate(_DECIMAL, start=-3)}
_SUFFIX |= {f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
# ASCII digits only, as Kubernetes reads them, and three
# digits of exponent: 10**999999999 would fill the memory.
QUANTITY = r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)"
_FORM = re.compile(QUANTITY, re.ASCII)


def quantity(value: Any, path: str) -> Fraction:
    """Return an amount such as ``"500m"``, ``"16Gi"`` or 4, exactly; errors name `path`."""
    amount = _amount(str(value)) if not isinstance(value, bool) else None
    if amount is None:
        expected = "expected an amount such as 2, 500m or 16Gi"
        raise InstanceError(path, expected, value)
    if amount < 0:
        raise InstanceError(path, "expected an amount >= 0", value)
    if amount > LARGEST_AMOUNT:
        raise InstanceError(path, f"expected an amount <= {LARGEST_AMOUNT:g}", value)
    return amount


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction | None:
    """Parse an amount; None if the text is none. Cached: nodes and pods repeat a few texts."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SUFFIX[suffix or ""]
    amount = Fraction(number) * scale
    # As Kubernetes reads it: what is finer than a billionth is rounded up.
    return Fraction(-(-amount.numerator * 10**9 // amount.denominator), 10**9)


@dataclass(frozen=True, slots=True)
class ResourceMap:
    """Names and units of cluster resources in the model."""

    # name of the model, name of the cluster, how much of the cluster's unit is one of the model's
    entries: tuple[tuple[str, str, Fraction], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the resources in the model."""
        return tuple(name for name, _, _ in self.entries)

    def amounts(self, requests: Mapping[str, Fraction]) -> dict[str, float]:
        """Convert `requests` to units of the model; unknown resources are left out."""
        return {
            name: float(requests.get(resource, NOTHING) / unit)
            for name, resource, unit in self.entries
        }

    @classmethod
    def of(cls, gpu: str) -> ResourceMap:
        """Return the map for a cluster in which GPUs are the resource `gpu`."""
        # Gigabytes of the file format are decimal; a Gi is 7 % more.
        giga = Fraction(10**9)
        entries = (
            ("cpu", "cpu", Fraction(1)),
            ("memory_gb", "memory", giga),
            ("storage_gb", "ephemeral-storage", giga),
            ("bandwidth_gbps", BANDWIDTH, giga),
        )
        if text(gpu, "gpu") in [name for _, name, _ in entries]:
            raise InstanceError("gpu", "expected another resource than the others", gpu)
        return cls((("gpu", gpu, Fraction(1)), *entries))


DEFAULT_RESOURCES = ResourceMap.of("nvidia.com/gpu")


def requests_of(pod_spec: Mapping[str, Any]) -> Amounts:
    """Return the requests of a pod, as kube-scheduler counts them."""
    names = ("initContainers", "containers", "resources", "overhead")
    return _requests(json.dumps({name: pod_spec.get(name) for name in names}, default=str))


@lru_cache(maxsize=4096)
def _requests(text: str) -> Amounts:
    """Return the requests of a pod; `text` is JSON of its fields that say them."""
    # Cached by what is read: thousands of pods ask for the same, again and again. A limit without a
    # request counts as the request, as the API server sets it.
    pod_spec, sidecars, peak = json.loads(text), Amounts(), Amounts()
    for container in pod_spec["initContainers"] or ():
        requests = _asked(container)
        # A sidecar stays while the init containers after it run, so they ask for room beside it.
        if container.get("restartPolicy") == "Always":
            sidecars = summed((sidecars, requests))
        else:
            peak = _most(peak, summed((sidecars, requests)))
    containers = map(_asked, pod_spec["containers"] or ())
    # What the pod as a whole asks for goes before the sum of its containers.
    total = _most(peak, summed((sidecars, *containers))) | _asked(pod_spec)
    return summed((total, _amounts(pod_spec["overhead"])))


def _asked(owner: Mapping[str, Any]) -> Amounts:
    """Return the requests of a container or pod; a limit counts where it has no request."""
    resources = owner.get("resources") or {}
    return _amounts(resources.get("limits")) | _amounts(resources.get("requests"))


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity(value, name) for name, value in (quantities or {}).items()}


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, NOTHING), other.get(name, NOTHING)) for name in one | other}


def summed(parts: Iterable[Mapping[K, Fraction]]) -> dict[K, Fraction]:
    """Return the sum of several amounts, resource by resource."""
    total: dict[K, Fraction] = {}
    for part in parts:
        take(total, part, -1)
    return total


def take(room: dict[K, Fraction], asked: Mapping[K, Fraction], sign: int = 1) -> None:
    """Subtract the amounts `asked` from `room` in place; with a sign of -1 add them."""
    for name, amount in asked.items():
        room[name] = room.get(name, NOTHING) - sign * amount
