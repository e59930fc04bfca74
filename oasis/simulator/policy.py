"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from oasis.simulator.allocation import Allocation
from oasis.simulator.site import Site
from oasis.simulator.state import State
from oasis.simulator.workload import SimJob


@dataclass(slots=True)
class Plan:
    """Answer of a policy: what changes.

    Parameters
    ----------
    changes : dict of int to Allocation
        By `SimJob.index`; `NOTHING` pauses a job, a job that is not named keeps what it holds.
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


class View:
    """The past and the present, read-only.

    Attributes
    ----------
    now : float
        The time.
    arrived, finished, evicted : list of SimJob
        What happened at this instant; evicted jobs lost a server and hold nothing.
    lost, returned : list of int
        Machines that went down or came back at this instant.
    """

    __slots__ = ("_state", "arrived", "evicted", "finished", "lost", "now", "returned")

    def __init__(self, state: State) -> None:
        self._state = state
        self.now = state.now
        self.arrived: list[SimJob] = []
        self.finished: list[SimJob] = []
        self.evicted: list[SimJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    def jobs(self) -> Iterator[SimJob]:
        """Unfinished jobs in order of arrival."""
        return (progress.job for progress in self._state.jobs.values())

    def free(self) -> list[tuple[int, ...]]:
        """What is left of each machine, by resource, in grid units: a copy to plan on."""
        return self._state.free.copy()

    def capacity(self) -> list[tuple[int, ...]]:
        """Each machine when idle, in grid units; nothing of those that are down."""
        nothing = (0,) * len(self._state.site.resources)
        down = self._state.down
        machines = self._state.site.machines
        return [nothing if k in down else m.capacity for k, m in enumerate(machines)]

    def allocation(self, job: SimJob) -> Allocation:
        """What `job` holds."""
        return self._state.jobs[job.index].allocation

    def remaining(self, job: SimJob) -> float:
        """Work left."""
        return self._state.jobs[job.index].remaining_at(self.now)

    def attained(self, job: SimJob) -> float:
        """Time that `job` held an allocation, in which it worked or was being set up."""
        return self._state.jobs[job.index].held_at(self.now)
