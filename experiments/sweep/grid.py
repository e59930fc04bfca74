"""From the table of a sweep back to the grid that makes it: the configuration as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def grid_of(rows: Sequence[Row]) -> dict[str, Any]:
    """The grid whose cells are the rows of a table.

    Parameters
    ----------
    rows : sequence of mapping
        Of the Parquet file, one a cell, in its order.

    Returns
    -------
    dict
        Plain data for `experiments.sweep.config.sweep_config`: one entry an instance and one a
        policy, with all their options. What is None in the table is left out, except for what is
        None there because it is infinite: a task without a limit has ``time_limit = inf``, and one
        that any gap ends has ``gap = inf``.

    Examples
    --------
    >>> row = {"instance.preset": "testbed", "policy.name": "drf", "task.name": "run"}
    >>> grid_of([row | {"seed": seed} for seed in (3, 4)])["seeds"]
    {'first': 3, 'count': 2}
    """
    return {
        "seeds": _seeds(list(dict.fromkeys(int(row["seed"]) for row in rows))),
        "task": _task(rows),
        "instances": _points(rows, "instance."),
        "policies": _points(rows, "policy."),
    }


def _task(rows: Sequence[Row]) -> dict[str, Any]:
    """The task, which is the same in all rows, with what is infinite and None in the table."""
    row, task = rows[0], _points(rows, "task.")[0]
    if "task.time_limit" in row and task.keys().isdisjoint({"time_limit", "work_limit"}):
        task["time_limit"] = math.inf
    if "task.gap" in row and "gap" not in task:
        task["gap"] = math.inf
    return task


def _points(rows: Sequence[Row], prefix: str) -> list[dict[str, Any]]:
    """What stands under names that begin with `prefix`, each once, in order of appearance."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        point = {
            name.removeprefix(prefix): value
            for name, value in row.items()
            if name.startswith(prefix) and value is not None
        }
        found.setdefault(json.dumps(point, sort_keys=True), point)
    return list(found.values())


def _seeds(seeds: list[int]) -> Any:
    """Seeds as the configuration has them: a first and a count where they are in turn."""
    if seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return {"first": seeds[0], "count": len(seeds)}
    return seeds


def toml_of(grid: Mapping[str, Any]) -> str:
    """A grid as TOML, as `experiments.sweep.config.read_config` reads it.

    Examples
    --------
    >>> print(toml_of({"seeds": [1, 5], "policies": [{"name": "drf"}]}), end="")
    seeds = [1, 5]
    <BLANKLINE>
    [[policies]]
    name = "drf"
    """
    lines = [f"{name} = {_value(grid[name])}" for name in ("seeds", "task") if name in grid]
    for name in ("instances", "policies"):
        for point in grid.get(name, ()):
            lines += ["", f"[[{name}]]"]
            lines += [f"{key} = {_value(value)}" for key, value in point.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_value(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf and nan are written so in TOML too
    return json.dumps(value, ensure_ascii=False)
