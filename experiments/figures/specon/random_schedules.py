"""Figs. 6, 7 and 12 of the SpeCon paper: mixed models that arrive at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes

from experiments.figures.direct import Case, DirectFigure
from experiments.figures.rows import Row, groups, interval
from experiments.figures.specon.models import random_schedule
from experiments.figures.specon.published import RANDOM
from experiments.figures.specon.running import CHOICES, CLUSTER, DEFAULT, SPECON, gains, measure
from experiments.plotting.canvas import LINES, axes, ink, legend_below

SIZES = {"6": (20, 300.0, 4), "7": (30, 600.0, 4), "12": (50, 1200.0, 8)}


def cases(seeds: int) -> list[Case]:
    """Each seed under each scheduler."""
    return [{"seed": seed, "policy": policy} for seed in range(seeds) for policy in CHOICES]


def run(figure: str, case: Case) -> Row:
    """One run: the schedule of a figure under one scheduler."""
    jobs, window, workers = SIZES[figure]
    bend = CHOICES[case["policy"]][1]
    made = random_schedule(case["seed"], jobs=jobs, window=window, workers=workers, bend=bend)
    return {**case, **measure(made, case["policy"])}


def table(figure: str, runs: Sequence[Row]) -> list[Row]:
    """A row for each scheduler: means over the seeds, beside what is published."""
    jobs = SIZES[figure][0]
    own = {str(policy): part for (policy,), part in groups(runs, "policy").items()}
    rows: list[Row] = []
    for policy, part in own.items():
        published = RANDOM[figure]["default" if policy == DEFAULT else "specon"]
        row: Row = {"policy": policy, "seeds": len(part)}
        for name in ("mean", "makespan"):
            row |= interval([each[name] for each in part], name)
            row[f"{name}_published"] = published[name]
        row |= gains(part, own[DEFAULT], jobs)
        pairs = zip(part, own[DEFAULT], strict=True)
        row |= interval([1.0 - each["pooled"] / base["mean"] for each, base in pairs], "pooled")
        row["overall_published"] = published.get("gain")
        row["reduced_published"] = published.get("reduced")
        row |= interval([float(each["moves"]) for each in part], "moves")
        for k in range(1, jobs + 1):
            row[f"job{k}"] = math.fsum(each[f"job{k}"] for each in part) / len(part)
        rows.append(row)
    return rows


def draw(figure: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Completion time of each job in order of arrival, mean over the seeds."""
    ax = axes(ax)
    jobs = range(1, SIZES[figure][0] + 1)
    for k, row in enumerate(row for row in rows if row["policy"] in (DEFAULT, SPECON, CLUSTER)):
        published = row["mean_published"]
        beside = "" if published is None else f", published {published:.0f} s"
        label = f"{row['policy']}: mean {row['mean']:.0f} s{beside}"
        times = [row[f"job{job}"] for job in jobs]
        ax.plot(jobs, times, linestyle=LINES[k], marker=".", color=ink(), label=label)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("job, in order of arrival")
    ax.set_ylabel("completion time (s)")
    ax.set_title(_title(figure))
    legend_below(ax, 1)
    return ax


def _title(figure: str) -> str:
    jobs, window, workers = SIZES[figure]
    return f"SpeCon, Fig. {figure}: {jobs} jobs in [0, {window:.0f} s] on {workers} workers"


SHOWN = {
    "policy": "policy",
    "mean": "mean (s)",
    "mean_published": "published",
    "overall": "mean lower by",
    "overall_published": "published ",
    "pooled": "one pool, shared evenly",
    "makespan": "makespan (s)",
    "makespan_published": "published  ",
    "reduced": "jobs that gain",
    "reduced_published": "published   ",
    "better": "seeds better",
    "moves": "moves",
}
FIGURES = tuple(
    DirectFigure(
        f"specon-{figure}",
        _title(figure),
        cases,
        partial(run, figure),
        partial(table, figure),
        SHOWN,
        (partial(draw, figure),),
    )
    for figure in SIZES
)
