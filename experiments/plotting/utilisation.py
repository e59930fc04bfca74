"""How full each server is in each slot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from experiments.plotting.canvas import as_written, axes, heat_map
from experiments.plotting.groups import group_of
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule


def plot_utilisation(
    instance: Instance,
    schedules: Mapping[str, Schedule],
    *,
    group: str = "worker",
    resource: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Heat map of the share in use over time and servers.

    Parameters
    ----------
    instance : Instance
        The problem.
    schedules : mapping of str to Schedule
        By job id: ``run.schedules`` of a run, or those of `offline.solve`.
    group : {"worker", "ps"}
        Which servers.
    resource : str, optional
        Of which resource; left out, of the resource that is fullest on each server and slot.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture: white where nothing is in use.

    Raises
    ------
    ValueError
        If the group does not exist or has none of the resource.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_utilisation(instance, run.schedules, resource="cpu").get_ylabel()
    'server'
    """
    ax = axes(ax)
    servers = group_of(instance, schedules, group)
    shares = servers.shares()
    if resource is None:
        what = "fullest resource"
        shares = np.where(np.isnan(shares), -1.0, shares).max(axis=2)
        shares[shares < 0] = np.nan  # a server with nothing at all
    else:
        what = as_written(resource)
        shares = shares[:, :, servers.index(resource)]
    heat_map(ax, 100.0 * shares, servers.names, Normalize(0.0, 100.0), "in use (%)")
    ax.set_title(f"Utilisation of {servers.title}: {what}")
    return ax
