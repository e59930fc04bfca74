"""The configuration of a sweep (docs/sweeps): TOML in, a validated model out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from experiments.evaluation.policies import OASIS, POLICIES
from experiments.sweep.model import Table, explain
from oasis.model.errors import OasisError
from oasis.model.validation import LARGEST_COUNT
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.search import Granularity

Item = TypeVar("Item")
MOST_SEEDS = 1_000_000


def _values(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _rows(value: Any) -> Any:
    """A row of numbers is one value; a list of rows is an axis."""
    if isinstance(value, list) and not any(isinstance(entry, list) for entry in value):
        return [value]
    return value


def _seeds(value: Any) -> Any:
    """``{first = 0, count = 5}`` is 0 to 4."""
    if not isinstance(value, dict):
        return _values(value)
    first, count = value.get("first", 0), value.get("count")
    known = not set(value) - {"first", "count"}
    if not (known and _whole(first, 0, LARGEST_COUNT) and _whole(count, 1, MOST_SEEDS)):
        expected = f"expected integers >= 0, or {{first = 0, count = 1..{MOST_SEEDS}}}"
        raise ValueError(f"{expected}, got {value}")
    return list(range(first, first + count))


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"expected one of {', '.join(POLICIES)}, got {name!r}")
    return name


Axis = Annotated[list[Item], BeforeValidator(_values), Field(min_length=1)]
RowAxis = Annotated[list[list[float]], BeforeValidator(_rows), Field(min_length=1)]


class InstanceGrid(Table):
    """One entry of ``instances``: files, or settings to draw from; a list of values is an axis.

    Parameters
    ----------
    file : str or list of str
        Instance files, relative to the configuration; excludes everything else.
    preset, jobs, worker_servers, ps_servers, horizon, slot_seconds, arrivals, counts, machines
        As for `oasis.generate`.
    priority, mix : list of float, or list of those
        As for `oasis.generate`.
    """

    file: Axis[str] | None = None
    preset: Axis[str] | None = None
    jobs: Axis[int] | None = None
    worker_servers: Axis[int] | None = None
    ps_servers: Axis[int] | None = None
    horizon: Axis[int] | None = None
    slot_seconds: Axis[float] | None = None
    arrivals: Axis[str] | None = None
    counts: Axis[str] | None = None
    machines: Axis[str] | None = None
    priority: RowAxis | None = None
    mix: RowAxis | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        others = sorted(self.model_fields_set - {"file"})
        if self.file is not None and others:
            raise ValueError(f"expected file alone, got {others[0]} beside it")
        return self


class PolicyGrid(Table):
    """One entry of ``policies``; a list of values is an axis.

    Parameters
    ----------
    name : str or list of str
        ``oasis`` or a name of `baselines.POLICIES`.
    scale, min_utility_fraction, granularity, raw_units
        As for ``oasis run``; for ``oasis`` only.
    """

    name: Axis[Annotated[str, AfterValidator(_policy)]]
    scale: Axis[Annotated[float, Field(gt=0)]] = Field([1.0])
    min_utility_fraction: Axis[Annotated[float, Field(ge=0, lt=1)]] = Field(
        [DEFAULT_MIN_UTILITY_FRACTION]
    )
    granularity: Axis[Granularity] = Field(["worker-slot"])
    raw_units: Axis[bool] = Field([False])

    @model_validator(mode="after")
    def _options_have_a_reader(self) -> Self:
        options = sorted(self.model_fields_set - {"name"})
        others = [name for name in self.name if name != OASIS]
        if options and others:
            raise ValueError(f"expected {options[0]} with name = {OASIS!r} alone, got {others[0]}")
        return self


class SweepConfig(Table):
    """A grid of instances, policies and seeds, and what to do with each cell.

    Parameters
    ----------
    instances : list of InstanceGrid
        Each entry is the product of its axes.
    policies : list of PolicyGrid
        The same.
    seeds : list of int
        Draw the instances, and the fixed counts of policies that have them.
    task : dict
        ``name`` of a task, and its options.
    """

    instances: Annotated[list[InstanceGrid], Field(min_length=1)]
    policies: Annotated[list[PolicyGrid], Field(min_length=1)]
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=LARGEST_COUNT)]],
        BeforeValidator(_seeds),
        Field(min_length=1),
    ] = Field([0])
    task: dict[str, Any] = Field({"name": "run"})


def sweep_config(data: dict[str, Any]) -> SweepConfig:
    """Check plain data; errors name the key and what was expected there.

    Raises
    ------
    OasisError
        With one line.
    """
    try:
        return SweepConfig.model_validate(data)
    except ValidationError as error:
        raise OasisError(explain(error, data)) from None


def read_config(path: Path) -> SweepConfig:
    """Read a TOML file; errors name the key and what was expected there."""
    try:
        return sweep_config(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OasisError(f"expected TOML: {error}") from None
