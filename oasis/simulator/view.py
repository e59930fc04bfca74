"""The view that a policy has of a simulated run."""

from __future__ import annotations

from collections.abc import Iterator

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.simulator.state import State


class StateView:
    """A `oasis.scheduling.View` of the state of a simulation.

    Attributes
    ----------
    now : float
        The time.
    arrived, finished, evicted : list of PolicyJob
        What happened at this instant; evicted jobs lost a server and hold nothing.
    lost, returned : list of int
        Machines that went down or came back at this instant.
    """

    __slots__ = ("_state", "arrived", "evicted", "finished", "lost", "now", "returned")

    def __init__(self, state: State) -> None:
        self._state = state
        self.now = state.now
        self.arrived: list[PolicyJob] = []
        self.finished: list[PolicyJob] = []
        self.evicted: list[PolicyJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    def jobs(self) -> Iterator[PolicyJob]:
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

    def allocation(self, job: PolicyJob) -> Allocation:
        """What `job` holds."""
        return self._state.jobs[job.index].allocation

    def remaining(self, job: PolicyJob) -> float:
        """Work left."""
        return self._state.jobs[job.index].remaining_at(self.now)

    def attained(self, job: PolicyJob) -> float:
        """Time that `job` held an allocation, in which it worked or was being set up."""
        return self._state.jobs[job.index].held_at(self.now)
