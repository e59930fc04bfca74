"""The view that a policy has of a real cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from oasis.kubernetes.planning.entry import Entry
from oasis.model.errors import PolicyError
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.placement import Room
from oasis.scheduling.site import Site


class ClusterView:
    """A `oasis.scheduling.View` of the cluster at the beginning of a slot.

    Parameters
    ----------
    site : Site
        The machines.
    now : int
        The slot that begins.
    entries : mapping of int to Entry
        Unfinished jobs by index, in order of arrival.
    down : set of int
        Machines that cannot be used.
    told_remaining : bool
        Whether the policy declares that it is told how much work is left.
    policy : str
        Name of the policy, for messages.
    """

    def __init__(
        self,
        site: Site,
        now: int,
        entries: Mapping[int, Entry],
        down: Set[int],
        told_remaining: bool,
        policy: str,
    ) -> None:
        self._site, self._entries, self._down = site, entries, down
        self._told_remaining, self._policy = told_remaining, policy
        self.now = float(now)
        self.arrived: list[PolicyJob] = []
        self.finished: list[PolicyJob] = []
        self.evicted: list[PolicyJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    def jobs(self) -> Iterator[PolicyJob]:
        return (entry.job for entry in self._entries.values())

    def capacity(self) -> list[tuple[int, ...]]:
        nothing = (0,) * len(self._site.resources)
        return [
            nothing if k in self._down else machine.capacity
            for k, machine in enumerate(self._site.machines)
        ]

    def free(self) -> list[tuple[int, ...]]:
        room = Room(self._site, self.capacity(), self._down)
        for entry in self._entries.values():
            for tasks, demand in (
                (entry.allocation.workers, entry.job.worker),
                (entry.allocation.ps, entry.job.ps),
            ):
                for machine, count in tasks:
                    room.take(machine, demand, count)
        return room.free

    def down(self) -> Set[int]:
        return self._down

    def allocation(self, job: PolicyJob) -> Allocation:
        return self._entries[job.index].allocation

    def waiting(self) -> Iterator[PolicyJob]:
        return (e.job for e in self._entries.values() if not e.allocation.workers)

    def running(self) -> Iterator[PolicyJob]:
        return (e.job for e in self._entries.values() if e.allocation.workers)

    def waiting_since(self, job: PolicyJob) -> float | None:
        since = self._entries[job.index].waiting_since
        return None if since is None else float(since)

    def observed(self, job: PolicyJob) -> Sequence[tuple[float, float]] | None:
        """What its training reported so far; every job may, so it is never None."""
        return self._entries[job.index].observed

    def remaining(self, job: PolicyJob) -> float:
        if not self._told_remaining:
            detail = "asked for the work left without declaring told_remaining"
            raise PolicyError(self._policy, detail, job=job.id)
        return self._entries[job.index].remaining

    def attained(self, job: PolicyJob) -> float:
        return float(self._entries[job.index].held)

    def was_admitted(self, job: PolicyJob) -> bool:
        """Whether the job was accepted before."""
        return self._entries[job.index].admitted
