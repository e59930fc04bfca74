"""The competitive ratio as a point or an interval, beside what the theorems promise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import LogFormatter

from experiments.plotting import canvas
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance

if TYPE_CHECKING:
    from experiments.evaluation.comparison import JobComparison
    from experiments.evaluation.competitive_ratio import CompetitiveRatio
    from offline.column_generation.bound import ConfigurationBound


LARGEST = 1e4  # bounds beyond are named, not drawn
INTERVAL: dict[str, Any] = {"linewidth": 2, "markersize": 10}


def plot_ratio(results: Mapping[str, CompetitiveRatio], *, ax: Axes | None = None) -> Axes:
    """Draw a row for each result, logarithmic: ratio, 2 alpha and the corrected ratio bound.

    Parameters
    ----------
    results : mapping of str to CompetitiveRatio
        Ratios by name, such as the instance's.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture. A proven ratio is a filled dot, an interval a bar with both ends; what
        cannot be drawn, or lies beyond 10,000, is said in words at the right end.

    Examples
    --------
    >>> import oasis
    >>> from experiments import competitive_ratio
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> plot_ratio({"three jobs": result}).get_xscale()
    'log'
    """
    ax = canvas.axes(ax, 7.4, 1.6 + 0.4 * len(results))
    all_results = list(results.values())
    for row, result in enumerate(all_results):
        if not result.proven and result.lower is not None and result.upper is not None:
            ends = [result.lower, result.upper]
            ax.plot(ends, [row, row], "-|", color=canvas.ink(), **INTERVAL)
        _annotate(ax, row, result)
    if not all(result.proven for result in all_results):
        ax.plot([], [], "-|", color=canvas.ink(), **INTERVAL, label="ratio lies within")
    marks = {
        ("o", "ratio, proven"): [one.ratio for one in all_results],
        ("^", "2 alpha (Theorem 4 as printed)"): [one.bound_2alpha for one in all_results],
        ("s", "corrected ratio bound"): [one.corrected_ratio_bound for one in all_results],
    }
    for (marker, name), bounds in marks.items():
        values = np.array(bounds, dtype=float)
        face = canvas.ink() if marker == "o" else canvas.paper()
        shown = ~np.isnan(values) & ((marker != "s") | (values <= LARGEST))
        if shown.any():
            style: dict[str, Any] = {"color": canvas.ink(), "markerfacecolor": face}
            ax.plot(values[shown], np.flatnonzero(shown), marker, label=name, **style)
    ax.axvline(1.0, color="0.7", linewidth=0.8)
    ax.set_xscale("log")
    # A ratio is at least 1, and the mark of a 1 needs room.
    ax.set_xlim(left=0.9)
    ax.xaxis.set_major_formatter(LogFormatter())
    canvas.name_rows(ax, [canvas.shorten(name) for name in results])
    across = "offline optimum / utility of OASiS (no unit)"
    canvas.label(ax, across, "instance", "Competitive ratio and its bounds", 4)
    return ax


def _annotate(ax: Axes, row: int, result: CompetitiveRatio) -> None:
    """Write the ratio above its mark, and at the right end what cannot be drawn."""
    above: dict[str, Any] = {"xytext": (0, 7), "textcoords": "offset points"}
    above["fontsize"] = canvas.SMALL
    right: dict[str, Any] = above | {"xytext": (-6, -6), "va": "top", "ha": "right"}
    bound = result.corrected_ratio_bound
    if result.lower is None or result.upper is None:
        text = "undefined: OASiS earned nothing"
    else:
        bounds = (
            f"{result.lower:.4g}" if result.proven else f"{result.lower:.4g} to {result.upper:.4g}"
        )
        ax.annotate(bounds, (result.lower, row), **above)
        if bound is not None and bound <= LARGEST:
            return
        text = "no finite corrected ratio bound"
        if bound is not None:
            text = f"corrected ratio bound about $10^{{{math.log10(bound):.0f}}}$ \u2192"
    ax.annotate(text, (1.0, row), xycoords=("axes fraction", "data"), **right)


MOST_JOBS = 12
SAME = 1e-6  # of the largest difference; what is below that is rounding
TAKEN = {
    "offline": "only the optimum takes it",
    "online": "only {who} takes it",
    "both": "both, at other times",
}


def difference(row: JobComparison) -> float:
    """Utility of a job in the offline schedule minus its utility online."""
    earned = [0.0 if side is None else side.utility for side in (row.offline, row.online)]
    return earned[0] - earned[1]


def plot_differences(
    rows: Sequence[JobComparison], *, who: str = "OASiS", ax: Axes | None = None
) -> Axes:
    """Draw bars of the jobs whose utilities differ most between optimum and online run."""
    least = SAME * max((abs(difference(row)) for row in rows), default=0.0)
    differing = [row for row in rows if abs(difference(row)) > least]
    differing.sort(key=lambda row: -abs(difference(row)))
    shown, remaining = differing[:MOST_JOBS], differing[MOST_JOBS:]
    ax = canvas.axes(ax, 6.4, 1.4 + 0.28 * max(3, len(shown)))
    names = [canvas.shorten(row.job_id) for row in shown]
    values = [difference(row) for row in shown]
    drawn: set[str] = set()
    for place, (row, value) in enumerate(zip(shown, values, strict=True)):
        k = list(TAKEN).index(row.taken_by)
        text = TAKEN[row.taken_by].format(who=canvas.as_written(who))
        ax.barh(place, value, 0.75, label=None if text in drawn else text, **canvas.bar_style(k))
        drawn.add(text)
    # One bar for all others, so that the bars still add up to the whole difference.
    if remaining:
        values.append(math.fsum(difference(row) for row in remaining))
        names.append(f"{len(remaining):,} others")
        style = canvas.bar_style(len(TAKEN))
        ax.barh(len(shown), values[-1], 0.75, label="all others together", **style)
    for place, value in enumerate(values):
        ax.annotate(f" {value:+.4g} ", (max(value, 0.0), place), va="center", fontsize=canvas.SMALL)
    ax.axvline(0.0, color=canvas.ink(), linewidth=0.8)
    canvas.name_rows(ax, names, fontsize=canvas.SMALL)
    ax.margins(x=0.2)
    if not values:
        ax.text(0.5, 0.5, "none: every job earns the same", transform=ax.transAxes, ha="center")
    across = f"utility in the best schedule, less that of {canvas.as_written(who)}"
    canvas.label(ax, across, "job", "Jobs that make the difference", 2)
    return ax


def plot_rents(
    instance: Instance,
    bound: ConfigurationBound,
    *,
    group: str = "worker",
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of price times capacity of each resource over time, at a bound's prices.

    Rents are utility, so they compare across resources and groups, which have one scale; all of
    them and the jobs' payoffs add up to the bound.

    Parameters
    ----------
    instance : Instance
        The problem.
    bound : ConfigurationBound
        Of `instance`.
    group : {"worker", "ps"}
        Group of the servers.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture: white where there is enough, hatched where the group has none.

    Raises
    ------
    ValueError
        If the group does not exist.
    """
    cluster = instance.cluster
    prices = zip(GROUPS, (bound.worker_prices, bound.ps_prices), strict=True)
    rents = {group: (price * group.capacity(cluster)).sum(axis=1) for group, price in prices}
    shown_group = TaskGroup(group)
    highest = max(float(values.max()) for values in rents.values())
    shown = np.where(shown_group.capacity(cluster).any(axis=0), rents[shown_group], np.nan)
    ax = canvas.axes(ax)
    norm = Normalize(0.0, highest if highest > 0 else 1.0)
    canvas.heat_map(ax, shown, cluster.resources, norm, "utility per slot")
    ax.set(ylabel="resource", title=f"Rents of {shown_group.hosts}")
    return ax
