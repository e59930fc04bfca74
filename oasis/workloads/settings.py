"""The arguments of `generate`, checked and completed from the preset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from oasis.model.choices import choice
from oasis.model.rounding import FloatArray
from oasis.model.validation import describe, integer, number
from oasis.workloads.arrivals import ARRIVALS, fingerprint, read_counts
from oasis.workloads.machines import MACHINES
from oasis.workloads.presets import PRESETS

SIZES = ("jobs", "worker_servers", "ps_servers", "horizon")


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of `generate`, all filled in; the ranges come from the preset."""

    preset: str
    seed: int
    jobs: int
    worker_servers: int
    ps_servers: int
    horizon: int
    slot_seconds: float
    arrivals: str
    counts: FloatArray | None
    machines: str
    priority: tuple[float, float]
    mix: tuple[float, float, float]

    def metadata(self) -> dict[str, Any]:
        """Plain data that says how to draw the instance again."""
        parameters = asdict(self)
        counts = None if self.counts is None else fingerprint(self.counts)
        parameters |= {"counts": counts, "priority": [*self.priority], "mix": [*self.mix]}
        names = {name: parameters.pop(name) for name in ("preset", "seed")}
        return names | {"parameters": parameters}


def resolve(preset: Any, **given: Any) -> Settings:
    """Check the arguments of `generate` and take those that are None from the preset.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    preset = _one_of(preset, "preset", PRESETS)
    defaults = PRESETS[preset]
    for name in (*SIZES, "slot_seconds"):
        if given[name] is None:
            given[name] = getattr(defaults, name)
    for name in SIZES:
        given[name] = integer(given[name], name, minimum=1)
    given["slot_seconds"] = number(given["slot_seconds"], "slot_seconds", above=True)
    given["seed"] = integer(given["seed"], "seed")
    has_counts = given["counts"] is not None
    if given["arrivals"] is None:
        given["arrivals"] = "google" if has_counts else "uniform"
    given["arrivals"] = _one_of(given["arrivals"], "arrivals", ARRIVALS)
    if (given["arrivals"] == "google") != has_counts:
        wanted = "no counts" if has_counts else "hourly counts (a path or an array)"
        raise ValueError(f"counts: expected {wanted} with arrivals={given['arrivals']!r}")
    given["counts"] = read_counts(given["counts"]) if has_counts else None
    known = ("gpu_workers",) if preset == "testbed" else MACHINES
    given["machines"] = _one_of(given["machines"], "machines", known)
    given["priority"] = _numbers(given["priority"], "priority", 2)
    if given["priority"][0] > given["priority"][1]:
        raise ValueError(f"priority: expected low <= high, got {describe(given['priority'])}")
    given["mix"] = _numbers(given["mix"], "mix", 3)
    if abs(sum(given["mix"]) - 1) > 1e-9:
        raise ValueError(f"mix: expected shares with sum 1, got {describe(given['mix'])}")
    return Settings(preset=preset, **given)


def _one_of(value: Any, name: str, known: Collection[str]) -> str:
    try:
        return choice(value, known)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _numbers(values: Any, name: str, size: int) -> tuple[float, ...]:
    if not isinstance(values, (tuple, list)) or len(values) != size:
        raise ValueError(f"{name}: expected {size} numbers, got {describe(values)}")
    return tuple(number(value, f"{name}[{k}]") for k, value in enumerate(values))
