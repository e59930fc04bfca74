"""Finish-time fairness: those who fare worst against a cluster of their own go first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from baselines.line import STRICT
from baselines.ordered import Ordered, Rank, significant
from baselines.shares import Shares
from oasis.scheduling import PolicyJob, Site, View

LEASED, OFFERED = 0.0, 1.0


class FinishTimeFairness(Ordered):
    """At the end of each lease, GPUs go to the jobs with the worst finish-time fairness.

    Themis (Mahajan et al., NSDI 2020) fixes: the finish-time fairness of a job is rho = T_sh /
    T_id, the time from its arrival to its end in the shared cluster over that in a cluster of its
    own with 1/N of the machines, for N the mean number of jobs it shared with; GPUs are leased, and
    at the end of a lease offered to the jobs with the largest rho. (Recalled, not checked against
    the printed text.)

    Chosen: rigid jobs bid for all or nothing, so there is no auction among those that are offered
    GPUs, but the largest rho goes first (equal to 12 digits: in order of arrival); T_sh is the age
    of a job and what it has left to run; T_id is its whole run time, multiplied by N s where its
    dominant share s is more than 1/N; N is the mean since its arrival of the jobs that were there;
    a job that holds a lease keeps its machines; a lease that ends while nobody waits goes on until
    somebody does; new jobs are offered at once what is free; the rest as in `Ordered`.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    lease : float
        Hours.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    After an hour the short job has waited 1.5 times as long as half a cluster would have taken it:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("long", 0.0, 36000.0, 8), PlainJob("short", 0.0, 1800.0, 8)]
    >>> policy = FinishTimeFairness(lease=1.0)
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), policy).completions
    [37800.0, 5400.0]
    """

    name = "finish-time-fairness"
    told_remaining = True

    def __init__(
        self,
        seed: int | None = 0,
        lease: float = 1 / 3,
        *,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if not 0 < lease < math.inf:
            raise ValueError(f"lease: expected a finite number > 0, got {lease:g}")
        self.lease = lease

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {**super().parameters, "lease": self.lease}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._shares, self._length = Shares(site), self.lease * 3600.0 / site.unit_seconds
        self._now, self._job_time = 0.0, 0.0  # the integral over time of the jobs that are there
        self._job_time_before: dict[int, float] = {}  # at the arrival of each job
        self._leases: dict[int, float] = {}  # end of the lease of each job that runs

    def before_serving(self, view: View) -> None:
        """Count those who were there, and rank those who wait: all become less fair with time."""
        self._job_time += len(self._book.jobs) * (view.now - self._now)
        self._now = view.now
        for job in view.finished:
            self._job_time_before.pop(job.index, None)
        self.rank_anew(view)

    def after_serving(self) -> None:
        """A new lease for everybody who begins, or goes on after the end of a lease."""
        end = self._now + self._length
        self._leases = {
            index: old if (old := self._leases.get(index, end)) > self._now else end
            for index in self._running
        }

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        if job.index in self._running and self._leases[job.index] > view.now:
            return LEASED, 0.0
        return OFFERED, -significant(self.rho(job, workers, view))

    def rho(self, job: PolicyJob, workers: int, view: View) -> float:
        """Finish-time fairness of `job` if it runs from now on to its end."""
        before = self._job_time_before.setdefault(job.index, self._job_time)
        age = view.now - job.arrival
        sharing = (self._job_time - before) / age if age else sum(1 for _ in view.jobs())
        _, ps = self._book.counts[job.index]
        alone = job.work / workers
        alone *= max(1.0, sharing * self._shares.dominant(job, workers, ps))
        return (age + view.remaining(job) / workers) / alone if alone else math.inf

    def wake_at(self, view: View) -> float | None:
        """When the next lease ends, if anybody waits."""
        return min(self._leases.values(), default=None) if self._waiting else None
