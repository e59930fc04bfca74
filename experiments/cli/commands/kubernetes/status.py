"""``oasis kubernetes status``: every job, and where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    Context,
    JobNamespace,
    Kubeconfig,
    connect,
    jobs_of,
)
from experiments.cli.options import AsJson

COLUMNS = (
    ("job", False),
    ("phase", False),
    ("workers", True),
    ("done", True),
    ("promised", False),
    ("utility", True),
    ("", False),
)


def command(
    *,
    jobs: JobNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs of a cluster: phase, workers, work done, promise, what they earned.

    Jobs, JobSets and TrainJobs that are scheduled here have their kind in their name.

    Example: oasis kubernetes status -n research
    """
    found = jobs_of(connect(kubeconfig, context), jobs)
    document = {"jobs": [summary(item) for item in found]}
    if as_json:
        console.print_json(document)
        return
    earned = sum(job["utility"] or 0.0 for job in document["jobs"])
    title = f"{len(found)} jobs; earned {console.number(earned)}"
    console.print_rows(COLUMNS, [_row(job) for job in document["jobs"]], title=title)


def summary(item: Mapping[str, Any]) -> dict[str, Any]:
    """What is said about one object, as plain data."""
    status, meta = item.get("status") or {}, item["metadata"]
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    return {
        "job": f"{meta['namespace']}/{meta['name']}",
        "phase": status.get("phase", "Pending"),
        "workers": status.get("workers", 0),
        "percent": (status.get("progress") or {}).get("percent", 0),
        "promised": status.get("promisedCompletion"),
        "completion_slot": status.get("completionSlot"),
        "utility": status.get("utility"),
        "late": conditions.get("Late", {}).get("status") == "True",
        "reasons": {kind: c["reason"] for kind, c in sorted(conditions.items())},
    }


def _row(job: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = job["reasons"]
    phase = job["phase"]
    side = {"Rejected": "Admitted", "Invalid": "Valid", "Failed": "Valid", "GivenUp": "Complete"}
    kind = side.get(phase, "Placed")
    note = "" if phase in ("Completed", "Running") else reasons.get(kind, "")
    state = reasons.get("Stalled") or reasons.get("PolicyState", "")
    return (
        job["job"],
        phase,
        str(job["workers"]),
        f"{job['percent']}%",
        job["promised"] or "-",
        console.number(job["utility"]),
        " ".join(part for part in (note, state, "late" if job["late"] else "") if part),
    )
