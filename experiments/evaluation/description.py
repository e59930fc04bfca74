"""Demand and capacity of an instance, before any policy runs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray, units
from oasis.model.summary import how_many


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """Demand for one resource in relation to its capacity."""

    group: TaskGroup
    resource: str
    capacity: float  # of all servers of the group together
    mean: float  # demand over the whole horizon divided by capacity
    peak: float  # the same in the first slot with the highest demand
    peak_slot: int
    wanted: FloatArray  # shape (T,), as the demand of `Description`

    @classmethod
    def of(
        cls, group: TaskGroup, resource: str, capacity: float, wanted: FloatArray
    ) -> OfferedLoad:
        """Compute the load from `wanted`, the demanded amount in each slot."""
        slot, amounts = int(wanted.argmax()), (float(wanted.mean()), float(wanted.max()))
        mean, peak = (amount / capacity if capacity else np.inf for amount in amounts)
        return cls(group, resource, capacity, mean, peak, slot, wanted)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `mean` and `peak` are None where the capacity is 0."""
        none = {} if self.capacity > 0 else {"mean": None, "peak": None}
        row = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**row, **none, "wanted": self.wanted.tolist()}


@dataclass(frozen=True, slots=True)
class StandaloneRun:
    """Best possible workers, completion and utility of one job alone on an empty cluster."""

    workers: int  # 0 if it can never run
    ps: int
    completion: int | None  # None if the horizon is too short
    utility: float
    form: int = 0


def run_alone(job: Job, instance: Instance) -> StandaloneRun:
    """Compute the best run of `job` on an empty cluster, over its forms, with most workers."""
    ways = [replace(_run_alone(form, instance), form=k) for k, form in enumerate(job.in_forms)]
    ends = [instance.horizon if one.completion is None else one.completion for one in ways]
    # the most it can earn, the sooner the better, and one that runs before one that cannot
    return max(ways, key=lambda one: (one.utility, -ends[one.form], one.workers > 0))


def _run_alone(job: Job, instance: Instance) -> StandaloneRun:
    """Compute completion and utility of a job of one form alone on an empty cluster."""
    workers, hosts = (_room(job, group, instance.cluster, job.chunks) for group in GROUPS)
    counts = np.arange(min(workers, job.chunks) + 1)
    needed: IntArray = job.ps_needed(counts)
    most = int(counts[needed <= hosts][-1])
    if most not in job.worker_counts:
        return StandaloneRun(0, 0, None, 0.0)
    # The slot of the last work: ceil(W / n) slots, the first one being that of arrival.
    last = job.arrival - (-job.work(instance.slot_seconds) // most) - 1
    if last >= instance.horizon:
        return StandaloneRun(most, int(needed[most]), None, 0.0)
    return StandaloneRun(most, int(needed[most]), last, float(job.utility(last - job.arrival)))


def _room(job: Job, group: TaskGroup, cluster: Cluster, most: int) -> int:
    """Number of tasks that fit on the empty servers which admit them, at most `most` on each."""
    names, servers = cluster.resources, group.servers(cluster)
    rows = [as_array(server.capacity, names) for server in servers]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(names))
    counts: list[int] = units(table, as_array(group.of(job), names), most).tolist()
    required = group.required(job)
    return sum(
        count * server.count
        for count, server in zip(counts, servers, strict=True)
        if not required or required.admits(server.labels)
    )


@dataclass(frozen=True, slots=True)
class Description:
    """Sizes of an instance, and the load that its jobs put on each resource.

    Parameters
    ----------
    instance : Instance
        The instance.
    alone : tuple of StandaloneRun
        Each job on an empty cluster, in the order of the instance.
    demand : mapping of str to ndarray
        By group: shape (T, R), amounts in use in each slot if every job ran from
        its arrival on with as many workers as it could have alone, however full the servers.
    capacity : mapping of str to ndarray
        By group: shape (R,), amounts of all servers together.

    Examples
    --------
    >>> import oasis
    >>> from experiments.evaluation.description import describe_instance
    >>> description = describe_instance(oasis.generate("testbed", jobs=4, seed=1))
    >>> description.can_finish, description.loads[0].resource
    (4, 'cpu')
    """

    instance: Instance
    alone: tuple[StandaloneRun, ...]
    demand: Mapping[TaskGroup, FloatArray]
    capacity: Mapping[TaskGroup, FloatArray]

    @property
    def can_finish(self) -> int:
        """Number of jobs that would each complete within the horizon alone on the cluster."""
        return sum(entry.completion is not None for entry in self.alone)

    @property
    def most_utility(self) -> float:
        """Total utility if every job had the cluster to itself; an upper bound."""
        return sum(entry.utility for entry in self.alone)

    @property
    def loads(self) -> list[OfferedLoad]:
        """Loads of all demanded resources, the scarcest first."""
        loads = [
            OfferedLoad.of(group, resource, float(self.capacity[group][k]), demand)
            for group in GROUPS
            for k, resource in enumerate(self.instance.cluster.resources)
            if (demand := self.demand[group][:, k]).any()
        ]
        # The sort is stable: equal loads stay in the order of groups and resources.
        return sorted(loads, key=lambda load: -load.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; loads have one number per slot."""
        instance, jobs = self.instance, self.instance.jobs
        worth = [job.utility for job in jobs]
        forms = [job.in_form(one.form) for job, one in zip(jobs, self.alone, strict=True)]
        work = [form.work(instance.slot_seconds) for form in forms]
        return {
            "jobs": len(jobs),
            "horizon": instance.horizon,
            "slot_seconds": instance.slot_seconds,
            "resources": list(instance.cluster.resources),
            "servers": {group: len(group.ids(instance.cluster)) for group in GROUPS},
            **self._kinds(),
            "utilities": dict(Counter(str(getattr(u, "kind", type(u).__name__)) for u in worth)),
            "work": {
                "total": sum(work),
                "least": min(work, default=None),
                "median": float(np.median(work)) if work else None,
                "most": max(work, default=None),
            },
            "can_finish": self.can_finish,
            "most_utility": self.most_utility,
            "loads": [load.to_dict() for load in self.loads],
            "remarks": list(remarks(self)),
        }

    def _kinds(self) -> dict[str, Any]:
        """Return entries on labels, forms and requirements; empty for an instance without any."""
        instance, kinds = self.instance, dict[str, Any]()
        labels = Counter[tuple[str, str]]()
        for server in (one for group in GROUPS for one in group.servers(instance.cluster)):
            labels.update(dict.fromkeys(server.labels.items(), server.count))
        for (name, value), count in sorted(labels.items()):
            kinds.setdefault("labels", {}).setdefault(name, {})[value] = count
        forms = Counter(len(job.in_forms) for job in instance.jobs)
        if set(forms) - {1}:
            kinds["forms"] = {str(count): n for count, n in sorted(forms.items())}
        each = (any(one.requires or one.ps_requires for one in j.in_forms) for j in instance.jobs)
        if asking := sum(each):
            kinds["requiring"] = asking
        return kinds


def describe_instance(instance: Instance) -> Description:
    """Describe `instance`; takes time in proportion to jobs times kinds of servers.

    Examples
    --------
    >>> import oasis
    >>> from experiments.evaluation.description import describe_instance
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> describe_instance(instance).demand["worker"].shape == (instance.horizon, 5)
    True
    """
    cluster, horizon = instance.cluster, instance.horizon
    standalone = tuple(run_alone(job, instance) for job in instance.jobs)
    steps = {group: np.zeros((horizon + 1, len(cluster.resources))) for group in GROUPS}
    for submitted, entry in zip(instance.jobs, standalone, strict=True):
        if entry.workers:
            job = submitted.in_form(entry.form)
            work = job.work(instance.slot_seconds)
            end = min(horizon, job.arrival - (-work // entry.workers))
            for group, count in zip(GROUPS, (entry.workers, entry.ps), strict=True):
                amounts = count * as_array(group.of(job), cluster.resources)
                steps[group][job.arrival] += amounts
                steps[group][end] -= amounts
    # Differences that cancel may leave less than 0, and the row after the horizon only takes ends.
    demand = {group: np.maximum(0.0, steps[group].cumsum(axis=0)[:-1]) for group in GROUPS}
    capacity = {group: group.capacity(cluster).sum(axis=0) for group in GROUPS}
    return Description(instance, standalone, demand, capacity)


def remarks(description: Description) -> Iterator[str]:
    """Yield sentences on what makes the instance hard, such as jobs that can never finish."""
    jobs, cluster = description.instance.jobs, description.instance.cluster
    idle = [job for job, one in zip(jobs, description.alone, strict=True) if not one.workers]
    labels = [_unmet(job, cluster) for job in idle]
    gangs = sum(
        label is None and all(form.is_gang for form in job.in_forms)
        for job, label in zip(idle, labels, strict=True)
    )
    for label, count in sorted(Counter(filter(None, labels)).items()):
        never = f"{how_many(count, 'job')} can never run"
        yield f"{never}: no server has the label {label} as it must be"
    says = {
        "can never run: no server holds a worker, or its parameter server": (
            labels.count(None) - gangs
        ),
        "can never run: the cluster does not hold the minimum of workers": gangs,
        "cannot finish within the horizon, even alone on the cluster": (
            len(jobs) - description.can_finish - len(idle)
        ),
    }
    yield from (f"{how_many(count, 'job')} {what}" for what, count in says.items() if count)
    for load in description.loads[:1]:
        if load.peak > 1:
            part = f"{load.resource} of the {load.group.hosts}"
            yield (
                f"{part} is the scarcest: {load.mean:.3g} times what there is over the horizon, "
                f"{load.peak:.3g} times in slot {load.peak_slot}"
            )
        else:
            yield "no resource is ever short: every job could run as soon as it arrives"


def _unmet(job: Job, cluster: Cluster) -> str | None:
    """Return a required label that keeps every form of a job off all servers; None if none does."""
    unmet = [cluster.unmet_label(form) for form in job.in_forms]
    labels = [label for _, label in filter(None, unmet)]
    return labels[-1] if len(labels) == len(unmet) else None
