"""Task groups: the kinds of tasks that jobs have, and where each kind finds what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray, IntArray

if TYPE_CHECKING:
    from oasis.model.cluster import Cluster, Server
    from oasis.model.forms import Requirement
    from oasis.model.job import Job

T_co = TypeVar("T_co", covariant=True)


class PerGroup(Protocol[T_co]):
    """What has one entry for each group, such as the demands of a job or the price bounds."""

    @property
    def worker(self) -> T_co:
        """The entry of the workers."""

    @property
    def ps(self) -> T_co:
        """The entry of the parameter servers."""


class Placed(Protocol[T_co]):
    """What says which tasks run where, such as a schedule or an allocation."""

    @property
    def workers(self) -> T_co:
        """Where the workers are."""

    @property
    def ps(self) -> T_co:
        """Where the parameter servers are."""


class Requiring(Protocol):
    """What says which machines its tasks may run on, such as a job of one form."""

    @property
    def requires(self) -> Mapping[str, Sequence[str]]:
        """Of the workers."""

    @property
    def ps_requires(self) -> Mapping[str, Sequence[str]]:
        """Of the parameter servers."""


class TaskGroup(StrEnum):
    """A kind of tasks. In the model, each has machines of its own.

    A job without parameter servers (`Job.needs_ps`) has no tasks of the second kind, and a cluster
    for such jobs alone need not have machines for them.

    Examples
    --------
    >>> import oasis
    >>> from oasis.model.groups import GROUPS, TaskGroup
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> [(str(group), len(group.ids(instance.cluster))) for group in GROUPS]
    [('worker', 7), ('ps', 2)]
    >>> job = instance.jobs[0]
    >>> TaskGroup.PS.of(job) == job.ps, TaskGroup.PS.needed(job, [1, 7]).tolist()
    (True, [1, 4])
    """

    WORKER = "worker"
    PS = "ps"

    @classmethod
    def _missing_(cls, value: object) -> TaskGroup:
        raise InputError("group", f"expected one of {', '.join(cls)}", value)

    @property
    def tasks(self) -> str:
        """What its tasks are called in sentences."""
        return "workers" if self is _WORKER else "parameter servers"

    @property
    def hosts(self) -> str:
        """What the machines of the group are called in sentences."""
        return "worker servers" if self is _WORKER else "parameter-server hosts"

    def of(self, owner: PerGroup[T_co]) -> T_co:
        """The entry of this group: the demand of one task of a job, the prices of its machines."""
        return owner.worker if self is _WORKER else owner.ps

    def required(self, job: Requiring) -> Requirement:
        """What one task of a job of one form asks of a machine's labels."""
        return cast("Requirement", job.requires if self is _WORKER else job.ps_requires)

    def unmet(self, label: str, required: Requirement) -> str:
        """That no machine has this label as tasks of the group require it."""
        return f"label {label} of the {self.hosts}; its {self.tasks} require {required}"

    def placed(self, owner: Placed[T_co]) -> T_co:
        """Where the tasks of this group are: the rows of a schedule, a part of an allocation."""
        return owner.workers if self is _WORKER else owner.ps

    def servers(self, cluster: Cluster) -> tuple[Server, ...]:
        """The machines that host the group, identical ones together."""
        return cluster.worker_servers if self is _WORKER else cluster.ps_servers

    def ids(self, cluster: Cluster) -> tuple[str, ...]:
        """Names of the machines that host the group."""
        return cluster.worker_ids if self is _WORKER else cluster.ps_ids

    def capacity(self, cluster: Cluster) -> FloatArray:
        """Capacities of the machines that host the group, (H, R) or (K, R)."""
        return cluster.worker_capacity if self is _WORKER else cluster.ps_capacity

    def needed(self, job: Job, workers: npt.ArrayLike) -> IntArray:
        """Tasks of the group that go with each count of workers of a job; (6)."""
        return np.asarray(workers) if self is _WORKER else job.ps_needed(workers)


GROUPS = tuple(TaskGroup)
_WORKER = TaskGroup.WORKER  # a name of the module is looked up faster than a member of an enum
