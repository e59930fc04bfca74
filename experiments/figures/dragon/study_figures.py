"""Figs. 9 and 10 of the DRAGON paper: what DRAGON saves over its rivals, by intensity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.axes import Axes

from experiments.figures.direct import Case, DirectFigure
from experiments.figures.dragon.running import (
    DEFAULT,
    DRAGON,
    LOCALITY,
    RIGID,
    by_policy,
    measure,
)
from experiments.figures.dragon.study import INTENSITIES, gap, study
from experiments.figures.rows import Row, groups, half_widths, interval
from experiments.plotting.canvas import (
    LINES,
    MARKERS,
    axes,
    ink,
    legend_below,
)

PARTS = ("elapsed", "running", "waiting")


def cases(rival: str, seeds: int) -> list[Case]:
    """DRAGON and its rival at every intensity."""
    return [
        {"intensity": intensity, "seed": seed, "policy": policy}
        for intensity in INTENSITIES
        for seed in range(seeds)
        for policy in (rival, DRAGON)
    ]


def run(case: Case) -> Row:
    """One run: the means of its jobs."""
    rigid = case["policy"] in RIGID
    row, _ = measure(study(case["intensity"], case["seed"], rigid=rigid), case["policy"])
    return {**case, **row}


def table(rival: str, runs: Sequence[Row]) -> list[Row]:
    """Reduction of the mean elapsed, running and waiting time by DRAGON, in per cent."""
    rows: list[Row] = []
    for (intensity,), part in groups(runs, "intensity").items():
        own = by_policy(part)
        both = list(zip(own[rival], own[DRAGON], strict=True))
        ended = [pair for pair in both if all(math.isfinite(row["elapsed"]) for row in pair)]
        row: Row = {"intensity": intensity, "gap": gap(float(str(intensity)))}
        row |= {"seeds": len(both), "deadlocked": len(both) - len(ended)}
        for name in PARTS:
            kept = [(base[name], best[name]) for base, best in ended if base[name] > 0]
            row |= interval([100 * (1 - best / base) for base, best in kept], name)
        row["better"] = sum(best["elapsed"] < base["elapsed"] for base, best in ended)
        rows.append(row)
    return rows


def draw(title: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """A line for each part, with its intervals."""
    ax = axes(ax)
    for k, name in enumerate(PARTS):
        part = [row for row in rows if row[name] is not None]
        ax.errorbar(
            [row["intensity"] for row in part],
            [row[name] for row in part],
            half_widths(part, name),
            linestyle=LINES[k],
            marker=MARKERS[k],
            color=ink(),
            capsize=2,
            label=f"{name} time",
        )
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set_xlabel("workload intensity")
    ax.set_ylabel("reduction (%)")
    ax.set_title(title)
    legend_below(ax, 3)
    return ax


SHOWN = {
    "intensity": "intensity",
    "gap": "gap (s)",
    "elapsed": "elapsed (%)",
    "running": "running (%)",
    "waiting": "waiting (%)",
    "better": "better",
    "seeds": "seeds",
    "deadlocked": "deadlocked",
}


def _figure(number: int, rival: str, words: str) -> DirectFigure:
    title = f"DRAGON, Fig. {number}: time saved over {words}"
    panel: Callable[..., Axes] = partial(draw, title)
    own = partial(table, rival)
    return DirectFigure(f"dragon-{number}", title, partial(cases, rival), run, own, SHOWN, (panel,))


FIGURES = (
    _figure(9, LOCALITY, "the locality-aware scheduler"),
    _figure(10, DEFAULT, "the default scheduler"),
)
