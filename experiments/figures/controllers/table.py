"""The table of all policies on the same elastic jobs, at three loads, beside a bound."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from baselines.registry import CONTROLLERS
from experiments.evaluation.comparison import SLOT_SECONDS
from experiments.evaluation.elastic_comparison import elastic_figures, elastic_policy
from experiments.evaluation.policies import RIVALS
from experiments.figures.controllers.workloads import at_load, drawn, of_trace
from experiments.figures.direct import Case, DirectFigure
from experiments.figures.rows import Row, amount, fraction, groups, half_widths
from experiments.plotting.canvas import (
    MARKERS,
    SMALL,
    axes,
    fill,
    ink,
    legend_below,
)
from oasis.simulator import ElasticWorkload, replay
from offline.elastic_bound import ElasticBound, elastic_bound
from offline.mean_bound import mean_completion_bound

LOADS = (0.5, 1.0, 2.0)
POLICIES = (*RIVALS, *CONTROLLERS)
# What is averaged over the seeds: times in seconds, restarts of a job.
MEASURED = ("of_bound", "utility", "mean", "p95", "waiting", "restarts", "use")

SHARES = ("of_bound", "use")


def cases(seeds: int, trace: str | None = None) -> list[Case]:
    """Each load and seed under each policy; a seed is a window of the trace where there is one.

    Raises
    ------
    ValueError, InstanceError, OSError
        If the trace cannot be read, or has fewer windows than there are seeds.
    """
    if trace is not None:
        of_trace(trace, seeds - 1)  # said before any run, and before anything is written
    return [
        {"load": load, "seed": seed, "policy": policy, "trace": trace}
        for load in LOADS
        for seed in range(seeds)
        for policy in POLICIES
    ]


@cache
def world(trace: str | None, load: float, seed: int) -> tuple[ElasticWorkload, ElasticBound, float]:
    """The jobs of a load and a seed, and the bounds on what they earn and on their mean time."""
    recorded = drawn(seed) if trace is None else of_trace(trace, seed)
    made = at_load(recorded, load, seed)
    return made, elastic_bound(made, SLOT_SECONDS), mean_completion_bound(made)


def run(case: Case) -> Row:
    """One run of one policy: the figures of its jobs."""
    trace = case["trace"]
    made, bound, least = world(trace, case["load"], case["seed"])
    policy = elastic_policy(case["policy"], {}, made)
    found = elastic_figures(made, replay(made.workload, policy, **made.options), bound)
    jobs = len(made.workload.jobs)
    return {
        **case,
        "trace": "drawn" if trace is None else Path(trace).name,
        "bound": bound.value,
        "of_bound": found["of_bound"],
        "utility": found["total_utility"],
        "finished": found["finished"],
        "unfinished": found["unfinished"],
        "mean": found["mean_completion"],
        "mean_bound": least,
        "p95": found["p95_completion"],
        "waiting": round(found["mean_waiting"], 6),  # what is left of rounding is nothing
        "restarts": found["restarts"] / jobs,
        "use": found["use"]["gpu"],
    }


def table(runs: Sequence[Row]) -> list[Row]:
    """A row for each load and policy: means over the seeds, with intervals."""
    rows: list[Row] = []
    for (load, policy), part in groups(runs, "load", "policy").items():
        row: Row = {"load": load, "policy": policy, "seeds": len(part)}
        for name in ("bound", "mean_bound"):
            row[name] = sum(each[name] for each in part) / len(part)
        for name in MEASURED:
            mean = fraction if name in SHARES else amount
            row |= mean([float(v) for each in part if (v := each[name]) is not None], name)
        row["unfinished"] = sum(each["unfinished"] for each in part) / len(part)
        rows.append(row)
    return rows


def draw(name: str, label: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """A mark for each policy and load, with its interval.

    Beside the mean completion time of the jobs that finished is the number of those that did not,
    in brackets.
    """
    ax = axes(ax)
    for k, ((load,), part) in enumerate(groups(rows, "load").items()):
        places = [POLICIES.index(row["policy"]) + 0.2 * (k - 1) for row in part]
        ax.errorbar(
            [row[name] for row in part],
            places,
            xerr=half_widths(part, name),
            linestyle="none",
            marker=MARKERS[k],
            color=ink(),
            markerfacecolor=fill(k),
            capsize=2,
            label=f"load {load:g}",
        )
        for row, place in zip(part, places, strict=True):
            if name in OF_FINISHED and row["unfinished"] and row[name] is not None:
                text = f" ({row['unfinished']:.2g})"
                ax.annotate(text, (row.get(f"{name}_high") or row[name], place), **BESIDE)
    ax.set_yticks(range(len(POLICIES)), list(POLICIES))
    ax.set_ylim(len(POLICIES) - 0.5, -0.5)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel(label)
    ax.set_title(TITLES[name])
    legend_below(ax, 3)
    return ax


OF_FINISHED = ("mean", "p95")
BESIDE: dict[str, Any] = {"va": "center", "fontsize": SMALL}
TITLES = {
    "of_bound": "All policies: utility as part of the bound",
    "mean": "Mean completion time (and jobs that did not finish)",
}
SHOWN = {
    "load": "load",
    "policy": "policy",
    "of_bound": "of bound",
    "utility": "utility",
    "unfinished": "unfinished",
    "mean": "mean of the finished (s)",
    "mean_bound": "lower bound of the mean (s)",
    "p95": "p95 of the finished (s)",
    "waiting": "waiting (s)",
    "restarts": "restarts of a job",
    "use": "GPUs in use",
}
FIGURES = (
    DirectFigure(
        "controllers",
        "All policies: the same elastic jobs at three loads",
        cases,
        run,
        table,
        SHOWN,
        (
            partial(draw, "of_bound", "utility / bound"),
            partial(draw, "mean", "mean completion of those that finished (s)"),
        ),
        (6.4, 5.6),
        takes_trace=True,
    ),
)
