"""The servers over time: demand, use and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from experiments.plotting import canvas
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, PerGroup, TaskGroup
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule, committed
from oasis.online.prices import Prices
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from experiments.evaluation.description import Description


@dataclass(frozen=True, slots=True)
class Group:
    """Capacity and use of one server group under a set of schedules."""

    title: str
    names: tuple[str, ...]
    used: FloatArray  # (T, S, R), raw units
    capacity: FloatArray  # (S, R), raw units
    resources: tuple[str, ...]

    def index(self, resource: str) -> int:
        """Return the position of `resource`; raise `InputError` if the group has none of it."""
        resources = [name for r, name in enumerate(self.resources) if self.capacity[:, r].any()]
        if resource not in resources:
            raise InputError("resource", f"expected one of {', '.join(resources)}", resource)
        return self.resources.index(resource)

    def busiest(self) -> str:
        """Return the resource whose largest share is in use, over all servers and slots."""
        supply = self.capacity.sum(axis=0)
        use = self.used.sum(axis=(0, 1))
        shares = np.divide(use, supply, out=np.full(supply.shape, -1.0), where=supply > 0)
        return self.resources[int(shares.argmax())]


def group_of(instance: Instance, schedules: Mapping[str, Schedule], group: str) -> Group:
    """Compute capacity and use of the group "worker" or "ps" under `schedules`."""
    tasks, cluster = TaskGroup(group), instance.cluster
    names = tasks.ids(cluster)
    if not names:
        raise InputError("group", "expected one with servers", group)
    used = dict(zip(GROUPS, committed(instance, schedules), strict=True))[tasks]
    return Group(tasks.hosts, names, used, tasks.capacity(cluster), cluster.resources)


MOST = 4  # curves


def plot_load(description: Description, *, ax: Axes | None = None) -> Axes:
    """Draw the demand for the scarcest resources in each slot, in percent of the capacity.

    Parameters
    ----------
    description : Description
        What `experiments.evaluation.description.describe_instance` found.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With one step curve a resource, and a line at 100 %.

    Examples
    --------
    >>> import oasis
    >>> from experiments.evaluation.description import describe_instance
    >>> plot_load(describe_instance(oasis.generate("testbed", jobs=4, seed=1))).get_xlabel()
    'time (slots)'
    """
    ax = canvas.axes(ax, 8.0, 4.2)
    horizon = description.instance.horizon
    edges = np.arange(horizon + 1) - 0.5
    loads = [load for load in description.loads if load.capacity > 0][:MOST]
    for k, load in enumerate(loads):
        name = f"{canvas.as_written(load.resource)} of {load.group.tasks}"
        look: dict[str, Any] = {"linestyle": canvas.line(k), "color": canvas.colour(k)}
        wanted = 100.0 * load.wanted / load.capacity
        ax.stairs(wanted, edges, baseline=None, linewidth=1.6, label=name, **look)
    ax.axhline(100.0, color="0.4", linewidth=0.8, label="all there is")
    canvas.slot_axis(ax, horizon)
    ax.set_ylim(bottom=0.0)
    title = f"Demand of {len(description.instance.jobs)} jobs, if all ran from their arrival on"
    ax.set(ylabel="wanted (% of what there is)", title=title)
    canvas.legend_below(ax, 3)
    return ax


def plot_utilisation(
    instance: Instance,
    schedules: Mapping[str, Schedule],
    *,
    group: str = "worker",
    resource: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of the share in use over time and servers.

    Parameters
    ----------
    instance : Instance
        The problem.
    schedules : mapping of str to Schedule
        By job id: ``run.schedules`` of a run, or those of `offline.solve`.
    group : {"worker", "ps"}
        Group of the servers.
    resource : str, optional
        Name of the resource; default: on each server and slot the fullest one.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture: white where nothing is in use.

    Raises
    ------
    ValueError
        If the group does not exist, or has no server or none of the resource.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_utilisation(instance, run.schedules, resource="cpu").get_ylabel()
    'server'
    """
    ax = canvas.axes(ax)
    servers = group_of(instance, schedules, group)
    shares = servers.used / np.where(servers.capacity > 0, servers.capacity, np.nan)
    if resource is None:
        subject = "fullest resource"
        shares = np.fmax.reduce(shares, axis=2)  # NaN of a server with nothing at all
    else:
        subject = canvas.as_written(resource)
        shares = shares[:, :, servers.index(resource)]
    canvas.heat_map(ax, 100.0 * shares, servers.names, Normalize(0.0, 100.0), "in use (%)")
    ax.set_title(f"Utilisation of {servers.title}: {subject}")
    return ax


def plot_prices(
    instance: Instance,
    run: Run,
    *,
    group: str = "worker",
    resource: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of the prices (22) at the end of a run, over time and servers; logarithmic.

    Parameters
    ----------
    instance : Instance
        The problem.
    run : Run
        Run of a policy that prices resources.
    group : {"worker", "ps"}
        Group of the servers.
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
        raise InputError("", f"policy {run.policy} has no prices")
    ax = canvas.axes(ax)
    servers = group_of(instance, run.schedules, group)
    resource = resource or servers.busiest()
    r = servers.index(resource)
    bounds: PerGroup[Prices] = run.bounds
    price = TaskGroup(group).of(bounds)
    values = price.at(servers.used, np.broadcast_to(servers.capacity, servers.used.shape))[:, :, r]
    values[:, servers.capacity[:, r] == 0] = np.nan
    values[values <= 0.0] = np.nan  # no logarithm: underflow, or a resource that is free
    numbers = values[~np.isnan(values)]
    low, high = (numbers.min(), numbers.max()) if numbers.size else (1.0, 1.0)
    # A logarithmic scale needs two ends, also where all prices are equal.
    norm = LogNorm(low, high if high > low else 10.0 * low)
    canvas.heat_map(ax, values, servers.names, norm, f"utility per {canvas.as_written(resource)}")
    if not numbers.size:
        ax.text(0.5, 0.5, "no prices", transform=ax.transAxes, ha="center", backgroundcolor="w")
    ax.set_title(f"Prices on {servers.title}: {canvas.as_written(resource)}")
    return ax
