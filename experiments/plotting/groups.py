"""The two server groups as arrays: what is used, what there is, what it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.usage import committed

TITLES = {"worker": "worker servers", "ps": "parameter-server hosts"}


@dataclass(frozen=True, slots=True)
class Group:
    """One server group under a set of schedules.

    Parameters
    ----------
    title : str
        What its servers are.
    names : tuple of str
        Their ids.
    used : (T, S, R) float array
        Committed amounts, raw units.
    capacity : (S, R) float array
        c^r of each server, raw units.
    resources : tuple of str
        Names of the R resources.
    """

    title: str
    names: tuple[str, ...]
    used: FloatArray
    capacity: FloatArray
    resources: tuple[str, ...]

    def index(self, resource: str) -> int:
        """Position of `resource`, which the group must have.

        Raises
        ------
        ValueError
            If no server of the group has any.
        """
        held = [name for r, name in enumerate(self.resources) if self.capacity[:, r].any()]
        if resource not in held:
            raise ValueError(f"resource: expected one of {', '.join(held)}, got {resource!r}")
        return self.resources.index(resource)

    def shares(self) -> FloatArray:
        """Used fraction of the capacity, shape (T, S, R); nan where there is no capacity."""
        capacity = np.broadcast_to(self.capacity, self.used.shape)
        nothing = np.full(self.used.shape, np.nan)
        shares: FloatArray = np.divide(self.used, capacity, out=nothing, where=capacity > 0)
        return shares

    def busiest(self) -> str:
        """The resource of which the largest share is used over all servers and slots."""
        supply = self.capacity.sum(axis=0)
        taken = self.used.sum(axis=(0, 1))
        shares = np.divide(taken, supply, out=np.full(supply.shape, -1.0), where=supply > 0)
        return self.resources[int(shares.argmax())]


def group_of(instance: Instance, schedules: Mapping[str, Schedule], group: str) -> Group:
    """The group "worker" or "ps" of `instance` under `schedules`.

    Raises
    ------
    ValueError
        If there is no such group.
    """
    if group not in TITLES:
        raise ValueError(f"group: expected one of {', '.join(TITLES)}, got {group!r}")
    cluster = instance.cluster
    worker, ps = committed(instance, schedules)
    if group == "worker":
        names, used, capacity = cluster.worker_ids, worker, cluster.worker_capacity
    else:
        names, used, capacity = cluster.ps_ids, ps, cluster.ps_capacity
    return Group(TITLES[group], names, used, capacity, cluster.resources)
