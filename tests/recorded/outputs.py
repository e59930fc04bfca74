"""The part of a command's output that is recorded: all but the version and measured times."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MEASURED = re.compile(r"(seconds|jobs_per_second|version|code)$")
# What a solver finds on its way, and which of several optima: it depends on the processor.
SOLVED = re.compile(r"(history|upper_bound|gap|_by|offline_schedules)$")
DURATION = re.compile(r" *\b\d[\d.]*(e[+-]\d+)? (ms|s)\b")  # with the blanks that align it
HEADING = re.compile(r" +decision$", re.MULTILINE)  # of a column of durations
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
# Another processor adds and raises to powers with another last bit, or two.
SAME = 1e-12
PROGRESS = re.compile(r"^ +\d+\.\d s  .*\n", re.MULTILINE)


def is_same(kept: str, found: str) -> bool:
    """Whether two texts are the same, their numbers to twelve significant digits."""
    if kept == found:
        return True
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (kept, found)]
    return NUMBER.sub("#", kept) == NUMBER.sub("#", found) and all(
        math.isclose(a, b, rel_tol=SAME, abs_tol=SAME) for a, b in zip(*numbers, strict=True)
    )


def leaves(value: Any) -> Iterator[Any]:
    """The values in plain data, in order, and the keys of mappings."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield key
            yield from leaves(value[key])
    elif isinstance(value, list | tuple):
        yield len(value)
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def repeatable(value: Any) -> Any:
    """Plain data with a star for everything that is measured."""
    if isinstance(value, dict):
        solved = {"schedules"} if value.get("kind") == "solve" else set()
        return {
            key: "*"
            if MEASURED.search(key) or SOLVED.search(key) or key in solved
            else repeatable(inner)
            for key, inner in value.items()
            if not key.startswith("measured.")
        }
    return [repeatable(inner) for inner in value] if isinstance(value, list) else value


def text_of(output: str) -> str:
    """Standard output: JSON one entry a line, tables without durations."""
    try:
        document = json.loads(output)
    except ValueError:
        return HEADING.sub(" decision", DURATION.sub(" # s", output))
    return json.dumps(repeatable(document), indent=0, sort_keys=True) + "\n"


def messages_of(output: str) -> str:
    """Standard error without what depends on how long things took."""
    return DURATION.sub(" # s", PROGRESS.sub("", output))


def written(folder: Path, before: set[Path]) -> str:
    """The data files that a command has written, each with its content."""
    parts = []
    for path in sorted(set(folder.rglob("*")) - before):
        name = path.relative_to(folder)
        if path.suffix == ".json" and ".cells" not in str(name):
            parts.append(f"## {name}\n{text_of(path.read_text())}")
        elif path.suffix == ".csv":
            parts.append(f"## {name}\n{path.read_text()}")
        elif path.suffix == ".parquet":
            parts.append(f"## {name}\n{_table(path)}")
    return "".join(parts)


def _table(path: Path) -> str:
    import pandas as pd

    frame = pd.read_parquet(path)
    kept = [
        name
        for name in frame.columns
        if not name.startswith("measured.") and name not in ("code", "version")
    ]
    return str(frame[kept].to_csv(index=False))
