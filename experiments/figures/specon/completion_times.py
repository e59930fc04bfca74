"""Figs. 5, 6, 7 and 12 of the SpeCon paper: completion times under both schedulers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from experiments.figures.figure import Case, DirectFigure, Row, amount, groups, interval
from experiments.figures.specon.draws import as_published
from experiments.figures.specon.published import SCHEDULES
from experiments.figures.specon.running import CHOICES, DEFAULT, SPECON, gains, measure
from experiments.plotting.canvas import LINES, axes, ink, legend_below


def cases(seeds: int) -> list[Case]:
    """Each draw under each scheduler."""
    return [{"draw": number, "policy": policy} for number in range(seeds) for policy in CHOICES]


def run(figure: str, case: Case) -> Row:
    """One run: a draw of a figure under one scheduler."""
    number, workers = case["draw"], SCHEDULES[figure].workers
    draw = as_published(figure, number)
    measured = measure(draw, number, workers, CHOICES[case["policy"]])
    return {**case, "seed": draw.seed, "loss": draw.loss, **measured}


def table(figure: str, runs: Sequence[Row]) -> list[Row]:
    """A row for each scheduler: means over the draws, beside what is published."""
    schedule = SCHEDULES[figure]
    default, specon = schedule.default, schedule.specon
    own = {str(policy): part for (policy,), part in groups(runs, "policy").items()}
    rows: list[Row] = []
    for policy, part in own.items():
        base = policy == DEFAULT
        row: Row = {"policy": policy, "seeds": len(part)}
        row |= amount([each["mean"] for each in part], "mean")
        row["mean_published"] = default.mean * (1.0 if base else 1.0 - specon.gain)
        row |= amount([each["makespan"] for each in part], "makespan")
        row["makespan_published"] = default.makespan if base else specon.makespan
        row |= gains(part, own[DEFAULT], schedule.jobs)
        pairs = list(zip(part, own[DEFAULT], strict=True))
        row["as_much"] = sum(1.0 - one["mean"] / two["mean"] >= specon.gain for one, two in pairs)
        row |= interval([1.0 - one["pooled"] / two["mean"] for one, two in pairs], "pooled")
        row |= amount([float(each["moves"]) for each in part], "moves")
        told = (specon.gain, specon.reduced, specon.best)
        for name, value in zip(("overall", "reduced", "best"), told, strict=True):
            row[f"{name}_published"] = None if base else value
        losses = [each["loss"] for each in part]
        row |= amount(losses, "loss")
        row["loss_nine_in_ten"] = float(np.quantile(losses, 0.9))
        for k in range(1, schedule.jobs + 1):
            row[f"job{k}"] = math.fsum(each[f"job{k}"] for each in part) / len(part)
        rows.append(row)
    return rows


def draw(figure: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Completion time of each job in order of arrival, mean over the draws."""
    ax = axes(ax)
    jobs = range(1, SCHEDULES[figure].jobs + 1)
    for k, row in enumerate(row for row in rows if row["policy"] in (DEFAULT, SPECON)):
        label = f"{row['policy']}: mean {row['mean']:.0f} s"
        label += f", published {row['mean_published']:.0f} s"
        times = [row[f"job{job}"] for job in jobs]
        ax.plot(jobs, times, linestyle=LINES[k], marker=".", color=ink(), label=label)
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("job, in order of arrival")
    ax.set_ylabel("completion time (s)")
    ax.set_title(_title(figure))
    legend_below(ax, 1)
    return ax


def _title(figure: str) -> str:
    schedule = SCHEDULES[figure]
    if schedule.fixed:
        return f"SpeCon, Fig. {figure}: completion times on a fixed schedule"
    jobs, workers = schedule.jobs, schedule.workers
    return (
        f"SpeCon, Fig. {figure}: {jobs} jobs in [0, {schedule.window:.0f} s] on {workers} workers"
    )


SHOWN = {
    "policy": "policy",
    "mean": "mean (s)",
    "mean_published": "published",
    "overall": "mean lower by",
    "overall_published": "published ",
    "one_draw": "middle 95 % of the draws",
    "as_much": "draws as much",
    "makespan": "makespan (s)",
    "makespan_published": "published  ",
    "reduced": "jobs that gain",
    "reduced_published": "published   ",
    "best": "largest gain",
    "best_published": "published    ",
    "pooled": "one pool, shared evenly",
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
        seeds=100,
    )
    for figure in SCHEDULES
)
