"""The part of a command's output that is recorded: all but the version and measured times."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oasis

MEASURED = re.compile(r"((?<!slot_)(?<!step_)seconds|jobs_per_second|version|code)$")
# What a solver finds on its way, and which of several optima: it depends on the processor.
SOLVED = re.compile(r"(history|upper_bound|gap|_by|offline_schedules)$")
VERSION = re.compile(rf"(?<= ){re.escape(oasis.__version__)}(?=\.?$| \|)", re.MULTILINE)
DURATION = re.compile(r" *\b\d[\d.]*(e[+-]\d+)? (ms|s)\b")  # with the blanks that align it
LIBRARIES = re.compile(r"(?<=HiGHS )\d[\d.]*|(?<=no answer: ).*")
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
    """Standard output: JSON as an outline, tables without durations."""
    try:
        document = json.loads(output)
    except ValueError:
        return HEADING.sub(" decision", unmeasured(output))
    return "\n".join(outline(repeatable(document))) + "\n"


def outline(value: Any, begin: str = "") -> Iterator[str]:
    """A line with all that holds no mapping, and below it, a step in, the mappings inside.

    Where a line ends does not depend on the digits of numbers.
    """
    flat, deep = value, []
    if isinstance(value, dict):
        flat = {key: inner for key, inner in value.items() if not holds_mapping(inner)}
        deep = [(f"{key}: ", inner) for key, inner in sorted(value.items()) if key not in flat]
    elif holds_mapping(value):
        flat, deep = None, [("- ", inner) for inner in value]
    text = json.dumps(flat, sort_keys=True, ensure_ascii=False) if flat or not deep else ""
    yield (begin + text).rstrip()
    step = " " * (len(begin) - len(begin.lstrip()) + 1)
    for name, inner in deep:
        yield from outline(inner, step + name)


def holds_mapping(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(holds_mapping, value)))


def messages_of(output: str) -> str:
    """Standard error without what depends on how long things took."""
    return unmeasured(PROGRESS.sub("", output))


def unmeasured(text: str) -> str:
    return VERSION.sub("*", DURATION.sub(" # s", text))


def of_any_libraries(text: str) -> str:
    """A recorded form without what differs between versions of the libraries."""
    return LIBRARIES.sub("*", text)


def written(folder: Path, before: set[Path]) -> str:
    """The files that a command has written, data and pages with their content."""
    parts = []
    for path in sorted(set(folder.rglob("*")) - before):
        name = str(path.relative_to(folder))
        if path.is_file() and ".cells" not in name and "__pycache__" not in name:
            read = READ.get(path.suffix)
            parts.append(f"## {name}\n{read(path) if read else ''}")
    return "".join(parts)


def page_text(page: str) -> str:
    """What a page of HTML says: a line for each paragraph and each row of a table."""
    page = re.sub(r"(?s)<(style|svg)\b.*?</\1>|[ \n]+", " ", page)
    page = re.sub(r"</t[dh]>", " | ", re.sub(r"<(?=p|h\d|li|tr|pre|dt|figcaption)", "\n<", page))
    lines = html.unescape(re.sub(r"<[^>]*>", "", page)).splitlines()
    return "".join(f"{line.strip()}\n" for line in map(str, lines) if line.strip())


def _objects(path: Path) -> str:
    import yaml

    return "\n".join(outline(list(yaml.safe_load_all(path.read_text())))) + "\n"


def _table(path: Path) -> str:
    import pandas as pd

    frame = pd.read_parquet(path)
    kept = [
        name
        for name in frame.columns
        if not name.startswith("measured.") and name not in ("code", "version")
    ]
    return str(frame[kept].to_csv(index=False))


READ: dict[str, Callable[[Path], str]] = {
    ".json": lambda path: text_of(path.read_text()),
    ".csv": Path.read_text,
    ".parquet": _table,
    ".yaml": _objects,
    ".html": lambda path: unmeasured(page_text(path.read_text())),
}
