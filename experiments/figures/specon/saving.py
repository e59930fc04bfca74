"""Figs. 1 to 3 of the SpeCon paper: trainings on their own, and what saving one costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import Case, DirectFigure, Row, groups, headings, label, mark, means
from experiments.figures.specon.draws import as_published
from experiments.figures.specon.models import (
    EARLY_PROGRESS,
    FLAT_TAIL,
    MODELS,
    SAVING_AT_MOST,
    SAVING_SPREAD,
    curve,
    job_of,
    on_workers,
    overhead,
    pace,
    progress,
)
from experiments.plotting.canvas import ink, line, marker
from oasis.scheduling import Allocation, Plan, Site, View
from oasis.simulator import replay

POINTS1 = tuple(k / 50 for k in range(51))  # shares of the training, for Fig. 1
NONSTOP = "nonstop"
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the training, for the VAE
TWO = (0.3, 0.7)  # for each model


def cases1(seeds: int) -> list[Case]:
    """The three models of Fig. 1; nothing is drawn."""
    return [{"model": model, "share": share} for model in EARLY_PROGRESS for share in POINTS1]


def run1(case: Case) -> Row:
    """Part of the whole reduction that is made after a share of the training."""
    rate = pace(EARLY_PROGRESS[case["model"]], FLAT_TAIL)
    return {**case, "progress": progress(case["share"], rate, FLAT_TAIL)}


def table1(runs: Sequence[Row]) -> list[Row]:
    """Rows of the curves, with the published numbers beside them."""
    return [
        run | {"published": EARLY_PROGRESS[run["model"]] if run["share"] == 0.2 else None}
        for run in runs
    ]


def draw1(rows: Sequence[Row], ax: Axes) -> None:
    """A curve for each model; the published points are marked."""
    for k, ((model,), part) in enumerate(groups(rows, "model").items()):
        shares = [100 * row["share"] for row in part]
        made = [100 * row["progress"] for row in part]
        ax.plot(shares, made, linestyle=line(k), color=ink(), label=str(model))
        ax.plot(20.0, 100 * EARLY_PROGRESS[str(model)], marker(k), color=ink())
    label(ax, "training time (%)", "progress (%)", TITLE1, 3)


class MovesOnce:
    """Runs one job on the first machine, and at time `at` resumes it on the other."""

    name, slotted, told_remaining = "moves-once", False, False

    def __init__(self, at: float | None) -> None:
        self._at = at

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"at": self._at}

    def reset(self, site: Site) -> None:
        self._home = 0

    def decide(self, view: View) -> Plan:
        jobs = list(view.jobs())
        if self._at is not None and view.now >= self._at:
            self._home = 1
        plan = Plan({job.index: Allocation(((self._home, 1),)) for job in jobs})
        if self._at is not None and jobs and view.now < self._at:
            plan.wake_at = self._at
        return plan


def cases(seeds: int) -> list[Case]:
    """The VAE at nine points (Fig. 2), and each model at two (Fig. 3), for each seed."""
    one = [("2", "VAE", share) for share in (None, *SHARES)]
    two = [("3", model, share) for model in MODELS for share in (None, *TWO)]
    return [
        {"seed": seed, "point": point, "figure": figure, "model": model, "share": share}
        for seed in range(seeds)
        for point, (figure, model, share) in enumerate(one + two)
    ]


def run(case: Case) -> Row:
    """One training on its own, of the median work of a draw of Fig. 5, and its time."""
    share, work = case["share"], as_published("5", case["seed"]).median
    costs = overhead(case["seed"], 1 + case["point"])
    made = on_workers([job_of(0, 0.0, work, curve(case["model"]))], 2, costs=costs)
    # The job runs alone at full speed until then, so the share of its work is a share of its time.
    at = None if share is None else share * work
    outcome = replay(made, MovesOnce(at))
    row: Row = {"seed": case["seed"], "figure": case["figure"], "model": case["model"]}
    return row | {"saved_at": NONSTOP if share is None else share, "time": outcome.jobs[0].end}


def table(runs: Sequence[Row]) -> list[Row]:
    """Each training beside the one that is never stopped: means over the seeds."""
    # The spread is the standard deviation over the points of a figure, as in the paper, on average.
    nonstop = {
        (run["seed"], run["figure"], run["model"]): run["time"]
        for run in runs
        if run["saved_at"] == NONSTOP
    }
    more = [
        {**run, "overhead": run["time"] - nonstop[run["seed"], run["figure"], run["model"]]}
        for run in runs
    ]
    stopped = [run for run in more if run["saved_at"] != NONSTOP]
    spreads = {
        figure: fmean(
            stdev(run["overhead"] for run in part)
            for (_, own), part in groups(stopped, "seed", "figure").items()
            if own == figure
        )
        for figure in ("2", "3")
    }
    rows: list[Row] = []
    for (figure, model, saved_at), part in groups(more, "figure", "model", "saved_at").items():
        row: Row = {"figure": figure, "model": model, "saved_at": saved_at, "seeds": len(part)}
        row["time"] = fmean(run["time"] for run in part)
        row |= means(part, "overhead")
        row["largest"] = max(run["overhead"] for run in part)
        row["published_most"] = SAVING_AT_MOST
        row["spread"] = None if saved_at == NONSTOP else spreads[str(figure)]
        row["spread_published"] = SAVING_SPREAD if figure == "2" and row["spread"] else None
        rows.append(row)
    return rows


def draw(rows: Sequence[Row], ax: Axes) -> None:
    """Overhead by the point at which the training was saved; the published limit is dotted."""
    stopped = [row for row in rows if row["saved_at"] != NONSTOP]
    for k, model in enumerate(MODELS):
        part = [row for row in stopped if row["model"] == model]
        places = [100 * row["saved_at"] + k - 2 for row in part]  # beside each other
        mark(ax, places, part, "overhead", k, fillstyle="none", label=model)
    ax.axhline(SAVING_AT_MOST, color="0.5", linestyle=":", label="published: less than")
    ax.set_ylim(0.0, 6.0)
    label(ax, "saved at (% of the training)", "overhead (s)", TITLE, 3)


TITLE1 = "SpeCon, Fig. 1: progress of trainings on their own"
SHOWN1 = headings("model | share | progress | published")
TITLE = "SpeCon, Figs. 2 and 3: overhead of saving and resuming"
SHOWN = headings(
    "figure | model | saved_at | time = time (s) | overhead = overhead (s) | "
    "largest = largest (s) | published_most = published: less than | "
    "spread = standard deviation (s) | spread_published"
)
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure("specon-1", TITLE1, table1, SHOWN1, (draw1,), cases1, run1),
    DirectFigure("specon-2", TITLE, table, SHOWN, (draw,), cases, run),
)
