"""Pictures of ``oasis whatif``: waiting, the queue and use over time, other loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.evaluation.tables import duration_text
from experiments.evaluation.whatif_result import BOUND, SHARES, WhatIf, called
from experiments.plotting import canvas

# Narrow enough to be read on a telephone, where a page shows it 10 % smaller.
WIDTH = 3.9  # inches
STRIP = 0.52  # inches a policy, in a picture of one row each
TICKS = (1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0, 8640000.0)  # of a log of time
MOST_TICKS = 8  # whose labels do not touch


def pictures(result: WhatIf) -> Iterator[tuple[Figure, str]]:
    """Yield the pictures of a what-if page, each with its caption."""
    points = max(len(row["series"]["waiting"]) for row in result.first.policies.values())
    parts = f"means over {points} equal parts of each run."
    yield (
        waiting_figure(result),
        "How long jobs wait for GPUs: median (dot), the middle half (box), 5 % to 95 % (line), "
        "99 % (tick). Less than a second is drawn as 0.",
    )
    yield over_time_figure(result, "waiting"), f"Jobs that wait, {parts}"
    yield over_time_figure(result, "in_use"), f"GPUs in use, {parts}"
    if len({one.load for one in result.settings}) > 1:
        yield loads_figure(result), "How the mean grows with the load."


def _axes(height: float, **labels: str) -> tuple[Figure, Axes]:
    """Make a figure and its axes; `labels` are those of x and y."""
    figure = canvas.new_figure(WIDTH, height)
    ax = figure.add_subplot()
    ax.set(**{f"{axis}label": text for axis, text in labels.items()})
    ax.tick_params(axis="both", labelsize=canvas.SMALL)
    return figure, ax


def waiting_figure(result: WhatIf) -> Figure:
    """Draw the distribution of waiting, a row for each policy, on a logarithmic axis."""
    rows = result.first.policies
    figure, ax = _axes(1.1 + 0.3 * len(rows), x="waiting for GPUs")
    edge: dict[str, Any] = {"edgecolor": canvas.ink(), "linewidth": 0.6}
    for k, row in enumerate(rows.values()):
        values = (max(value or 0.0, 1.0) for value in row["waiting_at"])
        at = dict(zip(SHARES, values, strict=True))
        ax.plot([at[5], at[95]], [k, k], "-", color=canvas.ink(), linewidth=1.0, zorder=1)
        width = at[75] - at[25]
        ax.barh(k, width, 0.5, left=at[25], color=canvas.fill(1), **edge)
        ax.plot([at[50]], [k], "o", color=canvas.ink(), markersize=4.5, zorder=3)
        ax.plot([at[99]], [k], "|", color=canvas.ink(), markersize=8, zorder=3)
    written = [canvas.as_written(called(name)) for name in rows]
    canvas.name_rows(ax, written, fontsize=canvas.SMALL)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xscale("log")
    ax.set_xlim(0.8, max(ax.get_xlim()[1], 100.0))
    _time_ticks(ax)
    return figure


def _time_ticks(ax: Axes) -> None:
    low, high = ax.get_xlim()
    apart = (high / low) ** (1 / MOST_TICKS)
    ticks: list[float] = []
    for tick in (tick for tick in TICKS if low <= tick <= high):
        ticks += [tick] if not ticks or tick >= ticks[-1] * apart else []
    # A job that waits for less than a second is drawn at one.
    ax.set_xticks(ticks, ["0" if tick <= 1 else duration_text(tick) for tick in ticks])
    ax.set_xticks([], minor=True)


def over_time_figure(result: WhatIf, series: str) -> Figure:
    """Draw the queue (``waiting``) or GPUs ``in_use`` over time, a strip for each policy."""
    first, rows = result.first, result.first.policies
    begin = min(row["series"]["begin"] for row in rows.values())
    length, unit = canvas.time_unit(max(row["series"]["end"] for row in rows.values()) - begin)
    top = max(max(row["series"][series], default=0.0) for row in rows.values())
    top = float(first.gpus) if series == "in_use" and top <= first.gpus else top or 1.0
    figure = canvas.new_figure(WIDTH, 0.7 + STRIP * len(rows))
    strips = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, row) in zip(strips, rows.items(), strict=True):
        one = row["series"]
        edges = (np.linspace(one["begin"], one["end"], len(one[series]) + 1) - begin) / length
        ax.stairs(one[series], edges, fill=True, color=canvas.fill(0), ec=canvas.ink(), lw=0.6)
        ax.set_ylim(0.0, 1.05 * top)
        ax.set_yticks([0.0, _round(top)], ["0", f"{_round(top):,.0f}"])
        ax.tick_params(axis="both", labelsize=canvas.SMALL)
        ax.set_title(canvas.as_written(called(name)), fontsize=canvas.SMALL, loc="left", pad=1.5)
        ax.margins(x=0.0)
        ax.spines[["top", "right"]].set_visible(False)
    strips[-1].xaxis.set_major_locator(MaxNLocator(nbins=6))
    caption = "jobs that wait" if series == "waiting" else "GPUs in use"
    strips[-1].set_xlabel(f"{unit} after the first submission", fontsize=canvas.SMALL)
    figure.supylabel(caption, fontsize=canvas.SMALL)
    return figure


def _round(value: float) -> float:
    """Round down to a number with one digit, at least 1."""
    power = 10.0 ** np.floor(np.log10(max(value, 1.0)))
    return float(max(1.0, np.floor(value / power) * power))


def loads_figure(result: WhatIf) -> Figure:
    """Draw mean time to completion over the load, a line for each policy, and the bound."""
    first, most = result.first, len(result.first.machines)
    settings = [one for one in result.settings if len(one.machines) == most]
    settings.sort(key=lambda one: one.load)
    loads = [one.load for one in settings]
    names = [name for name in first.policies if all(name in one.policies for one in settings)]
    # (settings, policies), NaN where no job finished
    means = np.array(
        [[one.policies[name]["completion"]["mean"] for name in names] for one in settings], float
    )
    length, unit = canvas.time_unit(np.nan_to_num(means).max(initial=0.0))
    figure, ax = _axes(3.6, x="load (times as it is)", y=f"mean from submission\nto end ({unit})")
    for k, name in enumerate(names):
        style: dict[str, Any] = {"linestyle": canvas.line(k), "marker": canvas.marker(k)}
        style |= {"color": canvas.colour(k), "label": canvas.as_written(called(name))}
        ax.plot(loads, means[:, k] / length, markersize=4.5, **style)
    if all(one.bound is not None for one in settings):
        bounds = [(one.bound or 0.0) / length for one in settings]
        ax.fill_between(loads, bounds, color="0.85", label=BOUND)
    ax.set_ylim(bottom=0.0)
    ax.set_xticks(loads)
    canvas.legend_below(ax, 2)
    return figure
