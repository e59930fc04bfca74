"""Servers, and the cluster they form: H for workers, K for parameter servers, R resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from oasis.model.errors import InstanceError, describe, located_at
from oasis.model.forms import LABELS, NO_LABELS, Requirement
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.model.records import AMOUNTS, Amount, ListOf, Record, RecordOf, Text, Whole, check, entry
from oasis.model.resources import as_array, check_known
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised, Unchanging
from oasis.model.validation import LARGEST_SIZE, check_unique

BoolArray = npt.NDArray[np.bool_]
AnyArray = TypeVar("AnyArray", FloatArray, BoolArray)
COUNT, COUNT_MEANING = Whole(1, LARGEST_SIZE), "Number of identical servers, named ID#0, ID#1, ..."


@dataclass(frozen=True, slots=True)
class Server(Record):
    """One machine, or several identical ones.

    Parameters
    ----------
    id : str
        Unique in the cluster; the machines of a group are ``id#0``, ``id#1``, ...
    capacity : ResourceVector or mapping
        What one machine has of each resource, in the unit that its name states (c^r).
    count : int
        Number of machines.
    labels : mapping of str to str
        What kind they are and where they stand, such as ``{"gpu": "a100", "zone": "b"}``; jobs may
        ask for some (`Job.requires`).

    Examples
    --------
    >>> import oasis
    >>> server = oasis.Server("w", {"gpu": 4, "cpu": 32}, count=2)
    >>> server.ids
    ('w#0', 'w#1')
    >>> server.capacity["gpu"]
    4.0
    """

    id: str = entry(Text(), "Name; unique among all servers.")
    capacity: Mapping[str, float] = entry(AMOUNTS, "What one server has.")
    count: int = entry(COUNT, COUNT_MEANING, 1)
    labels: Mapping[str, str] = entry(
        LABELS, "Kind and place, such as gpu: a100; jobs may require some.", NO_LABELS
    )

    @property
    def ids(self) -> tuple[str, ...]:
        """Identifiers of the machines, ``w0#0``, ``w0#1``, ... for a group."""
        return (self.id,) if self.count == 1 else tuple(f"{self.id}#{k}" for k in range(self.count))


_SERVER = RecordOf(Server, named="server")


@dataclass(frozen=True, slots=True, repr=False)
class Cluster(Summarised, Unchanging):
    """The machines for workers, the machines for parameter servers, and the length of a slot.

    Parameters
    ----------
    resources : tuple of str
        Names of the R resource types.
    worker_servers, ps_servers : tuple of Server
        H machines that host workers and K machines that host parameter servers; K may be 0, for
        jobs that need none (`Job.needs_ps`).
    slot_seconds : float
        Length of one slot; bandwidth times this is what one slot can transfer.

    Attributes
    ----------
    worker_capacity, ps_capacity : ndarray, shapes (H, R) and (K, R)
        What each machine has (c_h^r and c_k^r): one row per machine of every group, read-only.
    worker_ids, ps_ids : tuple of str
        Identifiers of the H and K machines.

    Examples
    --------
    >>> import oasis
    >>> cluster = oasis.Cluster(
    ...     resources=("gpu", "cpu"),
    ...     worker_servers=(oasis.Server("w", {"gpu": 4, "cpu": 32}, count=2),),
    ...     ps_servers=(oasis.Server("p", {"cpu": 16}),),
    ...     slot_seconds=3600.0,
    ... )
    >>> cluster.worker_ids, cluster.ps_ids
    (('w#0', 'w#1'), ('p',))
    >>> cluster.worker_capacity
    array([[ 4., 32.],
           [ 4., 32.]])
    """

    resources: tuple[str, ...] = entry(
        ListOf(Text(), "expected at least one resource", unique=True),
        "Resource types; bandwidth_gbps is the one that the model itself uses.",
    )
    worker_servers: tuple[Server, ...] = entry(
        ListOf(_SERVER, "expected at least one server"), "Servers for workers."
    )
    ps_servers: tuple[Server, ...] = entry(
        ListOf(_SERVER),
        "Servers for parameter servers; none are needed if no worker reserves bandwidth.",
        absent=[],
    )
    slot_seconds: float = entry(Amount(above=True), "Length of a slot in seconds.")
    worker_capacity: FloatArray = field(init=False, repr=False, compare=False)
    ps_capacity: FloatArray = field(init=False, repr=False, compare=False)
    worker_ids: tuple[str, ...] = field(init=False, repr=False, compare=False)
    ps_ids: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _admitted: dict[tuple[TaskGroup, Requirement], BoolArray] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        check(self)
        check_unique(self.resources, "resources", "resource")
        seen: set[str] = set()
        for group in GROUPS:
            servers = group.servers(self)
            for k, server in enumerate(servers):
                with located_at(f"{group}_servers[{k}]"):
                    with located_at("capacity"):
                        check_known(server.capacity, self.resources)
                    # The name of a group counts too: a machine w beside w#0 would be confusing.
                    names = {server.id, *server.ids}
                    if seen & names:
                        raise InstanceError("id", f"duplicate server id {server.id!r}")
                    seen |= names
            rows = [as_array(server.capacity, self.resources) for server in servers]
            each = np.array(rows, dtype=np.float64).reshape(-1, len(self.resources))
            object.__setattr__(self, f"{group}_capacity", _by_machine(each, servers))
            ids = tuple(name for server in servers for name in server.ids)
            object.__setattr__(self, f"{group}_ids", ids)

    def summary(self) -> tuple[str, Facts]:
        """Servers of each group, resources and the length of a slot."""
        servers = f"{len(self.worker_ids)} for workers, {len(self.ps_ids)} for ps"
        slot = f"{self.slot_seconds:g} s"
        names = ", ".join(self.resources)
        return "Cluster", [("servers", servers), ("resources", names), ("slots of", slot)]

    def check(self, job: Job) -> None:
        """Raise `InstanceError` if `job` names an unknown resource or can never end its work."""
        for path, form in job.located_forms():
            with located_at(path):
                for group in GROUPS:
                    with located_at(group):
                        check_known(group.of(form), self.resources)
                form.work(self.slot_seconds)  # raises InstanceError if that is too much to count

    def admitted(self, job: Job, group: TaskGroup) -> BoolArray | None:
        """Return a mask of the machines that admit the tasks of a job of one form; None: all do.

        Returns
        -------
        (H,) or (K,) bool array, or None

        Examples
        --------
        >>> import oasis
        >>> from dataclasses import replace
        >>> instance = oasis.generate("testbed", jobs=1, seed=1)
        >>> job = replace(instance.jobs[0], requires={"gpu": ["h100"]})
        >>> instance.cluster.admitted(job, TaskGroup.WORKER).any()
        np.False_
        """
        required = group.required(job)
        if not required:
            return None
        # Every search asks, and there are few requirements.
        key = (group, required)
        if key not in self._admitted:
            servers = group.servers(self)
            each = np.array([required.admits(server.labels) for server in servers], dtype=bool)
            self._admitted[key] = _by_machine(each, servers)
        return self._admitted[key]

    def unmet(self, job: Job) -> str | None:
        """Explain why no machine admits a job of one form; None if some machine does.

        Examples
        --------
        >>> import oasis
        >>> from dataclasses import replace
        >>> instance = oasis.generate("testbed", jobs=1, seed=1)
        >>> job = replace(instance.jobs[0], requires={"gpu": ["h100"]})
        >>> instance.cluster.unmet(job)
        'label gpu of the worker servers; its workers require gpu is h100'
        """
        unmet = self.unmet_label(job)
        if unmet is None:
            return None
        group, label = unmet
        return group.unmet(label, group.required(job))

    def unmet_label(self, job: Job) -> tuple[TaskGroup, str] | None:
        """Return the group of a one-form job that no machine admits, and the label; else None."""
        for group in GROUPS:
            required = group.required(job)
            if required and (group is TaskGroup.WORKER or job.needs_ps):
                label = required.unmet_by([server.labels for server in group.servers(self)])
                if label is not None:
                    return group, label
        return None


def _by_machine(values: AnyArray, servers: Sequence[Server]) -> AnyArray:
    """Return the row of each server, repeated for each of its machines, as a read-only array."""
    rows = np.repeat(values, np.array([server.count for server in servers], dtype=int), axis=0)
    rows.flags.writeable = False
    return rows


def expect_cluster(value: object, name: str = "cluster") -> None:
    """Raise `TypeError` unless `value` is a cluster."""
    if not isinstance(value, Cluster):
        is_inside = isinstance(getattr(value, "cluster", None), Cluster)
        hint = "; its cluster is one" if is_inside else ""
        raise TypeError(f"{name}: expected an oasis.Cluster, got {describe(value)}{hint}")
