"""Table III of the SpeCon paper: the threshold and the interval, on VAE jobs that come at random.

How many jobs there are is not printed; read: 20, as the percentages of jobs, 55, 60 and 65, allow,
and as in Figs. 5 and 6. Nothing is published of the default scheduler's run: the median work of a
VAE job, its spread and what crowding costs are those of the draws of Fig. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from experiments.figures.figure import Case, DirectFigure, Row, groups, half_widths
from experiments.figures.specon.draws import Draw, as_published
from experiments.figures.specon.published import TABLE3
from experiments.figures.specon.running import (
    CHOICES,
    DEFAULT,
    EXPONENTIAL,
    SPECON,
    WAITS,
    gains,
    measure,
)
from experiments.plotting.canvas import (
    MARKERS,
    axes,
    fill,
    ink,
    legend_below,
)

JOBS, WINDOW, WORKERS = 20, 300.0, 4
READINGS = (SPECON, WAITS, EXPONENTIAL)
# The rows as printed: one pair of parameters is there twice.
PRINTED = ((0.05, 20.0), (0.05, 25.0), (0.05, 30.0), (0.01, 30.0), (0.05, 30.0), (0.10, 30.0))


def cases(seeds: int) -> list[Case]:
    """The default scheduler, and SpeCon in each reading with each pair of parameters."""
    return [
        {"seed": seed, "policy": policy, "alpha": alpha, "interval": interval}
        for seed in range(seeds)
        for policy in (DEFAULT, *READINGS)
        for alpha, interval in (TABLE3 if policy != DEFAULT else [(0.0, 0.0)])
    ]


def vae_jobs(number: int) -> Draw:
    """VAE jobs like those of a draw of Fig. 5, which arrive at random.

    Examples
    --------
    >>> drawn = vae_jobs(0)
    >>> len(drawn.work), max(drawn.arrivals) < 300.0, set(drawn.models)
    (20, True, {'VAE'})
    """
    like = as_published("5", number)
    rng = np.random.default_rng([10, number])
    arrivals = np.sort(rng.uniform(0.0, WINDOW, JOBS)).round(1).tolist()
    work = (like.median * np.exp(like.within * rng.standard_normal(JOBS))).round(3).tolist()
    return replace(like, arrivals=tuple(arrivals), work=tuple(work), models=("VAE",) * JOBS)


def run(case: Case) -> Row:
    """One run."""
    options = {} if case["policy"] == DEFAULT else {k: case[k] for k in ("alpha", "interval")}
    jobs, choice = vae_jobs(case["seed"]), CHOICES[case["policy"]]
    return {**case, **measure(jobs, case["seed"], WORKERS, choice, **options)}


def table(runs: Sequence[Row]) -> list[Row]:
    """The printed six rows for each reading, beside the published numbers."""
    own = groups(runs, "policy", "alpha", "interval")
    base = own[(DEFAULT, 0.0, 0.0)]
    rows: list[Row] = []
    for policy in READINGS:
        for alpha, interval in PRINTED:
            part = own[(policy, alpha, interval)]
            row: Row = {"policy": policy, "alpha": alpha, "interval": interval}
            row |= {"seeds": len(part), **gains(part, base, JOBS)}
            published = TABLE3[(alpha, interval)]
            row |= {f"{name}_published": published[name] for name in ("reduced", "overall")}
            row["best_published"] = published["best"]
            row["makespan_gain_published"] = published["makespan"]
            rows.append(row)
    return rows


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """By how much the mean is lower, for each row and reading; bars are the published values."""
    ax = axes(ax)
    places = list(range(len(PRINTED)))
    printed = [TABLE3[pair]["overall"] for pair in PRINTED]
    ax.bar(places, printed, 0.7, color="0.9", edgecolor="0.6", label="published")
    for k, policy in enumerate(READINGS):
        part = [row for row in rows if row["policy"] == policy]
        ax.errorbar(
            [place + 0.2 * (k - 1) for place in places],
            [row["overall"] for row in part],
            half_widths(part, "overall"),
            linestyle="none",
            marker=MARKERS[k],
            color=ink(),
            markerfacecolor=fill(k),
            capsize=2,
            label=policy,
        )
    ax.axhline(0.0, color=ink(), linewidth=0.8)
    ax.set_xticks(places, [f"{alpha:g}, {interval:.0f} s" for alpha, interval in PRINTED])
    ax.set_xlabel("alpha and interval")
    ax.set_ylabel("mean completion time lower by")
    ax.set_title(TITLE)
    legend_below(ax, 2)
    return ax


TITLE = "SpeCon, Table III: threshold and interval"
SHOWN = {
    "policy": "policy",
    "alpha": "alpha",
    "interval": "interval (s)",
    "reduced": "jobs that gain",
    "reduced_published": "published",
    "overall": "mean lower by",
    "overall_published": "published ",
    "one_draw": "middle 95 % of the draws",
    "best": "largest gain",
    "best_published": "published  ",
    "makespan_gain": "makespan lower by",
    "makespan_gain_published": "published   ",
    "better": "seeds better",
}
FIGURES = (DirectFigure("specon-table3", TITLE, cases, run, table, SHOWN, (draw,), seeds=100),)
