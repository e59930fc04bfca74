"""Policies side by side, on an instance, on a trace, or over the cells of a sweep."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.evaluation.comparison import MARKED, OF_FINISHED
from experiments.evaluation.intervals import scale_of
from experiments.evaluation.pairs import pairs_of_sweep
from experiments.evaluation.tables import brief
from experiments.plotting import canvas
from oasis.extras import require
from oasis.model.errors import InputError
from oasis.model.file_kinds import MAGIC

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from experiments.evaluation.comparison import Comparison
    from experiments.evaluation.pairs import Pair


@dataclass(frozen=True, slots=True)
class Measure:
    """What one plot shows: title, unit, and bars (label, figure) of each policy."""

    title: str
    unit: str
    bars: tuple[tuple[str, str], ...]
    is_count: bool = False
    factor: float = 1.0


MEASURES = {
    "utility": Measure("Total utility", "utility", (("utility", "total_utility"),)),
    "jobs": Measure(
        "Jobs", "jobs (count)", (("admitted", "admitted"), ("finished", "finished")), True
    ),
    "completion": Measure(
        "Completion of the jobs that finished",
        "from arrival to end (slots)",
        (("mean", "mean_completion"), ("95th percentile", "p95_completion")),
    ),
}
ELASTIC_MEASURES = MEASURES | {"completion": replace(MEASURES["completion"], unit="seconds")}
TRACE_MEASURES = {
    "completion": replace(
        ELASTIC_MEASURES["completion"],
        bars=tuple(zip(("mean", "median", "95th percentile"), OF_FINISHED, strict=True)),
    ),
    "waiting": Measure("Waiting without GPUs", "seconds", (("mean", "mean_waiting"),)),
    "use": Measure("GPUs in use", "of all GPUs (%)", (("use", "gpu_utilisation"),), factor=100.0),
}


def measures_of(comparison: Comparison) -> Mapping[str, Measure]:
    """Return the measures to draw, by name, for the kind of comparison."""
    if comparison.kind == "replay":
        return TRACE_MEASURES
    return ELASTIC_MEASURES if "format" in comparison.about else MEASURES


def plot_comparison(
    comparison: Comparison, *, measure: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw bars of one measure, one row per policy in the requested order.

    Parameters
    ----------
    comparison : Comparison
        Of `experiments.evaluation.comparison.compare`, of
        `experiments.evaluation.elastic_jobs.compare_elastic`, or of ``oasis replay``.
        Where it is over several seeds, bars are means and have their 95 % intervals.
    measure : str, optional
        On an instance ``utility`` (total), ``jobs`` (admitted and finished) or ``completion``
        (mean and 95th percentile of the completion time of the jobs that finished); on a trace
        ``completion``, ``waiting`` or ``use`` (of the GPUs). Left out, the first of them.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture; a policy without the figure has no bar. Times and use under a policy that
        did not finish all jobs have an asterisk, and the policy's label says how many it left.

    Raises
    ------
    ValueError
        If there is no such measure.

    Examples
    --------
    >>> import oasis
    >>> from baselines import DRF, FIFO
    >>> from experiments.evaluation.comparison import compare
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> found = compare(instance, {"fifo": FIFO, "drf": DRF})
    >>> [label.get_text() for label in plot_comparison(found).get_yticklabels()]
    ['fifo', 'drf']
    """
    measures = measures_of(comparison)
    if measure is not None and measure not in measures:
        raise InputError("measure", f"expected one of {', '.join(measures)}", measure)
    shown = measures[measure or next(iter(measures))]
    rows = comparison.policies
    ax = canvas.axes(ax, 6.4, 1.2 + 0.4 * len(rows))
    unit, factor = _unit(shown, rows.values())
    height = 0.8 / len(shown.bars)
    is_marked = any(figure in MARKED for _, figure in shown.bars)
    counts = {name: count for name, count in comparison.unfinished.items() if count and is_marked}
    for k, bar in enumerate(shown.bars):
        _draw_bars(ax, rows, bar, factor, (k, height), counts)
    canvas.name_rows(ax, _labels(comparison, counts))
    if shown.bars == MEASURES["utility"].bars:
        _draw_optimum(ax, comparison)
    ax.margins(x=0.18)
    # Where every value is 0, an axis still needs a length.
    ax.set_xlim(0.0, max(1.0, ax.get_xlim()[1]))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=shown.is_count))
    ax.set(xlabel=unit, ylabel="policy", title=shown.title)
    # The only bar of its kind needs no legend: the title says what it is.
    if len(ax.get_legend_handles_labels()[0]) > 1:
        canvas.legend_below(ax, 3)
    return ax


def _draw_optimum(ax: Axes, comparison: Comparison) -> None:
    """Mark the optimum by a line if proven, else by a band; or a bound by a line."""
    optimum, bound = comparison.about.get("optimum"), comparison.about.get("bound")
    line: dict[str, Any] = {"color": canvas.ink(), "linewidth": 1.2, "linestyle": "--"}
    if optimum is not None and optimum["proven"]:
        ax.axvline(optimum["objective"], label="optimum", **line)
    elif optimum is not None:
        ends = optimum["objective"], optimum["upper_bound"]
        ax.axvspan(
            *ends, facecolor="0.85", edgecolor=canvas.ink(), hatch="///", label="optimum in here"
        )
    elif bound is not None:
        ax.axvline(bound, label="no policy earns more", **line)


def _labels(comparison: Comparison, counts: Mapping[str, float]) -> list[str]:
    """Return the policies' names; below them, their numbers in `counts` of unfinished jobs."""
    jobs = comparison.about.get("jobs")
    remarks = {name: f"\n* {brief(count)} of {jobs} unfinished" for name, count in counts.items()}
    return [canvas.shorten(name) + remarks.get(name, "") for name in comparison.policies]


def plot_comparisons(comparison: Comparison, places: Sequence[Axes]) -> None:
    """Draw every measure in `places` from left to right; only the first names policies."""
    for ax, measure in zip(places, measures_of(comparison), strict=True):
        plot_comparison(comparison, measure=measure, ax=ax)
        ax.tick_params(labelleft=ax is places[0])
        ax.set_ylabel("")
    counts = {name: count for name, count in comparison.unfinished.items() if count}
    places[0].set_yticks(range(len(comparison.policies)), _labels(comparison, counts))


def _draw_bars(
    ax: Axes,
    rows: Mapping[str, Mapping[str, Any]],
    bar: tuple[str, str],
    factor: float,
    place: tuple[int, float],
    marked: Collection[str],
) -> None:
    """Draw a `bar` (label, figure) of each policy at `place` (number, height), with intervals."""
    (name, figure), (k, height) = bar, place
    values = factor * np.array([row.get(figure) for row in rows.values()], dtype=float)
    errors = factor * np.array([_errors(row, figure) for row in rows.values()]).reshape(-1, 2).T
    drawn = ax.barh(
        np.arange(len(values)) - 0.4 + (k + 0.5) * height,
        np.nan_to_num(values),
        height,
        label=name,
        xerr=None if np.isnan(errors).all() else errors,
        error_kw={"ecolor": canvas.ink(), "capsize": 2.5, "linewidth": 1.2},
        **canvas.bar_style(k),
    )
    texts = [
        "none" if math.isnan(value) else f"{brief(value)}{'*' if policy in marked else ''}"
        for policy, value in zip(rows, values.tolist(), strict=True)
    ]
    ax.bar_label(drawn, texts, padding=3, fontsize=canvas.SMALL)


def _errors(row: Mapping[str, Any], figure: str) -> tuple[float, float]:
    """Return lengths of the error bar below and above the mean; NaN without an interval."""
    interval = row.get("over_seeds", {}).get("figures", {}).get(figure)
    if interval is None or interval["low"] is None:
        return math.nan, math.nan
    mean = interval["mean"]  # of equal values, rounding may put it beside both ends
    return max(0.0, mean - interval["low"]), max(0.0, interval["high"] - mean)


def _unit(measure: Measure, rows: Collection[Mapping[str, Any]]) -> tuple[str, float]:
    """Return the label of the axis, and the factor that converts figures for it."""
    if measure.unit != "seconds":
        return measure.unit, measure.factor
    largest = max((row.get(figure) or 0.0 for row in rows for _, figure in measure.bars), default=0)
    length, name = canvas.time_unit(largest)
    return f"time ({name})", 1.0 / length


Mean = Mapping[str, float | None]
Points = Sequence[tuple[str, Mean]]
MOST_POINTS = 40  # rows that can be told apart
LONGEST_NAME = 48
MANY_TIMES = 10.0  # largest over smallest mean of a ratio, from which the axis is logarithmic


def plot_means(means: Points, figure: str, *, ax: Axes | None = None) -> Axes:
    """Draw a mean, and its interval as a bar, for each point of a grid."""
    shown = means[:MOST_POINTS]
    ax = canvas.axes(ax, 6.4, 1.2 + 0.28 * max(2, len(shown)))
    for row, (_, interval) in enumerate(shown):
        mean, low, high = interval["mean"], interval["low"], interval["high"]
        unfinished = interval.get("unfinished") if figure in OF_FINISHED else None
        if unfinished:
            look: dict[str, Any] = {"va": "center", "fontsize": canvas.SMALL}
            places: Any = (1.0, row), (4, 0), ("axes fraction", "data"), "offset points"
            ax.annotate(f"{brief(unfinished)} unfinished", *places, **look)
        if mean is None or not math.isfinite(mean):
            continue
        if low is not None and high is not None:
            ax.plot([low, high], [row, row], "-|", color=canvas.ink(), linewidth=1.2, markersize=6)
        ax.plot([mean], [row], "o", color=canvas.ink(), markersize=4.5)
    dots = [mean for _, interval in shown if (mean := interval["mean"]) is not None and mean > 0]
    # Ratios multiply, and one large one would press all others against the edge.
    if scale_of(figure) == "ratio" and dots and max(dots) > MANY_TIMES * min(dots):
        ax.set_xscale("log")
    name = figure.replace("_", " ")
    more = f", first {len(shown)} of {len(means):,}" if len(shown) < len(means) else ""
    points = [canvas.shorten(point, LONGEST_NAME) for point, _ in shown]
    canvas.name_rows(ax, points, fontsize=canvas.SMALL)
    ax.grid(axis="y", color="0.9", linewidth=0.6)
    ax.set(ylabel="point of the grid", title=f"{name}: mean and 95 % interval{more}")
    ax.set_xlabel(f"{name} of the jobs that finished" if figure in OF_FINISHED else name)
    return ax


def plot_pairs(pairs: Sequence[Pair], *, ax: Axes | None = None) -> Axes:
    """Draw how much more the first policy of each pair earns, with intervals."""
    points: Points = [
        (
            " ".join(filter(None, (f"{one.first} against {one.second}", one.instance))),
            {
                name: None if value is None else 100 * value
                for name, value in (("mean", one.by), ("low", one.low), ("high", one.high))
            },
        )
        for one in pairs
    ]
    ax = plot_means(points, "more utility", ax=ax)
    ax.axvline(0.0, color="0.7", linewidth=0.8)
    across = "more utility on shared seeds (% of the second policy's)"
    ax.set(xlabel=across, ylabel="pair of policies")
    return ax


def means_page(means: Mapping[str, Points], pairs: Sequence[Pair] = ()) -> Figure:
    """Draw a panel for each figure of a sweep and, if there are pairs, one for them."""
    counts = [len(points) for points in means.values()] + ([len(pairs)] if pairs else [])
    heights = [1.2 + 0.28 * max(2, min(MOST_POINTS, count)) for count in counts] or [1.8]
    page = canvas.new_figure(9.0, sum(heights))
    places = page.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for place, (figure, points) in zip(places, means.items(), strict=False):
        plot_means(points, figure, ax=place)
    if pairs:
        plot_pairs(pairs, ax=places[-1])
    return page


NEEDED = ("policy.name", "seed", "task.name", "status", "error", "version")


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a Parquet file, by its name or first bytes."""
    file = Path(path)
    if file.suffix.lower() == ".parquet":
        return True
    if not file.is_file():
        return False
    with file.open("rb") as begin:
        return begin.read(len(MAGIC)) == MAGIC


def read_sweep(path: str | os.PathLike[str]) -> pa.Table:
    """Read the table of a sweep; raise `InputError` if it is none."""
    require("reports of sweeps", "pandas", "pyarrow")
    import pyarrow as pa  # noqa: PLC0415 (needs an extra)
    from pyarrow import parquet  # noqa: PLC0415

    content = Path(path).read_bytes()
    try:
        table = parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise InputError("", "expected a Parquet file as `oasis sweep` writes it") from None
    for name in NEEDED:
        if name not in table.column_names:
            raise InputError("", f"expected the table of `oasis sweep`, it has no column {name}")
    if not table.num_rows:
        raise InputError("", "expected the table of `oasis sweep`, it has no rows")
    seeds = table["seed"]
    if seeds.null_count or not pa.types.is_integer(seeds.type):
        raise InputError("seed", "expected whole numbers", seeds.to_pylist())
    return table


def means_of(frame: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    """Return the names of figures to show of a sweep, and the table of their means."""
    from experiments.sweep import TASKS, summarise  # noqa: PLC0415
    from experiments.sweep.summary import shown_of  # noqa: PLC0415

    task = TASKS.get(frame["task.name"].iloc[0], TASKS["run"])
    figures = shown_of(frame, task.headline)
    return figures, summarise(frame, figures)


def sweep_page(frame: pd.DataFrame) -> Figure:
    """Draw the means of each figure of a sweep, and the first policy against the others."""
    from experiments.sweep.summary import PROVEN, interval_in, label  # noqa: PLC0415

    figures, means = means_of(frame)
    if not figures:
        raise InputError("", "expected a sweep with total_utility, there is nothing to draw")
    rows = means.to_dict("records")
    # Points of one policy alone do not repeat its name.
    is_one = len({label(row, "policy.") for row in rows}) == 1
    parts = ("instance.",) if is_one and len(rows) > 1 else ("policy.", "instance.")
    names = [label(row, *parts) for row in rows]
    drawn: dict[str, Points] = {
        figure: [(name, interval_in(row, figure)) for name, row in zip(names, rows, strict=True)]
        for figure in figures
        if figure != PROVEN
    }
    return means_page(drawn, pairs_of_sweep(frame))
