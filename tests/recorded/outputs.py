"""The part of a command's output that is recorded: all but the version and measured times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MEASURED = re.compile(r"(seconds|jobs_per_second|version|code)$")
DURATION = re.compile(r" *\b\d[\d.]*(e[+-]\d+)? (ms|s)\b")  # with the blanks that align it
PROGRESS = re.compile(r"^ +\d+\.\d s  .*\n", re.MULTILINE)


def repeatable(value: Any) -> Any:
    """Plain data with a star for everything that is measured."""
    if isinstance(value, dict):
        return {
            key: "*" if MEASURED.search(key) else repeatable(inner)
            for key, inner in value.items()
            if not key.startswith("measured.")
        }
    return [repeatable(inner) for inner in value] if isinstance(value, list) else value


def text_of(output: str) -> str:
    """Standard output: JSON one entry a line, tables without durations."""
    try:
        document = json.loads(output)
    except ValueError:
        return DURATION.sub(" # s", output)
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
