"""Picture of a quote: the schedule of the job, or the utility that it would need."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from experiments.plotting.canvas import SMALL, as_written, axes, bar_style, label, name_rows
from experiments.plotting.schedule import tasks_by_slot
from oasis.model.decision import Decision
from oasis.model.groups import GROUPS, TaskGroup


def plot_quote(decision: Decision, *, ax: Axes | None = None) -> Axes:
    """Draw workers and parameter servers in each slot, or what a rejected job lacks."""
    ax = axes(ax, 7.0, 3.2)
    if decision.schedule is not None:
        return _draw_schedule(ax, decision)
    return _draw_rejection(ax, decision)


def _draw_schedule(ax: Axes, decision: Decision) -> Axes:
    assert decision.schedule is not None  # by the caller
    placed = [group for group in GROUPS if len(group.placed(decision.schedule))]
    for k, group in enumerate(placed):
        counts = tasks_by_slot(group.placed(decision.schedule))
        slots = np.flatnonzero(counts)
        places = slots - 0.2 + 0.4 * k
        ax.bar(places, counts[slots], 0.4, label=group.tasks, **bar_style(k, k + 1))
    ax.set_xlim(decision.schedule.start - 1.5, decision.schedule.completion + 1.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    title = (
        f"{as_written(decision.job_id)} would be admitted\n"
        f"utility {decision.utility:.4g}, cost {decision.cost:.4g}, payoff {decision.payoff:.4g}"
    )
    label(ax, "time (slots)", "count", title, 2)
    return ax


def _draw_rejection(ax: Axes, decision: Decision) -> Axes:
    rejection = decision.rejection
    title = f"{as_written(decision.job_id)} would be rejected"
    factor = None if rejection is None else rejection.utility_factor
    values = {"as it is": 1.0} if factor is None else {"as it is": 1.0, "would do": factor}
    for k, value in enumerate(values.values()):
        ax.barh(k, value, 0.6, **bar_style(k, k + 1))
        text = f" {value:.4g}" if k == 0 else f" more than {value:.4g}"
        ax.annotate(text, (value, k), va="center", fontsize=SMALL)
    if rejection is None:
        title += "\nthere is no schedule at any price"
    elif factor is None:
        title += "\nit is worth nothing when it could end"
    elif rejection.bottleneck is not None:
        spot = rejection.bottleneck
        place = f"{as_written(spot.resource)} of {TaskGroup(spot.group).hosts}"
        title += f"\n{100 * spot.share:.0f} % of what it would cost is for {place}"
    name_rows(ax, list(values))
    ax.margins(x=0.25)
    ax.set(xlabel="multiple of its own utility", ylabel="worth", title=title)
    return ax
