"""Demands, capacities and counts that fit on a server, as arrays: computed once per instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from oasis.model import groups, rounding
from oasis.model.cluster import Cluster
from oasis.model.instance import Instance, Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule

# By name: a group is part of what one process tells another.
GROUPS: tuple[str, ...] = tuple(map(str, groups.GROUPS))


@dataclass(frozen=True, slots=True, eq=False)
class GroupArrays:
    """One group of servers, and the demands of forms of jobs on them."""

    capacity: FloatArray
    demand: FloatArray
    resources: int

    @classmethod
    def of(cls, cluster: Cluster, group: groups.TaskGroup, forms: Sequence[Job]) -> GroupArrays:
        """Make the arrays; each set of admitting servers becomes a resource without a price."""
        rows = [as_array(group.of(form), cluster.resources) for form in forms]
        demand = np.array(rows, dtype=np.float64).reshape(-1, len(cluster.resources))
        capacity = group.capacity(cluster)
        masks = [cluster.admitted(form, group) for form in forms]
        distinct = {mask.tobytes(): mask for mask in masks if mask is not None}
        # More than all tasks together ask for, so that admission never limits their number.
        enough = 1.0 + sum(float(form.chunks) for form in forms)
        for key, mask in distinct.items():
            asks = [float(one is not None and one.tobytes() == key) for one in masks]
            capacity = np.column_stack([capacity, enough * mask])
            demand = np.column_stack([demand, asks])
        return cls(capacity, demand, len(cluster.resources))

    def units(self, form: int, most: int) -> IntArray:
        """Units of a form that each empty server holds, at most `most`; shape (S,)."""
        return rounding.units(self.capacity, self.demand[form], most)

    @property
    def priced(self) -> FloatArray:
        """Capacities of the resources that have a price, shape (S, R)."""
        return self.capacity[:, : self.resources]

    def priced_demand(self, form: int) -> FloatArray:
        """Demand that one unit of a form has of each resource, shape (R,)."""
        return self.demand[form, : self.resources]

    @property
    def kinds(self) -> IntArray:
        """A number for each server, equal where the same forms are admitted; shape (S,)."""
        labels = self.capacity[:, self.resources :]
        kind: IntArray = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
        return kind


def units_that_fit(capacity: FloatArray, demand: FloatArray, most: IntArray) -> IntArray:
    """Return how many units of each item alone fit capacities (..., R), up to `most`; (I, ...)."""
    pairs = zip(demand, most.tolist(), strict=True)
    rows = [rounding.units(capacity, row, limit) for row, limit in pairs]
    return np.array(rows, dtype=np.int64).reshape(len(most), *capacity.shape[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class OfflineArrays:
    """The data of an instance in arrays, as the solvers read them."""

    jobs: tuple[Job, ...]
    cluster: Cluster
    horizon: int
    slot_seconds: float
    forms: tuple[Job, ...]
    forms_of: tuple[range, ...]
    worker: GroupArrays
    ps: GroupArrays

    @classmethod
    def of(cls, instance: Instance) -> OfflineArrays:
        """The arrays of an instance."""
        jobs, cluster = instance.jobs, instance.cluster
        forms = tuple(form for job in jobs for form in job.in_forms)
        worker, ps = (GroupArrays.of(cluster, group, forms) for group in groups.GROUPS)
        times = instance.horizon, instance.slot_seconds
        return cls(jobs, cluster, *times, forms, _ranges(jobs), worker, ps)

    @property
    def prices(self) -> int:
        """Number of prices: of each resource of each server in each slot."""
        return self.horizon * (self.worker.priced.size + self.ps.priced.size)

    def group(self, name: str) -> GroupArrays:
        """The arrays of a group, by its name."""
        return groups.TaskGroup(name).of(self)

    def form_of(self, job: int, schedule: Schedule) -> int:
        """Return the index, among all forms, of the form in which a job runs."""
        return self.forms_of[job][schedule.form]

    def utility(self, job: int, completion: int) -> float:
        """f_i(t - a_i) of a job that completes in this slot."""
        owner = self.jobs[job]
        return float(owner.utility(completion - owner.arrival))


def _ranges(jobs: Sequence[Job]) -> tuple[range, ...]:
    """The indices of the forms of each job, job after job."""
    ends = [0, *accumulate(len(job.in_forms) for job in jobs)]
    return tuple(range(*pair) for pair in pairwise(ends))
