"""What the jobs of an instance want over time, beside what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plotting.canvas import (
    LINES,
    MOST_COLUMNS,
    as_written,
    axes,
    block_means,
    colour,
    legend_below,
    new_figure,
    slot_axis,
    step_of,
)

if TYPE_CHECKING:
    from experiments.evaluation.description import Description

MOST = 4  # curves
OWNERS = {"worker": "workers", "ps": "parameter servers"}


def plot_load(description: Description, *, ax: Axes | None = None) -> Axes:
    """Demand for the scarcest resources in each slot, in percent of what there is.

    Parameters
    ----------
    description : Description
        What `experiments.evaluation.description.describe_instance` found.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With one step curve a resource, and a line at 100 %. On a long horizon a step is the mean of
        several slots, and the label of the axis says of how many.

    Examples
    --------
    >>> import oasis
    >>> from experiments.evaluation.description import describe_instance
    >>> plot_load(describe_instance(oasis.generate("testbed", jobs=4, seed=1))).get_xlabel()
    'time (slots)'
    """
    ax = axes(ax, 8.0, 4.2)
    horizon = description.instance.horizon
    step = step_of(horizon, MOST_COLUMNS)
    edges = np.append(np.arange(0, horizon, step), horizon) - 0.5
    loads = [load for load in description.loads if load.capacity > 0][:MOST]
    for k, load in enumerate(loads):
        ax.stairs(
            block_means(100.0 * load.wanted / load.capacity, step, 0),
            edges,
            baseline=None,
            linestyle=LINES[k % len(LINES)],
            linewidth=1.6,
            color=colour(k),
            label=f"{as_written(load.resource)} of {OWNERS[load.group]}",
        )
    ax.axhline(100.0, color="0.4", linewidth=0.8, label="all there is")
    slot_axis(ax, horizon, step)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("wanted (% of what there is)")
    ax.set_title(
        f"Demand of {len(description.instance.jobs)} jobs, if all ran from their arrival on"
    )
    legend_below(ax, 3)
    return ax


def load_page(description: Description) -> Figure:
    """The demand on a page of its own: what `oasis describe --plot` draws."""
    figure = new_figure(8.0, 4.2)
    plot_load(description, ax=figure.add_subplot())
    return figure
