"""What results say, as rows of text: the commands print them, reports show them.

Each column is a heading, and whether it holds numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.evaluation import texts
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


def compared_row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table of ``oasis compare``."""
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
        _short(figures["mean_completion"]),
        _short(figures["p95_completion"]),
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


def elastic_row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table of ``oasis compare`` on elastic jobs."""
    shares = [share for share in found["use"].values() if share is not None]
    times = (found["mean_completion"], found["p95_completion"], found["mean_waiting"])
    return (
        name,
        texts.number(found["total_utility"]),
        texts.percent(found["of_bound"]),
        str(found["finished"]),
        *("-" if value is None else f"{value:.0f}" for value in times),
        str(found["restarts"]),
        texts.percent(max(shares, default=None)),
    )


def replayed_row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table of ``oasis replay``."""
    times = ("mean_completion", "median_completion", "p95_completion", "mean_waiting")
    rate = found["jobs_per_second"]
    return (
        name,
        str(found["finished"]),
        *("-" if found[key] is None else f"{found[key]:.1f}" for key in times),
        texts.percent(found["gpu_utilisation"]),
        "-" if rate is None else f"{rate:.0f}",
    )
