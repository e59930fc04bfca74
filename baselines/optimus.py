"""Optimus: tasks go one by one to the job with the largest marginal gain, by learned speeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from baselines.fair_shares import Pools, Shares
from oasis.extras import require
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE, ULPS
from oasis.scheduling import (
    NOTHING,
    Allocation,
    BasePolicy,
    BestFit,
    EmptyCluster,
    JobBook,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)
from oasis.scheduling.book import Counts
from oasis.scheduling.job import Demand, Tasks

SYNC, ASYNC = "sync", "async"
LINEAR = (1.0, 0.0, 0.0, 0.0, 0.0)  # n workers are n times as fast as one
YOUNG = 0.95  # factor on the gain of a job whose speed was never observed
LEVELS = 50  # of the loss that a fit may tend to
FEWEST_LOSSES = 3  # for a curve with three coefficients


def terms(workers: int, ps: int, training: str) -> list[float]:
    """Return the features of the speed model; their weighted sum is the time of a step."""
    # Synchronous training of w workers with p parameter servers takes t0 / w + t1 + t2 w / p + t3 w
    # + t4 p for a step of all of them, asynchronous training (t0 + t1 w / p + t2 w + t3 p) / w for
    # one of any of them. Without parameter servers there is nothing to share.
    worker_ratio = workers / ps if ps else 0.0
    if training == SYNC:
        return [1.0 / workers, 1.0, worker_ratio, float(workers), float(ps)]
    return [1.0 / workers, worker_ratio / workers, 1.0, ps / workers, 0.0]


def fit(pairs: Mapping[Counts, float], training: str) -> tuple[float, ...]:
    """Fit the speed model to speeds by (workers, servers); return coefficients, none negative."""
    # Least squares of the relative errors of the time of a step; with one number of workers alone
    # there is nothing to learn from, and speed is taken for linear.
    from scipy.optimize import nnls  # noqa: PLC0415 (needs an extra)

    if len({workers for workers, _ in pairs}) < 2:
        return LINEAR
    # Each row is multiplied by its speed, and its right-hand side, a time, becomes 1: so all steps
    # count alike, however long they take.
    rows = [[speed * t for t in terms(*counts, training)] for counts, speed in pairs.items()]
    coefficients, _ = nnls(np.array(rows), np.ones(len(rows)))
    return tuple(coefficients.tolist())


def speed_of(coefficients: Sequence[float], counts: Counts, training: str) -> float:
    """Speed that the model predicts for (workers, servers) `counts`; infinity if its time is 0."""
    step = math.fsum(t * x for t, x in zip(coefficients, terms(*counts, training), strict=True))
    return 1.0 / step if step > 0 else math.inf


def work_to_converge(done: Sequence[float], losses: Sequence[float], least_fall: float) -> float:
    """Work after which the loss falls by less than `least_fall` of its maximum a step, by a fit."""
    # The loss l after work k is taken for 1 / (b0 k + b1) + b2, no coefficient negative: for each
    # of some values of b2 the others are fitted to 1 / (l - b2), and the nearest curve counts. The
    # fall is that from one evaluation to the next, at their mean distance so far.
    from scipy.optimize import nnls  # noqa: PLC0415 (needs an extra)

    work, values = np.array(done, dtype=float), np.array(losses, dtype=float)
    values = values / values.max()
    step = float(work[-1] - work[0]) / (len(work) - 1)
    nearest, slope, begin = math.inf, 0.0, 1.0
    # For a given b2 the rest is linear least squares; the lowest loss itself would divide by 0.
    for level in np.linspace(0.0, float(values.min()), LEVELS, endpoint=False):
        rows = np.column_stack([work / work[-1], np.ones(len(work))]) * (values - level)[:, None]
        (b0, b1), _ = nnls(rows, np.ones(len(work)))
        curve = level + 1.0 / np.maximum(b0 * work / work[-1] + b1, TOLERANCE)
        distance = float(np.square(curve - values).sum())
        if distance < nearest - ULPS:
            nearest, slope, begin = distance, float(b0 / work[-1]), float(b1)
    if not slope:
        return float(work[-1])  # it does not fall any more
    return max(float(work[-1]), (math.sqrt(slope * step / least_fall) - begin) / slope)


class Evenly:
    """Places tasks in even parts on the fewest and idlest machines; else wherever they fit."""

    name = "evenly"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        hosts, servers = (
            self._hosts(room, group, demand)
            for group, demand in (("worker", job.worker), ("ps", job.ps))
        )
        most = max(len(hosts) if workers else 0, len(servers) if ps else 0)
        for number in range(1, min(most, max(workers, ps)) + 1):
            allocation = Allocation(_even(hosts[:number], workers), _even(servers[:number], ps))
            if (allocation.worker_count, allocation.ps_count) == (workers, ps) and room.hold(
                job, allocation
            ):
                return allocation
        return BestFit().place(room, job, workers, ps)

    def _hosts(self, room: Room, group: str, demand: Demand) -> list[int]:
        """Return the machines with room for one task, the idlest first."""
        hosts = [k for k in room.site.machines_for(group) if room.takes(k, demand)]
        return room.most_idle(hosts)


def _even(machines: Sequence[int], count: int) -> Tasks:
    """Divide `count` tasks into parts that differ by one at most; the first machines have more."""
    if not machines:
        return ()
    least, more = divmod(count, len(machines))
    parts = ((machine, least + (k < more)) for k, machine in enumerate(machines))
    return tuple(sorted((machine, part) for machine, part in parts if part))


@dataclass(slots=True)
class Known:
    """What is known of a job: observed speeds, the fitted model, and the last observation."""

    pairs: dict[Counts, float]  # speeds by workers and servers, sampled and then observed
    coefficients: tuple[float, ...] = LINEAR  # fitted to them
    observed: bool = False
    allocation: Allocation = NOTHING  # at the last look, as `time` and `remaining`
    time: float = 0.0
    remaining: float = 0.0
    at_work: bool = False  # whether it had done work with that before
    progress: list[tuple[float, float]] = field(default_factory=list)  # time and work at each look


class Optimus(BasePolicy):
    """Tasks go one by one to the job whose remaining time they cut most.

    Peng, Bao, Chen, Wu and Guo (EuroSys 2018, "Optimus: an efficient dynamic resource scheduler for
    deep learning clusters") fix: the speed f(p, w) of a job by its workers and parameter servers is
    a model with non-negative coefficients (`terms`), fitted by non-negative least squares to a few
    sampling runs and to what is observed as it trains; its remaining time is the work left, Q, over
    f. At each interval (10 minutes) every job first gets one worker and one parameter server; then
    the job with the largest marginal gain, what one more worker or one more parameter server takes
    off its remaining time for each unit of its dominant resource, gets it, until nothing fits or
    nothing gains; gains of jobs that have just begun count 0.95. Jobs are placed in order of their
    demand, the smallest first, on the fewest machines that hold them in even parts, the machines
    with most left first. The losses l of a job after k steps are fitted by 1 / (b0 k + b1) + b2,
    and tell when it will have converged. (Recalled, and compared with the authors' public code.)

    Chosen: Q is the work left, which our worlds know, or with `convergence` what the losses tell
    (`work_to_converge`), as soon as there are three. A sampling run of n workers gives
    `PolicyJob.speed` of n, if the job says its speeds, for n up to `samples`; if not, one worker
    has the speed 1, and until more is observed speed is linear. What is observed, the work done
    between two looks at a job that was at work with the same tasks at both, replaces what was known
    of that number. The least squares are of relative errors of the time of a step. First comes the
    fewest that a job works with, in order of arrival; a worker comes with the parameter servers
    that the rule of the job then asks for, a parameter server alone only where the rule leaves it
    open. A unit of a resource is all that there is of it, since resources are compared; what fits
    is counted over all machines together. Equal gains (9 digits): the earlier job, a worker first.
    A job that gets the numbers that it has stays where it is, and the others are placed around it;
    if one fits in no even parts it goes wherever there is room, with fewer workers if there is too
    little. An interval is at least a slot; one begins at once when machines go or come back, or
    no job runs; within it, a job that waits begins with its fewest as soon as these are free.

    Parameters
    ----------
    round_minutes : float
        Length of an interval, in minutes.
    training : {"sync", "async"}
        Speed model: of synchronous or of asynchronous training.
    samples : int
        Most workers of a sampling run.
    convergence : float
        Fall of the loss from one evaluation to the next, in parts of the largest, below which a job
        counts as converged; 0: the work left is known.

    Examples
    --------
    One worker each, and any other takes more time off the long job, which at the end of the
    interval has all GPUs:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [
    ...     PolicyJob(name, 0.0, work, ((0, 1),), max_workers=4)
    ...     for name, work in (("long", 9000.0), ("short", 1500.0))
    ... ]
    >>> work = Workload.of(Site(("gpu",), (Machine("n0", (4.0,)),)), jobs)
    >>> replay(work, Optimus()).completions
    [2700.0, 1500.0]
    """

    name = "optimus"
    needs = "training curves"
    told_remaining = True
    prefers_long = True

    def __init__(
        self,
        round_minutes: float = 10.0,
        training: str = SYNC,
        samples: int = 5,
        convergence: float = 0.0,
    ) -> None:
        if not 0 < round_minutes < math.inf:
            raise InputError("round_minutes", "expected a finite number > 0", round_minutes)
        if training not in (SYNC, ASYNC):
            raise InputError("training", f"expected {SYNC} or {ASYNC}", training)
        if samples < 1:
            raise InputError("samples", "expected at least 1", samples)
        if not 0 <= convergence < 1:
            raise InputError(
                "convergence", "expected a number of at least 0 and below 1", convergence
            )
        self.round_minutes, self.training = round_minutes, training
        self.samples, self.convergence = samples, convergence

    def reset(self, site: Site) -> None:
        # here, so that whoever has no SciPy hears of it before the run
        require("Optimus", "scipy")
        self.site, self._pools, self._shares = site, Pools(site), Shares(site)
        self._book = JobBook(EmptyCluster(site, Evenly).fewest)
        self._length = self.round_minutes * 60.0 / site.unit_seconds
        self._round_end = 0.0
        self._known: dict[int, Known] = {}

    def decide(self, view: View) -> Plan:
        plan = Plan()
        # Departures first: a job that is shown in another form leaves and comes in one call.
        for job in view.finished:
            self._known.pop(job.index, None)
        for job in self._book.update(view, plan):
            self._known[job.index] = self._sample(job)
        jobs = self._book.jobs
        for index, job in jobs.items():
            self._look(job, self._known[index], view)
        before = {index: view.allocation(job) for index, job in jobs.items()}
        # Lost machines, and a cluster on which no job runs, do not wait for the end of an interval.
        over = view.now >= self._round_end - TOLERANCE * max(1.0, view.now)
        if over or view.lost or view.returned or not any(gang.workers for gang in before.values()):
            self._round_end = view.now + self._length
            for index, allocation in self._placed(view, self._counts(view), before).items():
                if allocation != before[index]:
                    plan.changes[index] = allocation
        else:
            self._begin(view, before, plan)
        if any(gang.workers for gang in (before | plan.changes).values()):
            plan.wake_at = self._round_end
        return plan

    def _begin(self, view: View, before: Mapping[int, Allocation], plan: Plan) -> None:
        """Start waiting jobs with their fewest tasks, where these fit in free room."""
        room = Room(self.site, view.free(), view.down())
        for index, job in self._book.jobs.items():
            if not before[index].workers:
                allocation = Evenly().place(room, job, *self._book.counts[index])
                if allocation is not None:
                    plan.changes[index] = allocation

    def _sample(self, job: PolicyJob) -> Known:
        """Measure speeds of a new job in sampling runs, and fit the model to them."""
        most = min(self.samples, job.max_workers) if job.speedup else 1
        pairs = {(n, job.ps_needed(n)): job.speed(n) for n in range(1, most + 1)}
        return Known(pairs, fit(pairs, self.training))

    def _look(self, job: PolicyJob, known: Known, view: View) -> None:
        """Update `known` with the speed of `job`, by its progress since the last observation."""
        allocation, remaining, now = view.allocation(job), view.remaining(job), view.now
        same = allocation.workers and allocation == known.allocation
        worked = known.remaining - remaining
        if same and known.at_work and worked > 0 and now > known.time:
            counts = allocation.worker_count, allocation.ps_count
            known.pairs[counts] = worked / (now - known.time)
            known.coefficients, known.observed = fit(known.pairs, self.training), True
        # The first stretch with new tasks has the time of the change in it, which is not its speed.
        known.at_work = bool(same) and (known.at_work or worked > 0)
        known.allocation, known.time, known.remaining = allocation, now, remaining
        if self.convergence:
            known.progress.append((now, job.work - remaining))

    def _remaining(self, job: PolicyJob, view: View) -> float:
        """Remaining work Q of `job`: the true one, or estimated from the observed losses."""
        work = view.remaining(job)
        seen = view.observed(job) if self.convergence else None
        if seen is None or len(seen) < FEWEST_LOSSES:
            return work
        times, done = zip(*self._known[job.index].progress, strict=True)
        at = np.interp([time for time, _ in seen], times, done)
        if not 0 <= at[0] < at[-1] or min(value for _, value in seen) <= 0:
            return work  # a curve that rises from below is no loss
        total = work_to_converge(at.tolist(), [value for _, value in seen], self.convergence)
        return max(total - (job.work - work), float(at[-1] - at[0]) / len(at))

    def _counts(self, view: View) -> dict[int, Counts]:
        """Choose (workers, parameter servers) of each job that fits, by marginal gain."""
        free = self._pools.amounts(view.capacity())
        chosen: dict[int, Counts] = {}
        for index, counts in self._book.counts.items():
            if self._take(free, self._book.jobs[index], counts):
                chosen[index] = counts
        work = {index: self._remaining(self._book.jobs[index], view) for index in chosen}
        steps = {
            index: self._best_step(index, chosen[index], work[index], free) for index in chosen
        }
        while True:
            open_steps = {index: step for index, step in steps.items() if step is not None}
            if not open_steps:
                return chosen
            index = min(open_steps, key=lambda index: (-open_steps[index][0], index))
            _, more = open_steps[index]
            workers, ps = chosen[index]
            if self._take(free, self._book.jobs[index], (more[0] - workers, more[1] - ps)):
                chosen[index] = more
            # else others took the room, and another step may fit
            steps[index] = self._best_step(index, chosen[index], work[index], free)

    def _best_step(
        self, index: int, counts: Counts, work: float, free: Mapping[int, int]
    ) -> tuple[float, Counts] | None:
        """Return the best gain by one task more that fits, and the counts then; None: no gain."""
        job, (workers, ps) = self._book.jobs[index], counts
        options = []
        if workers < job.max_workers:
            options.append((workers + 1, max(ps, job.ps_needed(workers + 1))))
        if 0 < ps < job.ps_most(workers):
            options.append((workers, ps + 1))
        best = None
        for more in options:
            gain = self._gain(index, counts, more, work)
            usage: dict[int, int] = {}
            self._shares.add(usage, job, more[0] - workers, more[1] - ps)
            fits = all(free[pool] >= amount for pool, amount in usage.items())
            if fits and gain > 0 and (best is None or gain > best[0]):
                best = gain, more
        return best

    def _gain(self, index: int, counts: Counts, more: Counts, work: float) -> float:
        """Time that `more` tasks than `counts` save, divided by their dominant share."""
        known, job = self._known[index], self._book.jobs[index]
        before, after = (
            work / speed_of(known.coefficients, tasks, self.training) for tasks in (counts, more)
        )
        share = self._shares.dominant(job, more[0] - counts[0], more[1] - counts[1])
        saved = rounding.difference(before, after) * (1.0 if known.observed else YOUNG)
        if not share:
            return math.copysign(math.inf, saved) if saved else 0.0
        return rounding.key(saved / share)

    def _take(self, free: dict[int, int], job: PolicyJob, counts: Counts) -> bool:
        """Subtract these tasks from `free` if they all fit; return whether they do."""
        usage: dict[int, int] = {}
        self._shares.add(usage, job, *counts)
        if any(free[pool] < amount for pool, amount in usage.items()):
            return False
        for pool, amount in usage.items():
            free[pool] -= amount
        return True

    def _placed(
        self, view: View, counts: Mapping[int, Counts], before: Mapping[int, Allocation]
    ) -> dict[int, Allocation]:
        """Place all jobs, first those with unchanged counts; one without room has `NOTHING`."""
        jobs, room = self._book.jobs, Room(self.site, view.capacity(), view.down())
        allocations = dict.fromkeys(jobs, NOTHING)

        def order(index: int) -> tuple[bool, float, int]:
            had = before[index].worker_count, before[index].ps_count
            demand = self._shares.dominant(jobs[index], *counts[index])
            return had != counts[index], demand, index

        for index in sorted(counts, key=order):
            job, (workers, ps) = jobs[index], counts[index]
            stays = (before[index].worker_count, before[index].ps_count) == (workers, ps)
            if stays and room.hold(job, before[index]):
                allocations[index] = before[index]
                continue
            for number in job.workers_down_from(workers):
                servers = min(max(ps, job.ps_needed(number)), job.ps_most(number))
                allocation = Evenly().place(room, job, number, servers)
                if allocation is not None:
                    allocations[index] = allocation
                    break
        return allocations
