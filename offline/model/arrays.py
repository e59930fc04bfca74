"""Demands and capacities of an instance as arrays, and what fits on a server: read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oasis.model import groups, rounding
from oasis.model.cluster import Cluster
from oasis.model.instance import Instance, Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray

# By name: a group is part of what one process tells another.
GROUPS: tuple[str, ...] = tuple(map(str, groups.GROUPS))


@dataclass(frozen=True, slots=True, eq=False)
class GroupArrays:
    """One group of servers, and what jobs ask of them.

    Parameters
    ----------
    capacity : (S, R) float array
        Of each server: c_h^r or c_k^r.
    demand : (I, R) float array
        Of one unit of each job: w_i^r or s_i^r.
    """

    capacity: FloatArray
    demand: FloatArray

    def units(self, job: int, most: int) -> IntArray:
        """Units of a job that each empty server holds, at most `most`; shape (S,)."""
        return rounding.units(self.capacity, self.demand[job], most)


def units_that_fit(capacity: FloatArray, demand: FloatArray, most: IntArray) -> IntArray:
    """Units of each item alone that capacities (..., R) hold; shape (I, ...).

    Parameters
    ----------
    capacity : (..., R) float array
        Of each server, or of each server in each slot.
    demand : (I, R) float array
        Of one unit of each item.
    most : (I,) int array
        Most units of each item.
    """
    pairs = zip(demand, most.tolist(), strict=True)
    rows = [rounding.units(capacity, row, limit) for row, limit in pairs]
    return np.array(rows, dtype=np.int64).reshape(len(most), *capacity.shape[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class OfflineArrays:
    """What the parts of a solve read of an instance.

    Parameters
    ----------
    jobs : tuple of Job
        The jobs, in the order of the file.
    cluster : Cluster
        The servers.
    horizon : int
        T, slots.
    slot_seconds : float
        Length of a slot.
    worker, ps : GroupArrays
        Worker servers, and hosts of parameter servers.
    """

    jobs: tuple[Job, ...]
    cluster: Cluster
    horizon: int
    slot_seconds: float
    worker: GroupArrays
    ps: GroupArrays

    @classmethod
    def of(cls, instance: Instance) -> OfflineArrays:
        """The arrays of an instance."""
        cluster, names = instance.cluster, instance.cluster.resources

        def arrays(group: groups.TaskGroup) -> GroupArrays:
            rows = [as_array(group.of(job), names) for job in instance.jobs]
            demand = np.array(rows, dtype=np.float64).reshape(-1, len(names))
            return GroupArrays(group.capacity(cluster), demand)

        worker, ps = map(arrays, groups.GROUPS)
        times = instance.horizon, instance.slot_seconds
        return cls(instance.jobs, cluster, *times, worker, ps)

    def group(self, name: str) -> GroupArrays:
        """The arrays of a group, by its name."""
        return groups.TaskGroup(name).of(self)

    def part(self, jobs: Sequence[int]) -> OfflineArrays:
        """The same with these jobs alone, by index."""
        chosen = np.array(jobs, dtype=np.int64)
        worker, ps = (replace(g, demand=g.demand[chosen]) for g in (self.worker, self.ps))
        return replace(self, jobs=tuple(self.jobs[k] for k in jobs), worker=worker, ps=ps)

    def utility(self, job: int, completion: int) -> float:
        """f_i(t - a_i) of a job that completes in this slot."""
        owner = self.jobs[job]
        return float(owner.utility(completion - owner.arrival))
