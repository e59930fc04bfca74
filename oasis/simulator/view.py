"""The view that a policy has of a simulated run."""

from __future__ import annotations

from collections.abc import Iterator, Set

from oasis.model.errors import PolicyError
from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.simulator.state import State


class StateView:
    """A `oasis.scheduling.View` of the state of a simulation.

    Parameters
    ----------
    state : State
        The simulation, now.
    policy : str
        Name of the policy that looks.
    told_remaining : bool
        Whether it is told how much work jobs have left.

    Attributes
    ----------
    now : float
        The time.
    arrived, finished, evicted : list of PolicyJob
        What happened at this instant; evicted jobs lost a server and hold nothing.
    lost, returned : list of int
        Machines that went down or came back at this instant.
    """

    __slots__ = (
        "_policy",
        "_state",
        "_told_remaining",
        "arrived",
        "evicted",
        "finished",
        "lost",
        "now",
        "returned",
    )

    def __init__(self, state: State, policy: str, told_remaining: bool) -> None:
        self._state, self._policy, self._told_remaining = state, policy, told_remaining
        self.now = state.now
        self.arrived: list[PolicyJob] = []
        self.finished: list[PolicyJob] = []
        self.evicted: list[PolicyJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    def jobs(self) -> Iterator[PolicyJob]:
        """Unfinished jobs in order of arrival."""
        return (progress.seen for progress in self._state.jobs.values())

    def free(self) -> list[tuple[int, ...]]:
        """What is left of each machine, by resource, in grid units: a copy to plan on."""
        return self._state.free.copy()

    def capacity(self) -> list[tuple[int, ...]]:
        """Each machine when idle, in grid units; nothing of those that are down."""
        nothing = (0,) * len(self._state.site.resources)
        down = self._state.down
        machines = self._state.site.machines
        return [nothing if k in down else m.capacity for k, m in enumerate(machines)]

    def down(self) -> Set[int]:
        """Machines that are not there now: a copy."""
        return frozenset(self._state.down)

    def allocation(self, job: PolicyJob) -> Allocation:
        """What `job` holds."""
        return self._state.jobs[job.index].allocation

    def waiting(self) -> Iterator[PolicyJob]:
        """Unfinished jobs that cannot work with what they hold, in order of arrival."""
        return (p.seen for p in self._state.jobs.values() if not p.complete)

    def running(self) -> Iterator[PolicyJob]:
        """Unfinished jobs that hold all they need to work, in order of arrival."""
        return (p.seen for p in self._state.jobs.values() if p.complete)

    def waiting_since(self, job: PolicyJob) -> float | None:
        """Since when `job` has been waiting, without a break; None if it runs."""
        return self._state.jobs[job.index].waiting_since

    def observed(self, job: PolicyJob) -> list[tuple[float, float]] | None:
        """Evaluations of `job` so far, as (time, value) in order of time; None if nobody looks."""
        return self._state.jobs[job.index].observed_at(self.now)

    def remaining(self, job: PolicyJob) -> float:
        """Work left; only for a policy that declares that it is told."""
        if not self._told_remaining:
            detail = "asked for the work left without declaring told_remaining"
            raise PolicyError(self._policy, detail, job=job.id)
        return self._state.jobs[job.index].remaining_at(self.now)

    def attained(self, job: PolicyJob) -> float:
        """Time that `job` held an allocation, in which it worked or was being set up."""
        return self._state.jobs[job.index].held_at(self.now)
