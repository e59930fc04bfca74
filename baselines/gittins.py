"""The Gittins index of jobs whose service is drawn from the services of earlier jobs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from baselines.preemptive import Ordered, ServiceLevels, check_levels
from baselines.queues import STRICT
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import Plan, PolicyJob, Site, View

# Ends of the levels of service: even steps of the logarithm, because services differ by orders of
# magnitude.
HOURS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Gittins(Ordered):
    """The job with the highest Gittins index of its attained service goes first and may preempt.

    The Gittins index of a job that has had service a is the largest, over all d, of P(S - a <= d)
    / E min(S - a, d), given S > a, for its whole service S (Gittins, "Bandit processes and dynamic
    allocation indices", JRSS B 41(2), 1979); on one machine the highest index first has the least
    mean. Tiresias (Gu et al., NSDI 2019) fixes: service is GPUs times time, the distribution is
    that of past jobs, and indices change at the ends of levels only. Chosen: the levels; a job in a
    level has the index of its beginning, and d reaches to the end of a level, or as far as anybody
    went; past jobs are those that ended in this run and those of `history`; while none is known
    to have gone as far as a job, its index is 0; equal indices (to 9 digits) in order of arrival;
    the rest as in `Ordered`.

    What ended first was short, so the distribution is one of short jobs in the beginning.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    levels : tuple of float
        Ends of all levels but the last, in GPU-hours, increasing.
    history : tuple of float
        Service of jobs that ended before this run, in GPU-hours.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    Jobs take one GPU-hour, or twenty. The old job has had two, so it is known to be a long one:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("old", 0.0, 9000.0, 8), PlainJob("new", 900.0, 450.0, 8)]
    >>> policy = Gittins(levels=(2.0,), history=(1.0, 1.0, 20.0))
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), policy).completions
    [9450.0, 450.0]
    """

    name = "gittins"

    def __init__(
        self,
        seed: int | None = 0,
        levels: tuple[float, ...] = HOURS,
        history: tuple[float, ...] = (),
        *,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if min(history, default=1.0) <= 0:
            raise InputError("history", "expected numbers > 0", history)
        self.levels, self.history = check_levels(levels, "levels"), tuple(history)

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._levels = ServiceLevels(self.levels, site)
        self._known = Services(self._levels.ends)
        for hours in self.history:
            self._known.add(hours * 3600.0 / site.unit_seconds)
        self._indices = self._known.indices()
        self._began: dict[int, float] = {}  # when it would have begun, had it run without a break

    def decide(self, view: View) -> Plan:
        plan = super().decide(view)
        # The time held is noted as a start without breaks: when the job
        # is gone, it cannot be asked for any more.
        for index, allocation in plan.changes.items():
            if allocation.workers:
                self._began[index] = view.now - view.attained(self._book.jobs[index])
            else:
                del self._began[index]
        return plan

    def before_serving(self, view: View) -> None:
        """Add jobs that ended to the distribution, compute all indices and sort the line anew."""
        for job in view.finished:
            if job.index not in self._began:  # its owner took it back: it waited
                continue
            workers, _ = self._book.counts[job.index]
            service = (view.now - self._began.pop(job.index)) * self._levels.gpus.of(job, workers)
            self._known.add(service)
        for job in view.evicted:
            del self._began[job.index]
        if view.finished:
            self._indices = self._known.indices()
            self.rank_anew(view)

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        service = self._levels.service(job, workers, view)
        return -self._indices[self._levels.level(service)]

    def wake_at(self, view: View) -> float | None:
        """Return when a running job next reaches the end of a level; None if no job waits."""
        return self._levels.next_end(self.running(), view) if self._waiting else None


class Services:
    """Numbers and total service of finished jobs, by the level in which they ended."""

    def __init__(self, ends: Sequence[float]) -> None:
        self._ends = ends
        self._count = [0] * (len(ends) + 1)
        self._total = [0.0] * (len(ends) + 1)

    def add(self, service: float) -> None:
        """Count a finished job with this `service`; the end of a level belongs to that level."""
        if not service:
            return  # it was never in any level
        # Services are sums of floats: a job that ended at the end
        # of a level must not fall behind it.
        level = bisect_left(self._ends, service * (1 - TOLERANCE))
        self._count[level] += 1
        self._total[level] += service

    def indices(self) -> list[float]:
        """Return the Gittins index at the begin of each level; 0 beyond the longest job."""
        return [self._index(level) for level in range(len(self._count))]

    def _index(self, level: int) -> float:
        begin = self._ends[level - 1] if level else 0.0
        # Running sums over the levels from here on, so that each d costs one step.
        ended = list(accumulate(self._count[level:]))
        spent = list(accumulate(self._total[level:]))
        best = 0.0
        for count, total, end in zip(ended, spent, [*self._ends[level:], math.inf], strict=True):
            beyond = ended[-1] - count  # jobs with more service than this
            # E min(S - a, d) times the number of jobs: what those took that end
            # by then, and d for each other. The last end is infinite and no job
            # is beyond it: 0 times infinity would be nan.
            time = total - count * begin + (beyond * (end - begin) if beyond else 0.0)
            if count:
                best = max(best, count / time if time > 0 else math.inf)
        return rounding.key(best)
