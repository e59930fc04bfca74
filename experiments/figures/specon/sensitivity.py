"""What SpeCon gains in Figs. 5, 6, 7 and 12 by everything that the paper leaves open.

Each reading of the algorithms and each evaluation function is run on draws with which the default
scheduler's run is like the published one; and once more on such draws in which crowding costs
nothing, so that the jobs on a worker share its cores and lose none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes

from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    amount,
    groups,
    half_widths,
    interval,
)
from experiments.figures.specon.draws import LOSS, as_published
from experiments.figures.specon.published import SCHEDULES
from experiments.figures.specon.running import Choice, gains, measure
from experiments.plotting.canvas import MARKERS, axes, fill, ink, legend_below

CHOICES: Mapping[str, Choice] = {
    "specon": Choice(),
    "waits for all": Choice("converged"),
    "cluster": Choice(counted="cluster"),
    "cluster, waits for all": Choice("converged", "cluster"),
    "exponential": Choice(bend=1.0),
    "half is left": Choice(floor=0.5),
    "value every 60 s": Choice(look=60.0),
    "exponential, waits for all": Choice("converged", bend=1.0),
}
MOST_JOBS = max(schedule.jobs for schedule in SCHEDULES.values())
CROWDING: Mapping[str, float] = {"drawn": LOSS, "costs nothing": 0.0}


def cases(seeds: int) -> list[Case]:
    """The default scheduler and each choice on each draw of each figure."""
    return [
        {"figure": figure, "crowding": crowding, "draw": number, "choice": choice}
        for figure in SCHEDULES
        for crowding in CROWDING
        for choice in (None, *CHOICES)
        for number in range(seeds)
    ]


def run(case: Case) -> Row:
    """One run."""
    number, workers = case["draw"], SCHEDULES[case["figure"]].workers
    draw = as_published(case["figure"], number, CROWDING[case["crowding"]])
    choice = None if case["choice"] is None else CHOICES[case["choice"]]
    missing = {f"job{k}": None for k in range(1, MOST_JOBS + 1)}  # each row has the same columns
    return {**case, "seed": draw.seed, **missing, **measure(draw, number, workers, choice)}


def table(runs: Sequence[Row]) -> list[Row]:
    """A row for each figure, crowding and choice: means over the draws, and what is published."""
    own = groups(runs, "figure", "crowding", "choice")
    rows: list[Row] = []
    for (figure, crowding, choice), part in own.items():
        if choice is None:
            continue
        schedule, base = SCHEDULES[str(figure)], own[figure, crowding, None]
        pairs = list(zip(part, base, strict=True))
        row: Row = {"figure": figure, "crowding": crowding, "choice": choice, "seeds": len(part)}
        row |= gains(part, base, schedule.jobs)
        row["overall_published"] = schedule.specon.gain
        row["as_much"] = sum(
            1.0 - one["mean"] / two["mean"] >= schedule.specon.gain for one, two in pairs
        )
        row |= interval([1.0 - one["pooled"] / two["mean"] for one, two in pairs], "pooled")
        row |= amount([each["mean"] for each in part], "mean")
        row |= amount([each["makespan"] for each in part], "makespan")
        row["makespan_published"] = schedule.specon.makespan
        row["reduced_published"] = schedule.specon.reduced
        rows.append(row)
    return rows


def draw(figure: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """By how much the mean of a figure is lower, by choice; the published value is dotted."""
    ax = axes(ax)
    part = [row for row in rows if str(row["figure"]) == figure]
    ax.axvline(
        100 * SCHEDULES[figure].specon.gain, color="0.5", linestyle=":", label="published, one run"
    )
    for k, ((crowding,), some) in enumerate(groups(part, "crowding").items()):
        ax.errorbar(
            [100 * row["overall"] for row in some],
            [list(CHOICES).index(row["choice"]) + 0.2 * (2 * k - 1) for row in some],
            xerr=[[100 * width for width in side] for side in half_widths(some, "overall")],
            linestyle="none",
            marker=MARKERS[k],
            color=ink(),
            markerfacecolor=fill(k),
            capsize=2,
            label=f"crowding: {crowding}",
        )
    ax.axvline(0.0, color=ink(), linewidth=0.8)
    ax.set_yticks(range(len(CHOICES)), list(CHOICES) if figure == FIRST else [""] * len(CHOICES))
    ax.set_ylim(len(CHOICES) - 0.5, -0.5)
    ax.set_xlabel("mean lower by (%)")
    ax.set_title(f"Fig. {figure}")
    legend_below(ax, 1)
    return ax


FIRST = next(iter(SCHEDULES))
SHOWN = {
    "figure": "figure",
    "crowding": "crowding",
    "choice": "choice",
    "overall": "mean lower by",
    "overall_published": "published",
    "one_draw": "middle 95 % of the draws",
    "as_much": "draws as much",
    "pooled": "one pool, shared evenly",
    "makespan": "makespan (s)",
    "makespan_published": "published ",
    "reduced": "jobs that gain",
    "reduced_published": "published  ",
}
FIGURES = (
    DirectFigure(
        "specon-sensitivity",
        "SpeCon, Figs. 5, 6, 7 and 12: by what the paper leaves open",
        cases,
        run,
        table,
        SHOWN,
        tuple(partial(draw, figure) for figure in SCHEDULES),
        (3.2, 4.8),
        seeds=100,
    ),
)
