"""What every scheduler with a rolling horizon has: live jobs, lost servers, a present slot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from oasis.model.cluster import Cluster, expect_cluster
from oasis.model.decision import Decision
from oasis.model.errors import InstanceError, describe
from oasis.model.instance_file import cluster_to_dict, job_from_dict, job_to_dict
from oasis.model.job import Job
from oasis.model.schedule import SLOT, Schedule
from oasis.model.validation import LARGEST_SIZE, integer
from oasis.online.live.answers import Completion
from oasis.online.recourse.live_job import LiveJob, PromiseRecord, grid_of

Arrays = Mapping[str, npt.NDArray[np.generic]]
Server = tuple[str, int]  # group and index


@dataclass(slots=True)
class Events:
    """What happened in one call.

    Parameters
    ----------
    completed : list of Completion
        Jobs that completed.
    gone : list of str
        Jobs that were given up.
    record : PromiseRecord
        What became of promises and of work that was begun.
    """

    completed: list[Completion] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    record: PromiseRecord = field(default_factory=PromiseRecord)


class Core(ABC):
    """A scheduler that plans `lookahead` slots ahead of the present one and forgets the past.

    Its methods check what they are given before they change anything.

    Parameters
    ----------
    cluster : Cluster
        Servers and the length of a slot.
    lookahead : int
        Slots that the plan reaches ahead; the present one is the first.
    patience : int, optional
        A completion counts within so many slots from the arrival on. Default: twice `lookahead`.

    Attributes
    ----------
    lost : set of (str, int)
        Groups and indices of the servers that are lost.
    rounds_done : int
        Rounds of the search in the last call.
    rounds_given : int or None
        Exactly so many are done in the next calls: it repeats a call made under a time limit.
    """

    name: ClassVar[str]

    def __init__(self, cluster: Cluster, lookahead: int, patience: int | None = None) -> None:
        expect_cluster(cluster)
        self.cluster = cluster
        self.lookahead = integer(lookahead, "lookahead", minimum=1, maximum=LARGEST_SIZE)
        given = 2 * self.lookahead if patience is None else patience
        self.patience = integer(given, "patience", minimum=1, maximum=2 * LARGEST_SIZE)
        self.grid = grid_of(cluster)
        self.lost: set[Server] = set()
        self.rounds_done = 0
        self.rounds_given: int | None = None
        self._servers = {name: ("worker", k) for k, name in enumerate(cluster.worker_ids)}
        self._servers |= {name: ("ps", k) for k, name in enumerate(cluster.ps_ids)}

    # -- what every core has -----------------------------------------------------------------------

    @property
    @abstractmethod
    def now(self) -> int:
        """The present slot, which has not begun."""

    @property
    @abstractmethod
    def live(self) -> Mapping[int, LiveJob]:
        """Live jobs by key, in order of arrival."""

    @abstractmethod
    def advance(self, now: int) -> Events:
        """Let the plan run up to slot `now`, which lies ahead."""

    @abstractmethod
    def submit(self, job: Job) -> tuple[Decision, Events]:
        """Decide on a job that arrives in the present slot."""

    @abstractmethod
    def cancel(self, live: LiveJob) -> Events:
        """Let a job go; nobody wants it any more."""

    @abstractmethod
    def complete(self, live: LiveJob) -> Events:
        """Let a job go; its work is done."""

    @abstractmethod
    def revise(self, remaining: Sequence[tuple[LiveJob, int]]) -> Events:
        """Plan for other amounts of work than were left of these jobs."""

    @abstractmethod
    def lose(self, server: Server) -> Events:
        """Plan without `server`."""

    @abstractmethod
    def restore(self, server: Server) -> Events:
        """Plan with `server` again."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What it was made with beside the cluster, as plain data."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Everything that decides on what it will do, as plain data and arrays."""

    @classmethod
    @abstractmethod
    def made_with(cls, cluster: Cluster, parameters: Mapping[str, Any]) -> Self:
        """A core as it was made; the inverse of `parameters`."""

    @abstractmethod
    def restore_state(self, state: Mapping[str, Any], arrays: Arrays) -> None:
        """Go on from where `state` was taken."""

    @property
    @abstractmethod
    def shared(self) -> Iterable[object]:
        """What a copy may share with the original because nobody changes it."""

    # -- what follows ------------------------------------------------------------------------------

    def copy(self) -> Self:
        """A copy that shares nothing that changes."""
        kept: list[object] = [self.cluster, self.grid, *self.shared]
        for live in self.live.values():
            kept += [live.job, live.table, live.schedule]
        return deepcopy(self, {id(thing): thing for thing in kept})

    def find(self, job_id: str) -> LiveJob:
        """The live job of that id."""
        for live in self.live.values():
            if live.job.id == job_id:
                return live
        raise InstanceError("job_id", f"expected a live job, got {describe(job_id)}")

    def check_new(self, job: Job) -> None:
        """Raise `InstanceError` unless `job` can arrive now."""
        if not isinstance(job, Job):
            raise InstanceError("job", f"expected a job, got {describe(job)}")
        self.cluster.check(job)
        if job.arrival != self.now:
            expected = f"expected the present slot {self.now}, got {job.arrival} (job {job.id!r})"
            raise InstanceError("arrival", expected)
        if any(live.job.id == job.id for live in self.live.values()):
            raise InstanceError("id", f"expected the id of no live job, got {job.id!r}")

    def locate(self, server: str, lost: bool) -> Server:
        """Group and index of `server`, which must be lost or not."""
        if not isinstance(server, str) or server not in self._servers:
            raise InstanceError("server", f"expected the id of a server, got {describe(server)}")
        found = self._servers[server]
        if (found in self.lost) != lost:
            expected = "a lost server" if lost else "a server that is not lost"
            raise InstanceError("server", f"expected {expected}, got {server!r}")
        return found

    def planned(self) -> dict[str, tuple[Schedule | None, float]]:
        """Schedule and utility of every live job, by id."""
        return {live.job.id: (live.schedule, planned_utility(live)) for live in self.live.values()}

    def ended_now(self, live: LiveJob) -> Completion:
        """The completion of a job that ends before its time: now, or when it last ran."""
        if live.schedule is not None and live.schedule.start == self.now:
            return completed(live, self.now)
        if not live.started:
            raise InstanceError("job_id", f"expected a job that has run, got {live.job.id!r}")
        return completed(live, self.now - 1)

    def common_state(self) -> dict[str, Any]:
        """The part of `state` that all cores have."""
        return {
            "now": self.now,
            "lost": sorted(self.lost),
            "live": [live_to_dict(live) for live in self.live.values()],
        }

    def restored_jobs(self, state: Mapping[str, Any], floor: float) -> dict[int, LiveJob]:
        """The live jobs of `common_state`."""
        jobs = {}
        for entry in state["live"]:
            job = job_from_dict(entry["job"])
            end = job.arrival + self.patience
            live = LiveJob.of(entry["key"], job, self.cluster, end, self.grid, floor)
            for name in ("remaining", "done", "promise", "value"):
                setattr(live, name, entry[name])
            if entry["schedule"]:
                live.schedule = Schedule.from_dict(entry["schedule"])
            jobs[live.key] = live
        return jobs

    def to_dict(self) -> dict[str, Any]:
        """What `made_with` needs."""
        return {"cluster": cluster_to_dict(self.cluster), "parameters": self.parameters}


def planned_utility(live: LiveJob) -> float:
    """F of a job at its planned completion; 0 if there is none."""
    return live.utility_at(live.schedule.completion) if live.schedule is not None else 0.0


def completed(live: LiveJob, slot: int) -> Completion:
    """The completion of `live` in `slot`."""
    utility = float(live.job.utility(slot - live.job.arrival))
    return Completion(live.job.id, slot, utility)


def live_to_dict(live: LiveJob) -> dict[str, Any]:
    """Plain data of a live job; its table and its demands on the grid follow from the job."""
    return {
        "key": live.key,
        "job": job_to_dict(live.job.original),
        "remaining": live.remaining,
        "done": live.done,
        "promise": live.promise,
        "value": live.value,
        "schedule": live.schedule.to_dict() if live.schedule is not None else None,
    }


def restricted(schedule: Schedule, end: int) -> Schedule | None:
    """The part of `schedule` before slot `end`; None if nothing runs there."""
    workers = schedule.workers[: np.searchsorted(schedule.workers[:, SLOT], end)]
    if not len(workers):
        return None
    ps = schedule.ps[: np.searchsorted(schedule.ps[:, SLOT], end)]
    return Schedule(schedule.job_id, workers, ps)
