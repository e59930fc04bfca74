"""Task groups: the kinds of tasks that jobs have, and where each kind finds what belongs to it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray

if TYPE_CHECKING:
    from oasis.model.forms import InForms, Requirement

T_co = TypeVar("T_co", covariant=True)


class PerGroup(Protocol[T_co]):
    """An object with one attribute per task group, such as a job with its demands."""

    @property
    def worker(self) -> T_co: ...

    @property
    def ps(self) -> T_co: ...


class Placed(Protocol[T_co]):
    """An object with placed `workers` and `ps`, such as a schedule or an allocation."""

    @property
    def workers(self) -> T_co: ...

    @property
    def ps(self) -> T_co: ...


class Hosting(Protocol[T_co]):
    """A cluster: of each group the servers, the ids of their machines, and their capacities."""

    @property
    def worker_servers(self) -> tuple[T_co, ...]: ...

    @property
    def ps_servers(self) -> tuple[T_co, ...]: ...

    @property
    def worker_ids(self) -> tuple[str, ...]: ...

    @property
    def ps_ids(self) -> tuple[str, ...]: ...

    @property
    def worker_capacity(self) -> FloatArray: ...

    @property
    def ps_capacity(self) -> FloatArray: ...


class TaskGroup(StrEnum):
    """A kind of tasks, workers or parameter servers; a job or cluster may lack the latter."""

    WORKER = "worker"
    PS = "ps"

    @classmethod
    def _missing_(cls, value: object) -> TaskGroup:
        raise InputError("group", f"expected one of {', '.join(cls)}", value)

    @property
    def tasks(self) -> str:
        """Name of its tasks in sentences, such as "workers"."""
        return "workers" if self is _WORKER else "parameter servers"

    @property
    def hosts(self) -> str:
        """Name of its machines in sentences, such as "worker servers"."""
        return "worker servers" if self is _WORKER else "parameter-server hosts"

    def of(self, owner: PerGroup[T_co]) -> T_co:
        """Return the attribute of `owner` for this group, such as the demand of a task of a job."""
        return owner.worker if self is _WORKER else owner.ps

    def required(self, job: InForms) -> Requirement:
        """Return the labels that a task of a job of one form requires of its machine."""
        return cast("Requirement", job.requires if self is _WORKER else job.ps_requires)

    def unmet(self, label: str, required: Requirement) -> str:
        """Return the text that no machine has the required values of this label."""
        return f"label {label} of the {self.hosts}; its {self.tasks} require {required}"

    def placed(self, owner: Placed[T_co]) -> T_co:
        """Return the placed tasks of this group: rows of a schedule, part of an allocation."""
        return owner.workers if self is _WORKER else owner.ps

    def servers(self, cluster: Hosting[T_co]) -> tuple[T_co, ...]:
        """Return the servers that host the group; one `Server` may be several machines."""
        return cluster.worker_servers if self is _WORKER else cluster.ps_servers

    def ids(self, cluster: Hosting[Any]) -> tuple[str, ...]:
        """Return the ids of the machines that host the group."""
        return cluster.worker_ids if self is _WORKER else cluster.ps_ids

    def capacity(self, cluster: Hosting[Any]) -> FloatArray:
        """Return the capacities of the machines that host the group, (H, R) or (K, R)."""
        return cluster.worker_capacity if self is _WORKER else cluster.ps_capacity


GROUPS = tuple(TaskGroup)
_WORKER = TaskGroup.WORKER  # a name of the module is looked up faster than a member of an enum
