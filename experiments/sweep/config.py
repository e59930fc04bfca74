"""The configuration of a sweep (docs/sweeps): TOML in, checked points of a grid out."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from experiments.evaluation.options import GenerateOptions, Option, check_known, options_of
from experiments.evaluation.policies import POLICIES, SEED, PolicyEntry, entry_of
from oasis.model.choices import did_you_mean
from oasis.model.document import entry, list_of
from oasis.model.errors import InputError, located_at
from oasis.model.file_kinds import read_content
from oasis.model.validation import LARGEST_COUNT, integer

Item = TypeVar("Item")
# Seeds are written out as a list: a typo must not fill the memory.
MOST_SEEDS = 1_000_000
FILE = Option("file", str, "")
DRAWN = options_of(GenerateOptions, without=(SEED,))


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """A grid of instances, policies and seeds, and what to do with each cell.

    Parameters
    ----------
    instances : list of dict
        The values of each axis by its key; the product of the axes are the instances. The key is
        ``file`` alone, or each is a field of `GenerateOptions` but for the seed, which is the
        cell's.
    policies : list of tuple
        Name and all options of each policy, as plain data. Only a seed that is not given is left
        out: it is that of the cell.
    seeds : list of int
        Draw the instances, and the fixed counts of policies that have them.
    task : mapping
        ``name`` of a task, and its options.
    """

    instances: list[dict[str, list[Any]]]
    policies: list[tuple[str, dict[str, Any]]]
    seeds: list[int]
    task: Mapping[str, Any] = field(default_factory=lambda: {"name": "run"})


def sweep_config(data: Mapping[str, Any]) -> SweepConfig:
    """Check plain data, as the TOML of docs/sweeps has it.

    A list of values is an axis of a grid. Errors name the key and what was expected there.

    Raises
    ------
    OasisError
        With one line.

    Examples
    --------
    >>> config = sweep_config({
    ...     "instances": [{"preset": "testbed", "jobs": [6, 12]}],
    ...     "policies": [{"name": "las", "line": ["strict", "fit"]}],
    ... })
    >>> [point["line"] for _, point in config.policies]
    ['strict', 'fit']
    """
    check_known(data, ("instances", "policies", "seeds", "task"))
    instances = entry(data, "instances", _tables(_axes))
    policies = entry(data, "policies", _tables(_policies))
    return SweepConfig(
        instances,
        [point for points in policies for point in points],
        entry({"seeds": [0]} | dict(data), "seeds", _seeds),
        entry({"task": {"name": "run"}} | dict(data), "task", _table),
    )


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError("", "expected a table", value)
    return value


def _tables(read: Callable[[Mapping[str, Any]], Item]) -> Callable[[Any], list[Item]]:
    """A reader of a list of tables, at least one."""
    return lambda value: list(list_of(lambda row: read(_table(row)))(_not_empty(value)))


def _not_empty(values: Sequence[Item]) -> Sequence[Item]:
    if isinstance(values, list | tuple) and not values:
        raise InputError("", "expected at least one value, got none")
    return values


def _axis(option: Option, value: Any) -> list[Any]:
    """The values of an axis: those of a list, or one alone; a row of numbers is one value."""
    if not isinstance(value, list) or (
        option.is_row and not any(isinstance(part, list) for part in value)
    ):
        return [option.check(value)]
    return list(list_of(option.check)(_not_empty(value)))


def _axes(table: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The axes of an entry of ``instances``, in the order of the options."""
    options = {"file": FILE} | DRAWN
    check_known(table, options)
    arguments = sorted(set(table) - {"file"})
    if "file" in table and arguments:
        raise InputError("", f"expected file alone, got {arguments[0]} beside it")
    axes = {}
    for name, option in options.items():
        if table.get(name) is not None:
            with located_at(name):
                values = _axis(option, table[name])
                axes[name] = [list(v) if isinstance(v, tuple) else v for v in values]
    return axes


def _policies(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and options of each policy of an entry; the last axis varies fastest."""
    names = entry(table, "name", lambda value: _axis(Option("name", str, ""), value))
    with located_at("name"):
        entries = [entry_of(name) for name in names]
    axes = {name: value for name, value in table.items() if name != "name"}
    return [(one.name, point) for one in entries for point in _policy_points(one, axes)]


def _policy_points(entry: PolicyEntry, axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    for option in axes:
        if option not in entry.options:
            takers = [other.name for other in POLICIES.values() if option in other.options]
            names = " or ".join(map(repr, takers))
            raise InputError(
                "",
                f"expected {option} with name = {names} alone, got {entry.name}"
                if takers
                else f"unknown key {option!r}; {entry.name} has {', '.join(entry.options)}"
                f"{did_you_mean(option, entry.options)}",
            )
    choices = {}
    # In the order of the policy's options, so that the order of keys in a file changes no row.
    for name in (name for name in entry.options if name in axes):
        with located_at(name):
            choices[name] = _axis(entry.options[name], axes[name])
    points = []
    for choice in product(*choices.values()):
        chosen = dict(zip(choices, choice, strict=True))
        point = entry.resolved(chosen)
        if SEED not in chosen:
            point.pop(SEED, None)
        points.append(point)
    return points


def _seeds(value: Any) -> list[int]:
    """The seeds of a list, or so many: ``5`` and ``{first = 0, count = 5}`` are 0 to 4."""
    if isinstance(value, list):
        return list(list_of(lambda seed: integer(seed, ""))(_not_empty(value)))
    table = value if isinstance(value, Mapping) else {"count": value}
    first, count = table.get("first", 0), table.get("count")
    is_known = not set(table) - {"first", "count"}
    if not (is_known and _whole(first, 0, LARGEST_COUNT) and _whole(count, 1, MOST_SEEDS)):
        expected = (
            f"expected how many seeds, 1..{MOST_SEEDS}, {{first = 0, count = 5}}, or a list of "
            "the seeds themselves, such as [0, 7]"
        )
        raise InputError("", expected, value)
    return list(range(first, first + count))


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def read_config(path: Path) -> SweepConfig:
    """Read a TOML file; errors name the key and what was expected there, or what it is instead."""
    content = read_content(path)
    try:
        return sweep_config(tomllib.loads(content.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        expected = "expected the configuration of a sweep, which is TOML"
        raise InputError("", f"{expected}: {error}") from None
