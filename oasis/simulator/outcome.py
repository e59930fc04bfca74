"""The outcome of a run: times of jobs, use of resources, time spent in the policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from oasis.model.document import Reader, entry, mapping, object_of, optional, real
from oasis.model.groups import GROUPS
from oasis.model.summary import Facts, Summarised, short
from oasis.scheduling.site import Site
from oasis.simulator.costs import GangChange
from oasis.simulator.state import JobProgress

SHARES = object_of(optional(real))  # of each resource; null where there is none of it
UTILISATION = object_of(SHARES)  # of each group
COUNTS = (
    *("finished", "unfinished", "rejected", "admitted", "calls", "policy_calls"),
    *("restarts", "resizes", "migrations", "given_up_after_start"),
)  # figures that every run has; others are null where no job has what they are of


@dataclass(frozen=True, slots=True, repr=False)
class JobTimes(Summarised):
    """Times of one job, in units of the workload's time.

    Parameters
    ----------
    job_id : str
        The job.
    arrival : float
        Time of arrival.
    start, end : float or None
        When it first held all it needs and when its work ended; None if it never did.
    waiting, running, overhead : float
        Time without all it needs, at work, and lost to starts, resizes and moves ("scaling"). Of a
        job that did not finish, up to its rejection or to the end of the run (`Outcome.until`).
    refusal : str or None
        Why the policy rejected it.
    stalled : float
        The part of `waiting` in which it held machines, but too few of them to work.
    restarts, resizes, migrations : int
        How often it was resumed after it had been paused, had lost a server or changed its form,
        changed its number of tasks while it worked, and moved tasks without changing their number.
    lost_work : float
        Work that it did and lost with a server, since its last checkpoint.
    work_done : float
        Work that it did in all, lost work included: of one worker in one unit of time. Both are
        counted in the form that it was in last.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
    >>> second = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO()).jobs[1]
    >>> second.waiting, second.running, second.completion
    (55.0, 30.0, 85.0)
    """

    job_id: str
    arrival: float
    start: float | None
    end: float | None
    waiting: float
    running: float
    overhead: float
    refusal: str | None = None
    stalled: float = 0.0
    restarts: int = 0
    resizes: int = 0
    migrations: int = 0
    lost_work: float = 0.0
    work_done: float = 0.0

    def summary(self) -> tuple[str, Facts]:
        """Its arrival, start and end, how long it waited, and why it was rejected."""
        times: Facts = [("job", self.job_id)]
        for name in ("arrival", "start", "end", "waiting"):
            times.append((name, short(getattr(self, name))))
        return "JobTimes", times if self.refusal is None else [*times, ("rejected", self.refusal)]

    @property
    def is_given_up(self) -> bool:
        """Whether the job ran and never finished: rejected, left idle or cut off at the end."""
        return self.start is not None and self.end is None

    @property
    def wasted_work(self) -> float:
        """Work done in vain: all of it if the job did not finish, else what was lost and redone."""
        return self.work_done if self.end is None else self.lost_work

    @property
    def completion(self) -> float | None:
        """Time from arrival to the end of the work; None if the job did not finish."""
        return None if self.end is None else self.end - self.arrival

    @classmethod
    def of(cls, progress: JobProgress) -> JobTimes:
        """Return the times of a job whose `progress` was advanced to the end of the run."""
        job, changes = progress.job, progress.changes
        until = progress.since if progress.end is None else progress.end
        running, overhead = progress.running, progress.overhead
        return cls(
            job_id=job.id,
            arrival=job.arrival,
            start=progress.started,
            end=progress.end,
            # What is left of its time in the system; rounding may leave a little less than nothing.
            waiting=max(0.0, until - job.arrival - running - overhead),
            running=running,
            overhead=overhead,
            refusal=progress.refusal,
            stalled=progress.stalled,
            restarts=changes.count(GangChange.RESUME),
            resizes=changes.count(GangChange.RESIZE),
            migrations=changes.count(GangChange.MIGRATE),
            lost_work=progress.lost,
            work_done=job.work - progress.remaining + progress.lost,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Summarised):
    """A run on the simulator.

    Parameters
    ----------
    jobs : tuple of JobTimes
        Times of the jobs that arrived, in order of arrival.
    site : Site
        Machines of the run.
    timeline : tuple of (float, tuple of int)
        Amounts in use from each time on, in grid units (`Site.grid`): resource by resource for
        worker tasks, then for parameter servers.
    until : float
        End of the run: the horizon, or the last event. Where jobs are left for which nothing will
        ever happen, it is later by the time that they would need one after another
        (`Engine.finish`).
    calls : int
        Number of calls of the policy.
    policy_seconds, simulator_seconds : float
        Measured time inside the policy and outside it.
    policy : str
        Name of the policy.
    parameters : mapping
        Its parameters.
    seed : int or None
        Seed of the instance, where it has one.
    version : str
        Package version.
    saving : tuple of float
        By resource, the amount in grid units times the time for which machines were kept busy by
        nothing but jobs that saved their state before they left.
    held : float
        Likewise, what jobs outside of the run held of the first resource (`Workload.held`).

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO())
    >>> outcome.mean_completion, outcome.completion_quantile(0.5), outcome.until
    (72.5, 60.0, 90.0)
    """

    jobs: tuple[JobTimes, ...]
    site: Site
    timeline: tuple[tuple[float, tuple[int, ...]], ...] = field(repr=False)
    until: float
    calls: int
    policy_seconds: float = field(compare=False)
    simulator_seconds: float = field(compare=False)
    policy: str
    parameters: Mapping[str, Any]
    seed: int | None
    version: str
    saving: tuple[float, ...] = ()
    held: float = 0.0

    @property
    def completions(self) -> list[float]:
        """Completion times of the jobs that finished, in order of arrival."""
        return [job.end - job.arrival for job in self.jobs if job.end is not None]

    @property
    def unfinished(self) -> int:
        """Number of jobs that did not finish, those that were rejected included.

        Where it is not 0, the figures of `completions` are those of the other jobs alone.

        Examples
        --------
        Two gangs of three on four GPUs, whose pods are bound one by one, hold two each for ever:

        >>> from baselines import FIFO, KubernetesDefault
        >>> from oasis.simulator import Machine, PolicyJob, Site, Workload, replay
        >>> jobs = [PolicyJob(n, 0.0, 90.0, ((0, 1),), min_workers=3, max_workers=3) for n in "ab"]
        >>> site = Site(("gpu",), (Machine("n0", (4.0,)),), partial_gangs=True)
        >>> stuck = replay(Workload.of(site, jobs), KubernetesDefault())
        >>> stuck.unfinished, stuck.mean_completion, [job.waiting for job in stuck.jobs]
        (2, None, [60.0, 60.0])
        >>> [job.waiting for job in replay(Workload.of(site, jobs), FIFO()).jobs]
        [0.0, 30.0]
        """
        return sum(job.end is None for job in self.jobs)

    @property
    def mean_completion(self) -> float | None:
        """Mean completion time of the jobs that finished; None if no job finished."""
        times = self.completions
        return math.fsum(times) / len(times) if times else None

    @property
    def median_completion(self) -> float | None:
        """Median completion time of the jobs that finished; None if no job finished.

        Examples
        --------
        >>> from baselines import FIFO
        >>> from oasis.simulator import PlainJob, replay, rigid_workload
        >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
        >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO()).median_completion
        72.5
        """
        times = self.completions
        return median(times) if times else None

    def completion_quantile(self, share: float) -> float | None:
        """Least completion time that `share` of finished jobs do not exceed; None without any."""
        times = sorted(self.completions)
        return times[max(0, math.ceil(share * len(times)) - 1)] if times else None

    @property
    def makespan(self) -> float | None:
        """Time from the first arrival to the last end; None if every job was rejected.

        Where a job is left that neither finished nor was rejected, to the end of the run: all work
        is done no earlier.
        """
        ends = [job.end for job in self.jobs if job.end is not None]
        if any(job.end is None and job.refusal is None for job in self.jobs):
            # A job that is left would make a policy look better that never runs it.
            ends = [self.until]
        return max(ends) - min(job.arrival for job in self.jobs) if ends else None

    @property
    def given_up_after_start(self) -> int:
        """Number of jobs that ran but did not finish."""
        return sum(job.is_given_up for job in self.jobs)

    @property
    def wasted_share(self) -> float | None:
        """Share of `JobTimes.wasted_work` in all work done; None if none was done."""
        done = math.fsum(job.work_done for job in self.jobs)
        return math.fsum(job.wasted_work for job in self.jobs) / done if done > 0 else None

    @property
    def utilisation(self) -> dict[str, dict[str, float | None]]:
        """Mean share of the capacity in use, by group and resource; None where there is none.

        From the first arrival (or time 0 where there is a horizon) to the end of the run, without
        what others held (`held`).
        """
        size, areas = len(self.site.resources), self._areas()
        return {
            group: self._shares(areas[g * size : (g + 1) * size], self.site.totals(group))
            for g, group in enumerate(GROUPS)
        }

    @property
    def use(self) -> dict[str, float | None]:
        """Mean share of the capacity of all machines in use, by resource; None where there is none.

        Worker tasks and parameter servers together, and what saving kept busy; a machine that hosts
        both counts once. Over the same time as `utilisation`.
        """
        size, areas = len(self.site.resources), self._areas()
        kept = self.saving or (0.0,) * size
        whole = [a + b + more for a, b, more in zip(areas, areas[size:], kept, strict=False)]
        rows = zip(*(machine.amounts for machine in self.site.machines), strict=True)
        return self._shares(whole, [math.fsum(row) for row in rows])

    def _shares(self, areas: list[float], totals: Sequence[float]) -> dict[str, float | None]:
        """Return `areas` over `totals` times the run's length, less others' GPUs, by resource."""
        begin = 0.0
        if self.site.horizon is None and self.jobs:
            begin = self.jobs[0].arrival
        span, shares, held = self.until - begin, {}, self.held
        for name, area, total in zip(self.site.resources, areas, totals, strict=True):
            supply = total * self.site.grid * span - held  # amounts in use are in grid units
            shares[name], held = area / supply if supply > 0 else None, 0.0
        return shares

    def _areas(self) -> list[float]:
        """Return, for each column of the timeline, the sum of amount times time."""
        sums = [0.0] * (len(GROUPS) * len(self.site.resources))
        for (time, used), (end, _) in pairwise([*self.timeline, (self.until, ())]):
            for k, amount in enumerate(used):
                sums[k] += amount * (end - time)
        return sums

    def summary(self) -> tuple[str, Facts]:
        """Policy, how many jobs finished and how soon, and the end of the run."""
        done = len(self.completions)
        mean = [("their mean completion", short(self.mean_completion))] if done else []
        finished = ("finished", f"{done} of {len(self.jobs)} jobs")
        return "Outcome", [("policy", self.policy), finished, *mean, ("until", short(self.until))]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the run as plain data for JSON."""
        return {
            "policy": self.policy,
            "parameters": dict(self.parameters),
            **self.figures(),
            "seed": self.seed,
            "version": self.version,
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON that repeat exactly: without measured times and timeline."""
        return {
            "finished": len(self.completions),
            "unfinished": self.unfinished,
            "mean_completion": self.mean_completion,
            "p95_completion": self.completion_quantile(0.95),
            "makespan": self.makespan,
            "utilisation": self.utilisation,
            "waiting": math.fsum(job.waiting for job in self.jobs),
            "running": math.fsum(job.running for job in self.jobs),
            "overhead": math.fsum(job.overhead for job in self.jobs),
            "given_up_after_start": self.given_up_after_start,
            "wasted_share": self.wasted_share,
            "calls": self.calls,
        }


def figure_reader(name: str) -> Reader[Any]:
    """Return the reader for the figure of this name in a JSON document."""
    if name in COUNTS:
        return real
    return {"utilisation": UTILISATION, "use": SHARES}.get(name, optional(real))


def read_figures(data: Any) -> dict[str, Any]:
    """Read the data of `Outcome.figures`; `InstanceError` with the path of what is wrong."""
    return {name: entry(data, name, figure_reader(name)) for name in mapping(data)}
