"""What came out of a run: times of each job, use of each resource, time the policy took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from oasis.scheduling.site import GROUPS, Site
from oasis.simulator.state import Progress


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Times of one job, in units of the workload's time.

    Parameters
    ----------
    job_id : str
        The job.
    arrival : float
        When it came.
    start, end : float or None
        When it first held anything and when its work ended; None if it never did.
    waiting, running, overhead : float
        Time without an allocation, at work, and lost to starts, resizes and moves.
    refusal : str or None
        Why the policy rejected it.
    """

    job_id: str
    arrival: float
    start: float | None
    end: float | None
    waiting: float
    running: float
    overhead: float
    refusal: str | None = None

    @property
    def completion(self) -> float | None:
        """Time from arrival to the end of the work."""
        return None if self.end is None else self.end - self.arrival

    @classmethod
    def of(cls, progress: Progress) -> JobTimes:
        """The times of `progress`, which has been advanced to the end of the run."""
        until = progress.since if progress.end is None else progress.end
        present = until - progress.job.arrival
        return cls(
            progress.job.id,
            progress.job.arrival,
            progress.started,
            progress.end,
            max(0.0, present - progress.running - progress.overhead),
            progress.running,
            progress.overhead,
            progress.refusal,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run on the simulator.

    Parameters
    ----------
    jobs : tuple of JobTimes
        In order of arrival, as far as they arrived.
    site : Site
        Where it ran.
    timeline : tuple of (float, tuple of int)
        Amounts in use from each time on, in grid units (`Site.grid`): resource by resource for
        worker tasks, then for parameter servers.
    until : float
        End of the run: the horizon, or the last event.
    calls : int
        How often the policy was asked.
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

    @property
    def completions(self) -> list[float]:
        """Completion times of the jobs that finished, in order of arrival."""
        return [job.end - job.arrival for job in self.jobs if job.end is not None]

    @property
    def mean_completion(self) -> float | None:
        """Their mean; None if no job finished."""
        times = self.completions
        return math.fsum(times) / len(times) if times else None

    def completion_quantile(self, share: float) -> float | None:
        """The smallest completion time that at least `share` of the finished jobs do not exceed."""
        times = sorted(self.completions)
        return times[max(0, math.ceil(share * len(times)) - 1)] if times else None

    @property
    def makespan(self) -> float:
        """From the first arrival to the last end."""
        ends = [job.end for job in self.jobs if job.end is not None]
        return max(ends) - min(job.arrival for job in self.jobs) if ends else 0.0

    @property
    def utilisation(self) -> dict[str, dict[str, float | None]]:
        """Mean share of the capacity in use, by group and resource; None where there is none.

        From the first arrival (or time 0 where there is a horizon) to the end of the run.
        """
        size = len(self.site.resources)
        begin = 0.0
        if self.site.horizon is None and self.jobs:
            begin = self.jobs[0].arrival
        span = self.until - begin
        sums = [0.0] * (len(GROUPS) * size)
        for (time, used), (end, _) in pairwise([*self.timeline, (self.until, ())]):
            for k, amount in enumerate(used):
                sums[k] += amount * (end - time)
        result: dict[str, dict[str, float | None]] = {}
        for g, group in enumerate(GROUPS):
            supply = [total * self.site.grid * span for total in self.site.totals(group)]
            result[group] = {
                name: sums[g * size + r] / supply[r] if supply[r] > 0 else None
                for r, name in enumerate(self.site.resources)
            }
        return result

    def to_dict(self) -> dict[str, Any]:
        """What ran, and its figures, as plain data for JSON."""
        return {
            "policy": self.policy,
            "parameters": dict(self.parameters),
            **self.figures(),
            "seed": self.seed,
            "version": self.version,
        }

    def figures(self) -> dict[str, Any]:
        """Figures for JSON, without the timeline and the measured times: runs repeat exactly."""
        return {
            "finished": len(self.completions),
            "mean_completion": self.mean_completion,
            "p95_completion": self.completion_quantile(0.95),
            "makespan": self.makespan,
            "utilisation": self.utilisation,
            "waiting": math.fsum(job.waiting for job in self.jobs),
            "running": math.fsum(job.running for job in self.jobs),
            "overhead": math.fsum(job.overhead for job in self.jobs),
            "calls": self.calls,
        }
