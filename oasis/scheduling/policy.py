"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
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

    Examples
    --------
    >>> Plan(changes={0: Allocation(((2, 4),))}, wake_at=60.0).rejected
    {}
    """

    changes: dict[int, Allocation] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    wake_at: float | None = None


class Policy(Protocol):
    """A scheduler, driven by the simulator or by an adapter to a cluster.

    `told_remaining` declares that it needs to be told how much work jobs have left. A simulation
    knows that, a cluster does not; a policy that does not declare it never sees it.

    It is called once for each instant at which something happened: jobs finished or arrived, a
    server was lost or returned, its timer went off, or, if `slotted`, a slot began. A policy may
    also have a mapping `report`, plain data on its own run, which then is that of the `Run`.

    Examples
    --------
    A policy that turns everybody away:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> class Closed:
    ...     name, slotted, told_remaining, parameters = "closed", False, False, {}
    ...     def reset(self, site):
    ...         pass
    ...     def decide(self, view):
    ...         return Plan(rejected={job.index: "we are closed" for job in view.arrived})
    >>> replay(rigid_workload([PlainJob("a", 0.0, 60.0, 4)], 1, 8), Closed()).jobs[0].refusal
    'we are closed'
    """

    name: str
    slotted: bool
    told_remaining: bool

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

    Examples
    --------
    FIFO, telling when it is asked and who waits:

    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> class Telling(FIFO):
    ...     def decide(self, view):
    ...         print(view.now, [job.id for job in view.waiting()], view.free())
    ...         return super().decide(view)
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), Telling())
    0.0 ['a'] [(8,)]
    5.0 ['b'] [(0,)]
    60.0 ['b'] [(8,)]
    90.0 [] [(8,)]
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

    def down(self) -> Set[int]:
        """Machines that are not there now, for a `Room`: they take no task at all."""
        ...

    def allocation(self, job: PolicyJob) -> Allocation:
        """What `job` holds."""
        ...

    def waiting(self) -> Iterator[PolicyJob]:
        """Unfinished jobs that cannot work with what they hold, in order of arrival."""
        ...

    def running(self) -> Iterator[PolicyJob]:
        """Unfinished jobs that hold all they need to work, in order of arrival."""
        ...

    def waiting_since(self, job: PolicyJob) -> float | None:
        """Since when `job` has been waiting, without a break; None if it runs."""
        ...

    def observed(self, job: PolicyJob) -> Sequence[tuple[float, float]] | None:
        """Evaluations of `job` so far, as (time, value) in order of time; None if nobody looks."""
        ...

    def remaining(self, job: PolicyJob) -> float:
        """Work left.

        Raises
        ------
        PolicyError
            If the policy does not declare `told_remaining`.
        """
        ...

    def attained(self, job: PolicyJob) -> float:
        """Time that `job` held an allocation, in which it worked or was being set up."""
        ...
