"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site


@dataclass(slots=True)
class Plan:
    """Answer of a policy: what changes.

    Parameters
    ----------
    changes : dict of int to Allocation
        By `PolicyJob.index`; `NOTHING` pauses a job, a job that is not named keeps what it holds.
    rejected : dict of int to str
        Jobs that will never run (any more), and why.
    wake_at : float or None
        Call again at this time at the latest, in a slotted workload at the next whole time; each
        answer replaces the timer of the one before.
    """

    changes: dict[int, Allocation] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    wake_at: float | None = None


class Policy(Protocol):
    """A scheduler on the simulator.

    It is called once for each instant at which something happened: jobs finished or arrived, a
    server was lost or returned, its timer went off, or, if `slotted`, a slot began. A policy may
    also have a mapping `report`, plain data on its own run, which then is that of the `Run`.
    """

    name: str
    slotted: bool

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this run from another, as plain data."""
        ...

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`."""
        ...

    def decide(self, view: View) -> Plan:
        """Answer what should run where from now on."""
        ...


class View(Protocol):
    """The past and the present, read-only; a simulation and a real cluster each supply their own.

    Attributes
    ----------
    now : float
        The time.
    arrived, finished, evicted : sequence of PolicyJob
        What happened at this instant; evicted jobs lost a server and hold nothing.
    lost, returned : sequence of int
        Machines that went down or came back at this instant.
    """

    @property
    def now(self) -> float:
        """The time."""
        ...

    @property
    def arrived(self) -> Sequence[PolicyJob]:
        """Jobs that arrived at this instant, in order of arrival."""
        ...

    @property
    def finished(self) -> Sequence[PolicyJob]:
        """Jobs whose work ended at this instant."""
        ...

    @property
    def evicted(self) -> Sequence[PolicyJob]:
        """Jobs that lost a server at this instant and hold nothing."""
        ...

    @property
    def lost(self) -> Sequence[int]:
        """Machines that went down at this instant."""
        ...

    @property
    def returned(self) -> Sequence[int]:
        """Machines that came back at this instant."""
        ...

    def jobs(self) -> Iterator[PolicyJob]:
        """Unfinished jobs in order of arrival."""
        ...

    def free(self) -> list[tuple[int, ...]]:
        """What is left of each machine, by resource, in grid units: a copy to plan on."""
        ...

    def capacity(self) -> list[tuple[int, ...]]:
        """Each machine when idle, in grid units; nothing of those that are down."""
        ...

    def allocation(self, job: PolicyJob) -> Allocation:
        """What `job` holds."""
        ...

    def remaining(self, job: PolicyJob) -> float:
        """Work left."""
        ...

    def attained(self, job: PolicyJob) -> float:
        """Time that `job` held an allocation, in which it worked or was being set up."""
        ...
