"""Which resources the configuration LP finds scarce, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from experiments.plotting.canvas import axes, heat_map
from experiments.plotting.groups import TITLES
from oasis.model.instance import Instance

if TYPE_CHECKING:
    from offline import ConfigurationBound


def plot_rents(
    instance: Instance,
    bound: ConfigurationBound,
    *,
    group: str = "worker",
    ax: Axes | None = None,
) -> Axes:
    """Heat map of what all of a resource costs at the prices of a bound, over time and resources.

    Rents are utility, so they compare across resources and groups, which have one scale; all of
    them and the jobs' payoffs add up to the bound.

    Parameters
    ----------
    instance : Instance
        The problem.
    bound : ConfigurationBound
        Of `instance`.
    group : {"worker", "ps"}
        Which servers.
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
    rents = {
        "worker": (bound.worker_prices * cluster.worker_capacity).sum(axis=1),
        "ps": (bound.ps_prices * cluster.ps_capacity).sum(axis=1),
    }
    if group not in rents:
        raise ValueError(f"group: expected one of {', '.join(rents)}, got {group!r}")
    highest = max(float(values.max()) for values in rents.values())
    capacity = cluster.worker_capacity if group == "worker" else cluster.ps_capacity
    shown = np.where(capacity.any(axis=0), rents[group], np.nan)
    ax = axes(ax)
    norm = Normalize(0.0, highest if highest > 0 else 1.0)
    heat_map(ax, shown, cluster.resources, norm, "utility per slot")
    ax.set_ylabel("resource")
    ax.set_title(f"Rents of {TITLES[group]}")
    return ax
