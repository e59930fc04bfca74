"""Which jobs make the difference between the optimum and a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from experiments.plotting.canvas import (
    HATCHES,
    SMALL,
    as_written,
    axes,
    fill,
    ink,
    legend_below,
    shorten,
)

if TYPE_CHECKING:
    from experiments.evaluation.job_comparison import JobComparison

MOST_JOBS = 12
SAME = 1e-9  # utility, below which a difference is none
TAKEN = {
    "offline": "only the optimum takes it",
    "online": "only {who} takes it",
    "both": "both, at other times",
}


def difference(row: JobComparison) -> float:
    """What a job earns in the offline schedule, less what it earns online."""
    earned = [0.0 if side is None else side.utility for side in (row.offline, row.online)]
    return earned[0] - earned[1]


def plot_differences(
    rows: Sequence[JobComparison], *, who: str = "OASiS", ax: Axes | None = None
) -> Axes:
    """Bars of the jobs that earn most more, or less, in the optimum than online.

    Parameters
    ----------
    rows : sequence of JobComparison
        Of `experiments.evaluation.job_comparison.compare_jobs`.
    who : str
        Name of the policy.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the twelve largest differences, and one bar for all the others together. All bars add
        up to what the best schedule earns more than the policy.

    Examples
    --------
    >>> import oasis
    >>> from experiments import competitive_ratio
    >>> from experiments.evaluation.job_comparison import compare_jobs
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> plot_differences(compare_jobs(instance, result)).get_ylabel()
    'job'
    """
    differing = [row for row in rows if abs(difference(row)) > SAME]
    differing.sort(key=lambda row: -abs(difference(row)))
    shown, rest = differing[:MOST_JOBS], differing[MOST_JOBS:]
    ax = axes(ax, 6.4, 1.4 + 0.28 * max(3, len(shown)))
    names = [shorten(row.job_id) for row in shown]
    values = [difference(row) for row in shown]
    drawn: set[str] = set()
    for place, (row, value) in enumerate(zip(shown, values, strict=True)):
        k = list(TAKEN).index(row.taken_by)
        label = TAKEN[row.taken_by].format(who=as_written(who))
        _bar(ax, place, value, k, None if label in drawn else label)
        drawn.add(label)
    if rest:
        values.append(math.fsum(difference(row) for row in rest))
        names.append(f"{len(rest):,} others")
        _bar(ax, len(shown), values[-1], len(TAKEN), "all others together")
    for place, value in enumerate(values):
        ax.annotate(f" {value:+.4g} ", (max(value, 0.0), place), va="center", fontsize=SMALL)
    ax.axvline(0.0, color=ink(), linewidth=0.8)
    ax.set_yticks(range(len(names)), names, fontsize=SMALL)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.margins(x=0.2)
    ax.set_ylabel("job")
    ax.set_xlabel(f"utility in the best schedule, less that of {as_written(who)}")
    ax.set_title("Jobs that make the difference")
    if not values:
        ax.text(0.5, 0.5, "none: every job earns the same", transform=ax.transAxes, ha="center")
    legend_below(ax, 2)
    return ax


def _bar(ax: Axes, place: int, value: float, k: int, label: str | None) -> None:
    ax.barh(
        place,
        value,
        0.75,
        color=fill(k + 1),
        hatch=HATCHES[k],
        edgecolor=ink(),
        linewidth=0.6,
        label=label,
    )
