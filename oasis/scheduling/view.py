"""The view of a policy, which is the same for a simulation and a real cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Protocol

from oasis.model.errors import PolicyError
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.site import Site


class Tracked:
    """An unfinished job with its allocation: what a `World` records and a `View` shows of it."""

    job: PolicyJob  # all of it, in the form that it is in
    told: PolicyJob  # what the policy may know of it
    seen: PolicyJob  # and sees: that form alone, or all of them
    forms: tuple[PolicyJob, ...]  # that it may still be in; none: it has but one
    form: int  # that it is in, as an index of `oasis.model.job.Job.in_forms`
    allocation: Allocation
    waiting_since: float | None  # since when it cannot work with that, without a break
    admitted: bool  # whether the policy accepted it before it arrived now
    kept_until: float  # before when it is not to be changed; 0: it may change

    def show(self, job: PolicyJob, told: PolicyJob, knows_forms: bool) -> None:
        """Set the views of a job: `job` with all facts, `told` with those the policy may know."""
        self.told, self.forms, self.job = told, job.forms, job.in_form(self.form)
        self.seen = told if knows_forms else told.in_form(self.form)

    def be_in(self, form: int) -> None:
        """Set the form of the job; a policy that does not know forms then sees the job in it."""
        self.form, self.job = form, self.forms[form]
        if not self.seen.forms:
            self.seen = self.told.forms[form]

    @property
    def has_gang(self) -> bool:
        """Whether the job holds a complete gang, so that it can work."""
        return bool(self.allocation.workers)

    @property
    def has_form(self) -> bool:
        """Whether the job has had machines, which fixes its form, unless it may switch."""
        raise NotImplementedError

    def remaining_at(self, now: float) -> float:
        """Return the work left at time `now`."""
        raise NotImplementedError

    def held_at(self, now: float) -> float:
        """Return the time up to `now` in which the job had all tasks that it needs to work."""
        raise NotImplementedError

    def observed_at(self, now: float) -> Sequence[tuple[float, float]] | None:
        """Return (time, value) pairs of the evaluation function up to `now`; None: not observed."""
        raise NotImplementedError


class Books(Protocol):
    """The state that a view shows: jobs, allocations and free capacity at one instant."""

    @property
    def site(self) -> Site: ...
    @property
    def now(self) -> float: ...
    @property
    def jobs(self) -> Mapping[int, Tracked]: ...  # unfinished ones by index, in order of arrival
    @property
    def free(self) -> list[tuple[int, ...]]: ...  # grid units by machine; none of those down
    @property
    def down(self) -> Set[int]: ...  # machines that are down
    @property
    def closing(self) -> Set[int]: ...  # machines on which what began would be interrupted
    @property
    def reserved(self) -> Sequence[int]: ...  # GPUs that jobs outside hold; empty: none


class View:
    """The past and the present, read-only; the same for a simulation and for a real cluster.

    Parameters
    ----------
    books : Books
        The state at one instant.
    policy : str
        Name of the policy that sees them.
    told_remaining : bool
        Whether the policy is told the work that is left.

    Attributes
    ----------
    now : float
        The present time: slots on an instance, seconds in a replay.
    arrived, finished, evicted : list of PolicyJob
        What happened at this instant. Jobs that were cancelled are finished, too, and may have held
        nothing. Evicted jobs lost a server and hold nothing.
    lost, returned : list of int
        Machines that went down or came back at this instant.

    Examples
    --------
    FIFO, printing the time of each call and the waiting jobs:

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

    def __init__(self, books: Books, policy: str, told_remaining: bool) -> None:
        self._books, self._policy, self._told_remaining = books, policy, told_remaining
        self.now = books.now
        self.arrived: list[PolicyJob] = []
        self.finished: list[PolicyJob] = []
        self.evicted: list[PolicyJob] = []
        self.lost: list[int] = []
        self.returned: list[int] = []

    @property
    def happened(self) -> bool:
        """Whether a job arrived, ended or was evicted, or a machine was lost or came back."""
        return bool(self.arrived or self.finished or self.evicted or self.lost or self.returned)

    def jobs(self) -> Iterator[PolicyJob]:
        """Iterate over the unfinished jobs that have arrived, in order of arrival."""
        return (progress.seen for progress in self._books.jobs.values())

    def free(self) -> list[tuple[int, ...]]:
        """Return a copy of the free amounts of each machine, in grid units; 0 if it closes soon."""
        free = self._books.free.copy()
        for k in self._books.closing:
            free[k] = (0,) * len(free[k])
        return free

    def capacity(self) -> list[tuple[int, ...]]:
        """Return what each machine has when idle, in grid units; zeros if it is down.

        Without the GPUs of jobs that are not in the run.
        """
        nothing = (0,) * len(self._books.site.resources)
        down = self._books.down
        machines = self._books.site.machines
        rows = [nothing if k in down else m.capacity for k, m in enumerate(machines)]
        for k, reserved in enumerate(self._books.reserved):
            if reserved:
                rows[k] = (rows[k][0] - reserved, *rows[k][1:])
        return rows

    def down(self) -> Set[int]:
        """Return the machines that are down, for a `Room`: they take no task."""
        return frozenset(self._books.down)

    def allocation(self, job: PolicyJob) -> Allocation:
        """Return what `job` holds now; `NOTHING` if it holds nothing."""
        return self._books.jobs[job.index].allocation

    def waiting(self) -> Iterator[PolicyJob]:
        """Iterate over unfinished jobs that hold too little to work, in order of arrival."""
        return (p.seen for p in self._books.jobs.values() if not p.has_gang)

    def running(self) -> Iterator[PolicyJob]:
        """Iterate over unfinished jobs that hold all they need to work, in order of arrival."""
        return (p.seen for p in self._books.jobs.values() if p.has_gang)

    def waiting_since(self, job: PolicyJob) -> float | None:
        """Return since when `job` has been waiting without a break; None if it runs."""
        return self._books.jobs[job.index].waiting_since

    def observed(self, job: PolicyJob) -> Sequence[tuple[float, float]] | None:
        """Return the evaluations of `job` so far, as (time, value); None if it is not observed."""
        return self._books.jobs[job.index].observed_at(self.now)

    def remaining(self, job: PolicyJob) -> float:
        """Return the work that is left of `job`, in worker-slots, or worker-seconds in a replay.

        Of a job that has held nothing yet, all of the work in the form that is given.

        Raises
        ------
        PolicyError
            If the policy does not declare `told_remaining`.
        """
        if not self._told_remaining:
            detail = "asked for the work left without declaring told_remaining"
            raise PolicyError(self._policy, detail, job=job.id)
        tracked = self._books.jobs[job.index]
        # While it has held nothing it may still be in any form: what is left is all of this one.
        is_open = tracked.forms and not tracked.has_form
        return job.work if is_open else tracked.remaining_at(self.now)

    def attained(self, job: PolicyJob) -> float:
        """Return for how long `job` has worked or was being set up so far."""
        return self._books.jobs[job.index].held_at(self.now)

    def kept_until(self, job: PolicyJob) -> float:
        """Return the time before which `job` should stay as it is; 0 if it may change."""
        return self._books.jobs[job.index].kept_until

    def was_admitted(self, job: PolicyJob) -> bool:
        """Return whether `job` was accepted before: on a cluster, a job may arrive once more."""
        return self._books.jobs[job.index].admitted
