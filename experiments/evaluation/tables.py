"""What results say, as rows of text: the commands print them, reports show them.

Each column is a heading, and whether it holds numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.evaluation import texts
from experiments.evaluation.comparison import OF_FINISHED, Comparison
from experiments.evaluation.seeds import OVER_SEEDS
from oasis.model.decision import Decision

DECISIONS = (("job", False), ("finishes", True), ("utility", True), ("cost", True), ("", False))
COMPARED = (
    ("policy", False),
    ("utility", True),
    ("admitted", True),
    ("done", True),
    ("waste", True),
    ("mean", True),
    ("p95", True),
    ("busiest", False),
    ("decision", True),
)
ELASTIC = (
    ("policy", False),
    ("utility", True),
    ("of bound", True),
    ("done", True),
    ("mean", True),
    ("p95", True),
    ("waiting", True),
    ("restarts", True),
    ("use", True),
)
REPLAYED = (
    ("policy", False),
    ("finished", True),
    ("mean", True),
    ("median", True),
    ("p95", True),
    ("waiting", True),
    ("GPU use", True),
    ("jobs/s", True),
)


def decision_row(decision: Decision) -> tuple[str, ...]:
    """A row of the table of decisions."""
    if decision.admitted:
        if decision.completion is None:
            return (decision.job_id, "-", "0", "0", decision.reason or "")
        slot = f"slot {decision.completion}"
        numbers = (texts.number(decision.utility), texts.number(decision.cost))
        return (decision.job_id, slot, *numbers, "admitted")
    return (decision.job_id, "-", "-", "-", f"rejected: {decision.reason}")


MARK = "*"  # of a figure of the jobs that finished alone


def compared_rows(found: Comparison) -> list[tuple[str, ...]]:
    """The rows of the table of ``oasis compare``."""
    return [_compared(name, row, _mark(found, name)) for name, row in found.policies.items()]


def elastic_rows(found: Comparison) -> list[tuple[str, ...]]:
    """The rows of the table of ``oasis compare`` on elastic jobs."""
    return [_elastic(name, row, _mark(found, name)) for name, row in found.policies.items()]


def replayed_rows(found: Comparison) -> list[tuple[str, ...]]:
    """The rows of the table of ``oasis replay``."""
    return [_replayed(name, row, _mark(found, name)) for name, row in found.policies.items()]


def unfinished_notes(found: Comparison) -> list[str]:
    """What to say below a table of policies under which jobs did not finish; nothing if all did.

    Examples
    --------
    >>> rows = {"mine": {"unfinished": 3, "mean_waiting": 1.0}, "fifo": {"unfinished": 0}}
    >>> for note in unfinished_notes(Comparison("replay", rows, {"jobs": 5})):
    ...     print(note)
    *: of the jobs that finished alone. Not finished, of 5 jobs: mine 3
    Waiting: a job that did not finish waits until it is rejected, or to the end of the run.
    """
    left = {name: count for name, count in found.unfinished.items() if count}
    if not left:
        return []
    jobs = found.about.get("jobs")
    named = ", ".join(f"{name} {count:.4g}" for name, count in left.items())
    notes = [f"{MARK}: of the jobs that finished alone. Not finished, of {jobs} jobs: {named}"]
    if any("mean_waiting" in row for row in found.policies.values()):
        rest = "waits until it is rejected, or to the end of the run."
        notes.append(f"Waiting: a job that did not finish {rest}")
    return notes


def _mark(found: Comparison, name: str) -> str:
    return MARK if found.unfinished[name] else ""


def _marked(text: str, mark: str) -> str:
    return text if text == "-" else text + mark


def _compared(name: str, figures: Mapping[str, Any], mark: str) -> tuple[str, ...]:
    shares = [
        (share, f"{group} {resource}")
        for group, resources in figures["utilisation"].items()
        for resource, share in resources.items()
        if share is not None
    ]
    share, busiest = max(shares, default=(None, ""))
    return (
        name,
        _utility(figures),
        f"{figures['admitted']:.4g}",
        f"{figures['finished']:.4g}",
        _whole(figures["wasted_share"]),
        _marked(_short(figures["mean_completion"]), mark),
        _marked(_short(figures["p95_completion"]), mark),
        f"{_whole(share)} {busiest}",
        texts.seconds(figures["decision_seconds"]["median"]),
    )


def _utility(figures: Mapping[str, Any]) -> str:
    """Total utility; over several seeds with its interval."""
    found = figures.get(OVER_SEEDS, {}).get("figures", {}).get("total_utility")
    return texts.number(figures["total_utility"]) if found is None else texts.interval(found)


def _whole(share: float | None) -> str:
    """A share in whole percent: the table must fit 80 columns."""
    return "-" if share is None else f"{100 * share:.0f}%"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _elastic(name: str, found: Mapping[str, Any], mark: str) -> tuple[str, ...]:
    shares = [share for share in found["use"].values() if share is not None]
    return (
        name,
        texts.number(found["total_utility"]),
        texts.percent(found["of_bound"]),
        str(found["finished"]),
        _marked(_fixed(found["mean_completion"], 0), mark),
        _marked(_fixed(found["p95_completion"], 0), mark),
        _fixed(found["mean_waiting"], 0),
        str(found["restarts"]),
        texts.percent(max(shares, default=None)),
    )


def _replayed(name: str, found: Mapping[str, Any], mark: str) -> tuple[str, ...]:
    rate = found["jobs_per_second"]
    return (
        name,
        str(found["finished"]),
        *(_marked(_fixed(found[figure], 1), mark) for figure in OF_FINISHED),
        _fixed(found["mean_waiting"], 1),
        texts.percent(found["gpu_utilisation"]),
        _fixed(rate, 0),
    )


def _fixed(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
