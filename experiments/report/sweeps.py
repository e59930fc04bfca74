"""Section of a report from the table of a sweep."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.evaluation.pairs import pairs_of_sweep, said
from experiments.evaluation.tables import Facts
from experiments.plotting.comparison import means_of, sweep_page
from experiments.report.sections import ReportTable, Section, picture, value_text

if TYPE_CHECKING:
    import pyarrow as pa


Row = Mapping[str, Any]


def grid_of(rows: Sequence[Row]) -> dict[str, Any]:
    """The grid whose cells are the rows of a table."""
    return {
        "seeds": _seeds(list(dict.fromkeys(int(row["seed"]) for row in rows))),
        "task": _task(rows),
        "instances": _points(rows, "instance."),
        "policies": _points(rows, "policy."),
    }


def _task(rows: Sequence[Row]) -> dict[str, Any]:
    """The task, which is the same in all rows, with what is infinite and None in the table."""
    row, task = rows[0], _points(rows, "task.")[0]
    # The table holds None both for no limit and for a
    # limit of work, which stands in its own column.
    if "task.time_limit" in row and task.keys().isdisjoint({"time_limit", "work_limit"}):
        task["time_limit"] = math.inf
    if "task.gap" in row and "gap" not in task:
        task["gap"] = math.inf
    return task


def _points(rows: Sequence[Row], prefix: str) -> list[dict[str, Any]]:
    """Values under names that begin with `prefix`, without repeats, in order of appearance."""
    points: dict[str, dict[str, Any]] = {}
    for row in rows:
        point = {
            name.removeprefix(prefix): value
            for name, value in row.items()
            if name.startswith(prefix) and value is not None
        }
        points.setdefault(json.dumps(point, sort_keys=True), point)
    return list(points.values())


def _seeds(seeds: list[int]) -> Any:
    """Seeds as the configuration has them: a first and a count where they are in turn."""
    if seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return {"first": seeds[0], "count": len(seeds)}
    return seeds


def toml_of(grid: Mapping[str, Any]) -> str:
    """A grid as TOML, as `experiments.sweep.cells.read_config` reads it."""
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


CHECKED = "the schedules of each run satisfied (2)-(13) before its cell was recorded"


def sweep_section(name: str, cells: pa.Table) -> Section:
    """Build the section of a sweep: grid, means with intervals, pictures, provenance."""
    from experiments.sweep import FAILED, varying  # noqa: PLC0415
    from experiments.sweep.summary import TITLE, columns_of, notes_of, rows_of  # noqa: PLC0415

    rows, frame = cells.to_pylist(), cells.to_pandas()
    figures, means = means_of(frame)
    failed = [row for row in rows if row["status"] == FAILED]
    tables = [ReportTable(TITLE, columns_of(figures), rows_of(means, figures))]
    tables += _failures(failed)
    return Section(
        name=name,
        title=_title(rows),
        was_run=_was_run(rows, varying(frame)),
        facts=_facts(rows, failed),
        tables=tuple(tables),
        proofs=[("verified", CHECKED)],
        again=_again(name, rows),
        picture=picture(sweep_page(frame)) if figures else "",
        answer=tuple(said(pairs_of_sweep(frame))),
        notes=tuple(notes_of(means, figures)),
    )


def _title(rows: Sequence[Mapping[str, Any]]) -> str:
    grid = grid_of(rows)
    counts = {
        ("cell", "cells"): len(rows),
        ("policy", "policies"): len(grid["policies"]),
        ("instance", "instances"): len(grid["instances"]),
        ("seed", "seeds"): len({row["seed"] for row in rows}),
    }
    return f"Sweep: {', '.join(f'{n} {name[n != 1]}' for name, n in counts.items())}"


def _facts(rows: Sequence[Mapping[str, Any]], failed: Sequence[Any]) -> Facts:
    facts = [("cells", str(len(rows))), ("failed", str(len(failed)))]
    proven = [row["proven"] for row in rows if row.get("proven") is not None]
    if proven:
        facts.append(("proven", f"{sum(proven)} of {len(proven)} optima"))
    return facts


def _failures(failed: Sequence[Mapping[str, Any]]) -> list[ReportTable]:
    """A table of the errors, and how often each occurred."""
    errors = Counter(str(row["error"]) for row in failed)
    rows: list[tuple[str, ...]] = [(str(count), error) for error, count in errors.items()]
    columns = ("cells", True), ("error", False)
    return [ReportTable("Failed cells", columns, rows)] if rows else []


def _was_run(rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> Facts:
    """Facts about the sweep: its axes, what all cells share, and the version."""
    facts: Facts = []
    for axis in [*axes, "seed"]:
        values = list(dict.fromkeys(value_text(row[axis]) for row in rows if row[axis] is not None))
        facts.append((axis.replace(".", " "), ", ".join(values)))
    for name, value in rows[0].items():
        is_parameter = name.startswith(("instance.", "task."))
        if is_parameter and name not in axes and value is not None:
            facts.append((name.replace(".", " "), value_text(value)))
    versions = dict.fromkeys(str(row["version"]) for row in rows)
    return [*facts, ("version", ", ".join(versions))]


def _again(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The grid as a configuration, and the command that runs it."""
    config, table_file = (shlex.quote(f"{Path(name).stem}{end}") for end in (".toml", ".parquet"))
    text = toml_of(grid_of(rows)).splitlines()
    return (
        # In quotes, so that the shell leaves a $ in the grid alone.
        f"cat > {config} <<'END OF THE GRID'",
        *text,
        "END OF THE GRID",
        f"oasis sweep {config} -o {table_file}",
    )
