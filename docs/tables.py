"""Tables of pages that are made from files and code: the library, benchmarks, policies, schemas."""

import csv
import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from IPython.display import Markdown

from experiments.evaluation.policies import POLICIES, entry_of
from experiments.library import Library, LibraryEntry
from oasis.simulator.elastic import elastic_schema

PAGES = Path(__file__).parent
LIBRARY = ("instance", "value", "bound", "gap", "value by", "bound by")
ADAPTER = {
    "writes_per_pod": "most writes for each pod that changed in a slot",
    "lists_of_pods": "lists of all pods",
    "patch_seconds": "seconds from the first patch of the boundary to the last",
    "patch_controller_seconds": "of these, on a processor: the controller",
    "patch_plane_seconds": "and the control plane",
    "patch_share": "share of all processors that both had",
    "busy_seconds": "seconds of processor time of the controller in all",
    "policy_seconds": "of these, the policy",
    "memory_mb": "most memory of the controller in MB",
}
THEOREM_3 = {"T": "1", "H + K": "1", "N": "2", "E, the length of the job": "2"}
DOUBLED = {
    "T": "the slots",
    "H + K": "the servers, all different",
    "N": "the most workers of the job",
    "E, the length of the job": "the length of the job",
}
PROVEN = 1e-4  # percent between schedules and bound
FAMILIES = ("family", "instances", "proven", "median gap", "largest gap")


def library() -> Markdown:
    """All rows of the library."""
    return markdown(LIBRARY, map(_row, Library().records().values()))


def families() -> Markdown:
    """How many instances of each family are proven, and which gaps the others have."""
    groups: dict[str, list[LibraryEntry]] = {}
    for record in Library().records().values():
        groups.setdefault(record.family, []).append(record)
    rows = []
    for family, records in groups.items():
        proven = sum(record.proof == "optimal" for record in records)
        gaps = [record.gap for record in records]
        shown = (_percent(statistics.median(gaps)), _percent(max(gaps)))
        rows.append((family, str(len(records)), str(proven), *shown))
    return markdown(FAMILIES, rows)


def measured(name: str) -> list[dict[str, str]]:
    """The rows of a table that a program of `tests/benchmarks` has written."""
    with (PAGES / "benchmarks" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        heading, *rows = csv.reader(stream)
    if len(set(heading)) < len(heading):
        raise ValueError(f"{name}.csv: two columns have one name: {', '.join(heading)}")
    return [dict(zip(heading, row, strict=True)) for row in rows]


def benchmark(name: str, *columns: str) -> Markdown:
    """Such a table: these columns, all where none is named."""
    rows = measured(name)
    chosen = columns or tuple(rows[0])
    return markdown(chosen, ([row[column] for column in chosen] for row in rows))


def exponents() -> dict[str, dict[str, float]]:
    """How medians of decisions grow, by what is varied and who decides: a fit in logarithms."""
    groups: dict[str, list[dict[str, str]]] = {}
    for row in measured("search/growth"):
        groups.setdefault(row["varied"], []).append(row)
    found = {}
    for varied, rows in groups.items():
        values = np.log([float(row["value"]) for row in rows])
        found[varied] = {
            name: float(np.polyfit(values, np.log([median(row[name]) for row in rows]), 1)[0])
            for name in ("quote", "textbook", "tuned textbook")
        }
    return found


def growth() -> Markdown:
    """The exponents beside what Theorem 3 allows."""
    ends: dict[str, list[str]] = {}
    for row in measured("search/growth"):
        ends.setdefault(row["varied"], []).append(row["value"])
    rows = []
    for varied, by_name in exponents().items():
        first, *_, last = ends[varied]
        fitted = (f"{exponent:.2f}" for exponent in by_name.values())
        rows.append((f"{varied} ({first} to {last})", THEOREM_3[varied], *fitted))
    return markdown(("in", "Theorem 3", "OASiS", "textbook", "tuned textbook"), rows)


def doubling() -> Markdown:
    """What the time of a decision of OASiS is multiplied by where something is twice as much."""
    rows = (
        (DOUBLED[varied], f"{2 ** found['quote']:.2f}") for varied, found in exponents().items()
    )
    return markdown(("twice", "multiplies the time by"), rows)


def sizes(what: str, column: str = "seconds") -> Markdown:
    """What `tests/benchmarks/sizes.py` measured: a row per instance, a column per solver."""
    cells: dict[str, dict[str, str]] = {}
    names: list[str] = []
    for row in measured("sizes"):
        if row["what"] == what:
            servers, jobs = row["servers"], f"{int(row['jobs']):,} jobs"
            head = f"{jobs}, {servers} + {servers} servers, {row['slots']} slots"
            left = f", {_open(float(row['gap']))}" if row["gap"] else ""
            cells.setdefault(jobs if what == "replay" else head, {})[row["who"]] = (
                row[column] + left
            )
            names += [row["who"]] if row["who"] not in names else []
    rows = ((head, *(found.get(name, "–") for name in names)) for head, found in cells.items())
    return markdown(("", *names), rows)


def _open(gap: float) -> str:
    return "proven" if gap < PROVEN else f"{gap:.2g} % open"


def median(cell: str) -> float:
    """The first number of ``median / p99``."""
    return float(cell.partition(" / ")[0])


def adapter() -> Markdown:
    """What `tests/kubernetes/benchmarks/scale.py` has measured: a column for each run."""
    runs = measured("kubernetes")
    order = {"True": "followers last", "False": "followers equal"}
    columns = [
        f"{run['nodes']} nodes, {run['pods']} pods, {order[run['followers_last']]}" for run in runs
    ]
    rows = ((text, *(run[name] for run in runs)) for name, text in ADAPTER.items())
    return markdown(("", *columns), rows)


def _row(record: LibraryEntry) -> tuple[str, ...]:
    gap = f"{_percent(record.gap)}<br><small>{record.proof}</small>"
    numbers = (f"{record.value:.3f}", f"{record.bound:.3f}", gap)
    return (f"`{record.name}`", *numbers, record.value_by, record.bound_by)


def _percent(gap: float) -> str:
    return f"{100 * gap:.2f} %"


def policies() -> Markdown:
    """Every policy with its rule."""
    return markdown(("name", "rule"), ((f"`{name}`", entry_of(name).summary) for name in POLICIES))


def elastic_fields() -> Markdown:
    """All fields of a file of elastic jobs, as its schema explains them."""
    schema = elastic_schema()
    parts = {
        "the file": schema,
        "an entry of `machines`": schema["$defs"]["machine"],
        "`costs`": schema["properties"]["costs"],
        "`observation`": schema["properties"]["observation"],
        "an entry of `jobs`": schema["$defs"]["job"],
    }
    rows: list[tuple[str, str]] = []
    for title, part in parts.items():
        rows += [(f"**{title}**", ""), *_fields(part)]
    return markdown(("field", "meaning"), rows)


def _fields(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, field in part["properties"].items():
        text = field.get("description", f"`{field.get('const')}`")
        more = "" if name in part.get("required", ()) else " Optional."
        if "default" in field:
            more = f" Default: `{json.dumps(field['default'])}`."
        yield f"`{name}`", f"{text}{more}"


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Markdown:
    """A table whose columns of numbers stand at the right."""
    body = [list(row) for row in rows]
    sides = ["---" if any(map(_is_text, cells)) else "---:" for cells in zip(*body, strict=True)]
    lines = (f"| {' | '.join(row)} |" for row in (heading, sides, *body))
    return Markdown("\n".join(lines))


def _is_text(cell: str) -> bool:
    """Whether a cell does not begin with a number, a dash aside."""
    first = cell.partition("<br>")[0].partition(" ")[0].strip("*%+-–(),")
    return bool(first) and not first.replace(",", "").replace(".", "", 1).isdigit()
