"""The competitive ratio as a point or an interval, beside what the theorems promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from experiments.plotting.canvas import SMALL, axes, ink, legend_below, paper, shorten

if TYPE_CHECKING:
    from experiments.evaluation.measure import CompetitiveRatio

Place = tuple[float | None, int]
LARGEST = 1e4  # bounds beyond are named, not drawn
INTERVAL: dict[str, Any] = {"linewidth": 2, "markersize": 10}


def plot_ratio(results: Mapping[str, CompetitiveRatio], *, ax: Axes | None = None) -> Axes:
    """A row for each result: its ratio, 2 alpha and the corrected ratio bound, logarithmic.

    Parameters
    ----------
    results : mapping of str to CompetitiveRatio
        By name, such as the instance's.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture. A proven ratio is a filled dot, an interval a bar with both ends; what
        cannot be drawn, or lies beyond 10,000, is said in words on the right.

    Examples
    --------
    >>> import oasis
    >>> from experiments import competitive_ratio
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> plot_ratio({"three jobs": result}).get_xscale()
    'log'
    """
    ax = axes(ax, 7.4, 1.6 + 0.4 * len(results))
    proven: list[Place] = []
    printed: list[Place] = []
    corrected: list[Place] = []
    for row, result in enumerate(results.values()):
        if result.proven:
            proven.append((result.lower, row))
        elif result.lower is not None and result.upper is not None:
            ax.plot([result.lower, result.upper], [row, row], "-|", color=ink(), **INTERVAL)
        printed.append((result.bound_2alpha, row))
        bound = result.corrected_ratio_bound
        corrected.append((bound if bound is not None and bound <= LARGEST else None, row))
        _annotate(ax, row, result)
    if not all(result.proven for result in results.values()):
        ax.plot([], [], "-|", color=ink(), **INTERVAL, label="ratio lies within")
    _scatter(ax, proven, "o", "ratio, proven")
    _scatter(ax, printed, "^", "2 alpha (Theorem 4 as printed)")
    _scatter(ax, corrected, "s", "corrected ratio bound")
    ax.axvline(1.0, color="0.7", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlim(left=0.9)
    ax.xaxis.set_major_formatter(LogFormatter())
    ax.set_yticks(range(len(results)), [shorten(name) for name in results])
    ax.set_ylim(len(results) - 0.5, -0.5)
    ax.set_ylabel("instance")
    ax.set_xlabel("offline optimum / utility of OASiS (no unit)")
    ax.set_title("Competitive ratio and its bounds")
    legend_below(ax, 4)
    return ax


def _scatter(ax: Axes, places: list[Place], marker: str, label: str) -> None:
    shown = [(x, y) for x, y in places if x is not None]
    if shown:
        x, y = zip(*shown, strict=True)
        face = ink() if marker == "o" else paper()
        ax.plot(x, y, marker, color=ink(), markerfacecolor=face, label=label)


def _annotate(ax: Axes, row: int, result: CompetitiveRatio) -> None:
    """The ratio in figures above its mark; on the right, what is not drawn."""
    above: dict[str, Any] = {"xytext": (0, 7), "textcoords": "offset points", "fontsize": SMALL}
    beside: dict[str, Any] = {
        "xytext": (6, 0),
        "textcoords": "offset points",
        "fontsize": SMALL,
        "va": "center",
    }
    bound = result.corrected_ratio_bound
    if result.lower is None or result.upper is None:
        text = "undefined: OASiS earned nothing"
    else:
        known = (
            f"{result.lower:.4g}" if result.proven else f"{result.lower:.4g} to {result.upper:.4g}"
        )
        ax.annotate(known, (result.lower, row), **above)
        if bound is not None and bound <= LARGEST:
            return
        text = "no finite corrected ratio bound"
        if bound is not None:
            text = f"corrected ratio bound about $10^{{{math.log10(bound):.0f}}}$"
    ax.annotate(text, (1.0, row), xycoords=("axes fraction", "data"), **beside)
