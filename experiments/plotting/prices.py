"""What each server costs in each slot."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from experiments.plotting.canvas import as_written, axes, heat_map
from experiments.plotting.groups import group_of
from oasis.model.instance import Instance
from oasis.simulator.result import Run


def plot_prices(
    instance: Instance,
    run: Run,
    *,
    group: str = "worker",
    resource: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Heat map of the prices (22) at the end of a run, over time and servers; logarithmic.

    Parameters
    ----------
    instance : Instance
        The problem.
    run : Run
        Of a policy that prices resources.
    group : {"worker", "ps"}
        Which servers.
    resource : str, optional
        Of which resource; left out, of the one of which most is used.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture: white at the lowest price. Hatched where the server has
        none of the resource, and where the price is below the smallest number.

    Raises
    ------
    ValueError
        If the policy has no prices, or the group does not exist or has none of the resource.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_prices(instance, run, group="ps").get_ylabel()
    'server'
    """
    if run.bounds is None:
        raise ValueError(f"policy {run.policy} has no prices")
    ax = axes(ax)
    servers = group_of(instance, run.schedules, group)
    resource = resource or servers.busiest()
    r = servers.index(resource)
    price = run.bounds.worker if group == "worker" else run.bounds.ps
    values = price(servers.used, np.broadcast_to(servers.capacity, servers.used.shape))[:, :, r]
    values[:, servers.capacity[:, r] == 0] = np.nan
    values[values <= 0.0] = np.nan  # no logarithm: underflow, or a resource that is free
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if known.size else (1.0, 1.0)
    norm = LogNorm(low, high if high > low else 10.0 * low)
    heat_map(ax, values, servers.names, norm, f"utility per {as_written(resource)}")
    if not known.size:
        ax.text(0.5, 0.5, "no prices", transform=ax.transAxes, ha="center", backgroundcolor="w")
    ax.set_title(f"Prices on {servers.title}: {as_written(resource)}")
    return ax
