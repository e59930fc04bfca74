"""Policies side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from experiments.plotting.canvas import GREYS, HATCHES, SMALL, axes, legend_below, shorten

if TYPE_CHECKING:
    from experiments.evaluation.comparison import Comparison

Bars = tuple[str, Callable[[Mapping[str, Any]], float | None]]

# What is drawn for each measure: its title, its axis, and one or two bars a policy.
MEASURES: dict[str, tuple[str, str, tuple[Bars, ...]]] = {
    "utility": ("Total utility", "utility", (("utility", lambda f: f["total_utility"]),)),
    "jobs": (
        "Jobs",
        "jobs (count)",
        (("admitted", lambda f: f["admitted"]), ("finished", lambda f: f["finished"])),
    ),
    "completion": (
        "Completion of the jobs that finished",
        "from arrival to end (slots)",
        (
            ("mean", lambda f: f["mean_completion"]),
            ("95th percentile", lambda f: f["p95_completion"]),
        ),
    ),
}


def plot_comparison(
    comparison: Comparison, *, measure: str = "utility", ax: Axes | None = None
) -> Axes:
    """Bars of one measure, a row a policy in the order they were asked for.

    Parameters
    ----------
    comparison : Comparison
        Of `experiments.evaluation.comparison.compare`, so on an instance, or of
        `experiments.evaluation.elastic_comparison.compare_elastic`.
    measure : {"utility", "jobs", "completion"}
        Total utility; jobs admitted and finished; mean and 95th percentile of the completion time
        of the jobs that finished.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture; a policy without the figure has no bar.

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
    if measure not in MEASURES:
        raise ValueError(f"measure: expected one of {', '.join(MEASURES)}, got {measure!r}")
    title, unit, bars = MEASURES[measure]
    if "format" in comparison.about:  # elastic jobs have no slots
        unit = unit.replace("slots", "seconds")
    figures = comparison.policies
    ax = axes(ax, 6.4, 1.2 + 0.4 * len(figures))
    height = 0.8 / len(bars)
    for k, (name, read) in enumerate(bars):
        values = [read(row) for row in figures.values()]
        places = [row - 0.4 + (k + 0.5) * height for row in range(len(values))]
        drawn = ax.barh(
            places,
            [value or 0.0 for value in values],
            height,
            color=GREYS[(k + 1) % len(GREYS)],
            hatch=HATCHES[k],
            edgecolor="black",
            linewidth=0.6,
            label=name,
        )
        texts = ["none" if value is None else f"{value:.4g}" for value in values]
        ax.bar_label(drawn, texts, padding=3, fontsize=SMALL)
    ax.set_yticks(range(len(figures)), [shorten(name) for name in figures])
    ax.set_ylim(len(figures) - 0.5, -0.5)
    ax.margins(x=0.15)
    ax.set_xlim(0.0, max(1.0, ax.get_xlim()[1]))
    ax.set_ylabel("policy")
    ax.set_xlabel(unit)
    ax.set_title(title)
    if len(bars) > 1:
        legend_below(ax, len(bars))
    return ax
