"""Completion minus target of the policies beside the published medians: Figs. 4 and 9."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
from matplotlib.axes import Axes

from experiments.figures.figure import Row, groups, interval
from experiments.figures.oasis.utility_bars import published_mark
from experiments.plotting.canvas import (
    HATCHES,
    SMALL,
    axes,
    fill,
    ink,
    legend_below,
)

Kinds = Mapping[str, Callable[[float], bool]]  # by name, whether a job of this decay is of the kind
QUANTILES = {"p5": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "p95": 0.95}


def lateness_rows(
    cells: Sequence[Row], kinds: Kinds, published: Callable[[str], tuple[float, float] | None]
) -> list[Row]:
    """A row for each policy and kind of job: quantiles over the jobs of all seeds that finished.

    The interval is that of the mean over seeds of each seed's median.
    """
    rows = []
    for (policy,), part in groups(cells, "policy.name").items():
        for kind, belongs in kinds.items():
            late = [_of_kind(cell, belongs) for cell in part]
            jobs = sum(len(values) for values in late)
            ended = [[value for value in values if not np.isnan(value)] for values in late]
            row: Row = {"policy": policy, "kind": kind, "seeds": len(part), "jobs": jobs}
            everything = np.array(list(chain.from_iterable(ended)))
            row["finished"] = everything.size
            for name, share in QUANTILES.items():
                row[name] = float(np.quantile(everything, share)) if everything.size else None
            medians = [float(np.median(values)) for values in ended if values]
            row |= interval(medians, "seed_median")
            low, high = published(str(policy)) or (None, None)
            rows.append(row | {"published_low": low, "published_high": high})
    return rows


def _of_kind(cell: Row, belongs: Callable[[float], bool]) -> list[float]:
    return [
        float("nan") if late is None else float(late)
        for late, decay in zip(cell["lateness"], cell["decay"], strict=True)
        if decay is not None and belongs(decay)
    ]


def draw_lateness(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Boxes of the finished jobs, whiskers from the 5th to the 95th percentile.

    The thick bar beside a box is the 95 % confidence interval of the median over seeds; a bracket
    or diamond is published.
    """
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    ax = axes(ax, 8.4, 1.9 + 0.42 * len(rows))
    height = 0.8 / len(kinds)
    for row in rows:
        k = kinds.index(row["kind"])
        place = policies.index(row["policy"]) - 0.4 + (k + 0.5) * height
        if row["finished"]:
            _box(ax, row, place, height, k)
        _published(ax, row, place, height)
        share = f"{row['finished']} of {row['jobs']} finished"
        ax.annotate(
            share,
            (1.0, place),
            (6, 0),
            ("axes fraction", "data"),
            "offset points",
            va="center",
            fontsize=SMALL,
        )
    for k, kind in enumerate(kinds):
        ax.bar(np.nan, np.nan, color=fill(k + 1), hatch=HATCHES[k], edgecolor=ink(), label=kind)
    ax.plot([], [], "-", color=ink(), linewidth=3, label="95 % interval of the median by seed")
    if any(row["published_low"] is not None for row in rows):
        ax.plot([], [], label="published median", **published_mark())
    ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(policies)), policies)
    ax.set_ylim(len(policies) - 0.5, -0.5)
    ax.set_ylabel("policy")
    ax.set_xlabel("completion minus target (slots)")
    legend_below(ax, 4)
    return ax


def _box(ax: Axes, row: Row, place: float, height: float, kind: int) -> None:
    statistics = {
        "med": row["median"],
        "q1": row["q1"],
        "q3": row["q3"],
        "whislo": row["p5"],
        "whishi": row["p95"],
        "fliers": [],
    }
    drawn = ax.bxp(
        [statistics],
        positions=[place],
        widths=0.62 * height,
        orientation="horizontal",
        patch_artist=True,
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": ink(), "linewidth": 2},
    )
    for patch in drawn["boxes"]:
        patch.set(facecolor=fill(kind + 1), hatch=HATCHES[kind])
    if row["seed_median_low"] is not None:
        ends = [row["seed_median_low"], row["seed_median_high"]]
        ax.plot(ends, [place + 0.42 * height] * 2, "-", color=ink(), linewidth=3)


def _published(ax: Axes, row: Row, place: float, height: float) -> None:
    low, high = row["published_low"], row["published_high"]
    if low is None:
        return
    ends = [low] if low == high else [low, high]
    ax.plot(ends, [place - 0.42 * height] * len(ends), **published_mark())
