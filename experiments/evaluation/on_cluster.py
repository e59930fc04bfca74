"""Earnings of a cluster: by namespace, and beside the simulated policies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.evaluation.comparison import Comparison
from experiments.evaluation.tables import number

ACTUAL = "this cluster"  # the row of a comparison that says what really happened
LIVE = ("Pending", "Waiting", "Starting", "Running")
COUNTED = ("jobs", "completed", "live", "rejected", "lost")
NAMESPACES = (
    ("namespace", False),
    *((name, True) for name in (*COUNTED, "utility", "promises kept")),
)


def by_namespace(summaries: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Count jobs and add up what they earned, by namespace."""
    totals: dict[str, dict[str, Any]] = {}
    for job in summaries:
        row = totals.setdefault(
            str(job["job"]).partition("/")[0],
            dict.fromkeys((*COUNTED, "utility", "kept", "broken", "open"), 0),
        )
        phase = job["phase"]
        row["jobs"] += 1
        kind = {"Completed": "completed", "Rejected": "rejected"}.get(phase)
        row[kind or ("live" if phase in LIVE else "lost")] += 1
        row["utility"] += job["utility"] or 0.0
        if job["promised"] is not None:
            row[_promise(job)] += 1
    return dict(sorted(totals.items()))


def _promise(job: Mapping[str, Any]) -> str:
    """Say whether the promised completion of a job was kept."""
    if job["late"] or job["phase"] not in ("Completed", *LIVE):
        return "broken"
    return "kept" if job["phase"] == "Completed" else "open"


def namespace_rows(totals: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The rows of the table of namespaces, with their sum where there are several."""
    rows = dict(totals)
    if len(totals) > 1:
        names = next(iter(totals.values()))
        rows["all"] = {name: sum(row[name] for row in totals.values()) for name in names}
    return [
        (
            name,
            *(str(row[part]) for part in COUNTED),
            number(row["utility"]),
            _promises(row),
        )
        for name, row in rows.items()
    ]


def _promises(row: Mapping[str, Any]) -> str:
    ended = row["kept"] + row["broken"]
    return f"{row['kept']} of {ended}" if ended else "-"


def actual_figures(
    jobs: Sequence[Mapping[str, Any]], arrivals: Mapping[str, int]
) -> dict[str, Any]:
    """Figures of the real run of a cluster, as those of a policy; None for what is unknown."""
    done = [job for job in jobs if job["phase"] == "Completed"]
    rejected = sum(job["phase"] == "Rejected" for job in jobs)
    times = sorted(job["completion_slot"] + 1 - arrivals[job["job"]] for job in done)
    last = None if not times else float(times[max(0, math.ceil(0.95 * len(times)) - 1)])
    return {
        "total_utility": math.fsum(job["utility"] or 0.0 for job in done),
        "admitted": len(jobs) - rejected,
        "rejected": rejected,
        "finished": len(done),
        "unfinished": len(jobs) - len(done),
        "mean_completion": math.fsum(times) / len(times) if times else None,
        "p95_completion": last,
        "wasted_share": None,
        "utilisation": {},
        "parameters": {},
        "report": {},
    }


def with_actual(comparison: Comparison, figures: Mapping[str, Any]) -> Comparison:
    """Return the comparison with the real run as its first row."""
    return replace(comparison, policies={ACTUAL: dict(figures), **comparison.policies})
