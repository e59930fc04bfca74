"""Preemptive policies that differ only in their order of the jobs: SRTF, SRSF, LAS."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from baselines.counts import Gpus
from baselines.queues import STRICT, Misfits, OneLine
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import NOTHING, Allocation, Placement, Plan, PolicyJob, Room, Site, View


class PreemptiveCapacity:
    """Free capacity now, and free capacity if running jobs not yet served were preempted."""

    # A job goes where there is free room; only if it does not fit there does it displace others. So
    # no job is moved or paused for one that an idle machine could take.

    def __init__(
        self, site: Site, placement: Placement, view: View, running: Iterable[PolicyJob]
    ) -> None:
        self._placement, self._view = placement, view
        self._free, self._misfits = Room(site, view.free(), view.down()), Misfits()
        self._later = {job.index: job for job in running}
        self._second: Room | None = None  # made once a job does not fit into what is free
        self._preempted: set[int] = set()

    def _without_later(self) -> Room:
        """Return the room without the running jobs that are not yet served."""
        if self._second is None:
            self._second = Room(self._free.site, self._free.free.copy(), self._free.down)
            for job in self._later.values():
                self._second.release(job, self._view.allocation(job))
        return self._second

    @property
    def displaces(self) -> bool:
        """Whether some job did not fit into free room; from then on, jobs may be displaced."""
        return self._second is not None

    def keep(self, job: PolicyJob) -> bool:
        """Let `job` go on where it runs and return True; if that is taken, preempt it: False."""
        self._later.pop(job.index, None)
        if self._second is None or self._second.hold(job, self._view.allocation(job)):
            return True
        # Others were placed over it: what it held beside them is free for those that come next.
        self.leave(job)
        return False

    def leave(self, job: PolicyJob) -> None:
        """Preempt a running `job`: free its capacity for the jobs that are served next."""
        self._later.pop(job.index, None)
        if job.index not in self._preempted:
            self._preempted.add(job.index)
            self._free.release(job, self._view.allocation(job))

    def start(self, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place `job`, in free room or where jobs may be displaced; None if it does not fit."""
        if self._misfits.has(job, workers, ps):
            return None
        # Free room first: only a job that fits nowhere else may displace others.
        allocation = self._placement.place(self._free, job, workers, ps)
        if allocation is not None:
            if self._second is not None:
                self._second.occupy(job, allocation)
            return allocation
        allocation = self._placement.place(self._without_later(), job, workers, ps)
        if allocation is None:
            self._misfits.add(job, workers, ps)
        else:
            self._free.occupy(job, allocation)
        return allocation


Workers = tuple[PolicyJob, int]


def check_levels(hours: tuple[float, ...], name: str) -> tuple[float, ...]:
    """Return `hours` if they are positive and increase; else raise an error that names `name`."""
    if list(hours) != sorted(set(hours)) or min(hours, default=1.0) <= 0:
        raise InputError(name, "expected increasing numbers > 0", hours)
    return tuple(hours)


class ServiceLevels:
    """Levels of attained service, which is GPUs times time ("two-dimensional" in Tiresias)."""

    def __init__(self, hours: tuple[float, ...], site: Site) -> None:
        self.ends = [end * 3600.0 / site.unit_seconds for end in hours]
        self.gpus = Gpus(site)

    def service(self, job: PolicyJob, workers: int, view: View) -> float:
        """Return the service that `job` has attained with this many workers."""
        return view.attained(job) * self.gpus.of(job, workers)

    def level(self, service: float) -> int:
        """Return the level of a service; the end of a level belongs to the next one."""
        # The timer rings at the end of a level; rounding must not leave the job just
        # short of it, or the timer would ring again at once.
        return bisect_right(self.ends, service * (1 + TOLERANCE))

    def since_end(self, job: PolicyJob, workers: int, view: View) -> float:
        """Return for how long a running `job` beyond the first level has been in its level."""
        service = self.service(job, workers, view)
        return (service - self.ends[self.level(service) - 1]) / self.gpus.of(job, workers)

    def next_end(self, running: Iterable[Workers], view: View) -> float | None:
        """Next time at which a running job reaches the end of its level; None: never."""
        times = []
        for job, workers in running:
            service = self.service(job, workers, view)
            level = self.level(service)
            if level < len(self.ends):
                seconds = (self.ends[level] - service) / self.gpus.of(job, workers)
                times.append(view.now + seconds)
        return min(times, default=None)


Rank = float | tuple[float, ...]
Key = tuple[Rank, int]


class Ordered(OneLine):
    """At every event, give the machines to the jobs in order until one does not fit.

    Counts of workers and parameter servers are fixed as for FIFO, so that only the order differs.
    The jobs get their turns one after the other. One that runs stays where it is, unless a job
    before it took its place; one that waits goes where there is free room and, only if it does not
    fit there, displaces jobs whose turn comes later. A displaced job is placed at its turn. If
    the line is strict, the first that does not fit blocks those behind it, which are paused; with
    ``fit`` it alone waits. A job's place in the order may change while it runs; where it changes
    for waiting jobs, `rank_anew` must be called.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.
    """

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._waiting: list[Key] = []
        self._running: dict[int, PolicyJob] = {}

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        """Return the sort key of `job`: smaller ones go first; equals in order of arrival."""
        raise NotImplementedError

    def before_serving(self, view: View) -> None:
        """Hook of each event for subclasses: `running` is updated, keys are computed after it."""

    def rank_anew(self, view: View) -> None:
        """Compute the keys of all waiting jobs again, and sort the line by them."""
        jobs = self._book.jobs
        self._waiting = sorted(self._key(jobs[index], view) for _, index in self._waiting)

    def after_serving(self) -> None:
        """Hook for subclasses, called when all jobs had their turns at an event."""

    def wake_at(self, view: View) -> float | None:
        """Return the next time at which the order changes without an event; None if never."""
        return None

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._update(view, plan)
        # While no job waits, all that run go on: no turns need to be played.
        if self._waiting:
            self._serve(view, plan)
            self.after_serving()
        plan.wake_at = self.wake_at(view)
        return plan

    def running(self) -> list[tuple[PolicyJob, int]]:
        """Running jobs, each with its number of workers."""
        counts = self._book.counts
        return [(job, counts[index][0]) for index, job in self._running.items()]

    def _update(self, view: View, plan: Plan) -> None:
        for job in (*view.finished, *view.evicted):
            if self._running.pop(job.index, None) is None:  # its owner took it back: it waited
                self._waiting = [key for key in self._waiting if key[1] != job.index]
        # Before the new jobs are entered: their keys are those of the order as it is now.
        self.before_serving(view)
        for job in self._book.update(view, plan):
            insort(self._waiting, self._key(job, view))
        for job in view.evicted:
            insort(self._waiting, self._key(job, view))

    def _key(self, job: PolicyJob, view: View) -> Key:
        return self.key(job, self._book.counts[job.index][0], view), job.index

    def _serve(self, view: View, plan: Plan) -> None:
        # Sorted at each event, as keys of running jobs change while they run.
        # Those within their minimum run time stay where they are, whatever their turn.
        """Give each job its turn, in order; enter starts, moves and pauses in `plan`."""
        locked = {k: job for k, job in self._running.items() if view.kept_until(job) > view.now}
        rank, counts = self.key, self._book.counts
        running = sorted(
            [
                (rank(job, counts[index][0], view), index)
                for index, job in self._running.items()
                if index not in locked
            ]
        )
        # `served` of the waiting and `first` of the running jobs have had their turn. Running jobs
        # that go before every waiting one stay where they are, so their turns are not played.
        served, first = 0, bisect_left(running, self._waiting[0])
        jobs = self._book.jobs
        now_running = locked | {index: jobs[index] for _, index in running[:first]}
        capacity = PreemptiveCapacity(
            self._site, self._placement, view, [jobs[i] for _, i in running[first:]]
        )
        passed: list[Key] = []  # jobs that did not fit and let others go before them
        while served < len(self._waiting) or first < len(running):
            if served == len(self._waiting) and not capacity.displaces:
                now_running |= {index: jobs[index] for _, index in running[first:]}
                first = len(running)
                break  # all that run stay
            waits = first == len(running) or (
                served < len(self._waiting) and self._waiting[served] < running[first]
            )
            key = self._waiting[served] if waits else running[first]
            job = jobs[key[1]]
            if not waits and capacity.keep(job):
                now_running[job.index] = job
            elif allocation := capacity.start(job, *self._book.counts[job.index]):
                plan.changes[job.index] = allocation
                now_running[job.index] = job
            elif self.line == STRICT:
                break  # whoever is behind waits, or is paused below
            else:
                passed.append(key)
                if not waits:  # it ran, and its place went to a job before it
                    plan.changes[job.index] = NOTHING
            served, first = served + waits, first + (not waits)
        self._waiting[:served] = passed
        # A strict line is blocked at the job that does not fit: those behind it are paused, too.
        for key in running[first:]:
            plan.changes[key[1]] = NOTHING
            insort(self._waiting, key)
        self._running = now_running


class SRTF(Ordered):
    """The job with the shortest remaining run time goes first and may preempt.

    The rule is textbook (Schrage and Miller, 1966, for one machine, where it is optimal for the
    mean). Chosen: the remaining time of a job is its remaining work over its fixed number of
    workers, known at arrival; the rest as in `Ordered`.

    Examples
    --------
    The short job preempts the long one:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("long", 0.0, 60.0, 8), PlainJob("short", 5.0, 30.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SRTF()).completions
    [90.0, 30.0]
    """

    name = "srtf"
    told_remaining = True

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        # `rounding.key` without the call: this is asked of every running job at every event.
        time = view.remaining(job) / workers
        product = time * rounding.SPLIT
        return product - (product - time)


class SRSF(Ordered):
    """The job with the least remaining time times GPUs goes first and may preempt.

    Tiresias (Gu et al., NSDI 2019) names the rule as what one would do if durations were known:
    remaining service is the remaining run time multiplied by the number of GPUs. Chosen: the
    remaining time is the remaining work over the fixed number of workers, known at arrival; a job
    without GPUs counts its workers; the rest as in `Ordered`.

    Examples
    --------
    The wide job is the shorter one, but has more to be served:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("wide", 0.0, 30.0, 8), PlainJob("narrow", 0.0, 60.0, 2)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SRSF()).completions
    [90.0, 60.0]
    """

    name = "srsf"
    told_remaining = True

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._gpus = Gpus(site)

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return rounding.key(view.remaining(job) / workers * self._gpus.of(job, workers))


ARRIVAL, RUNNING_FIRST = "arrival", "running-first"
RUNS, WAITS = 0, 1  # within a queue, running jobs come before waiting ones


class LAS(Ordered):
    """The jobs with the least attained service go first; run times are not used.

    Tiresias (Gu et al., NSDI 2019) fixes: service is GPUs times time ("two-dimensional"); queues
    with thresholds on attained service, a job falls to the next queue when it passes one; in a
    queue, first come first served; running jobs of lower queues are preempted; a job that does not
    fit lets those behind it pass (``line="fit"``). Chosen: the thresholds; no promotion of starving
    jobs; a job without GPUs counts its workers; a strict line, the rule by which the policies here
    are compared; the rest as in `Ordered`.

    The order within a queue has two readings. ``order="arrival"``: order of submission, as
    in the simulator of Lucid (Hu et al., ASPLOS 2023). ``order="running-first"``, as in the
    simulator of Tiresias: a job enters its queue at the end, and after each decision those that run
    stand before those that wait; wide jobs may then wait for very long.

    A threshold must suit the workload. On a slotted instance no job is preempted within a slot, so
    no job falls to the next queue with less than a slot of service. Where one slot already exceeds
    the threshold, each new job runs for one slot and then waits behind all new jobs: while
    jobs keep arriving, none of them ends (docs: simulator).

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    thresholds : tuple of float
        Ends of all queues but the last, in GPU-hours, increasing.
    order : {"arrival", "running-first"}
        Who goes first in a queue.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The first job has had an hour of its 8 GPUs when the second, which has had nothing, comes:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("old", 0.0, 7200.0, 8), PlainJob("new", 3600.0, 60.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), LAS()).completions
    [7260.0, 60.0]
    """

    name = "las"

    def __init__(
        self,
        seed: int | None = 0,
        thresholds: tuple[float, ...] = (1.0,),
        *,
        order: str = ARRIVAL,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if order not in (ARRIVAL, RUNNING_FIRST):
            raise InputError("order", f"expected {ARRIVAL} or {RUNNING_FIRST}", order)
        self.thresholds, self.order = check_levels(thresholds, "thresholds"), order

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._levels = ServiceLevels(self.thresholds, site)
        # of each job its queue, whether it stands there among those that run, and its place
        self._stands: dict[int, tuple[int, int, int]] = {}
        self._last, self._front = 0, 0  # places given at the end and at the front of queues

    def _behind(self) -> int:
        """Return a place behind all places given so far."""
        self._last += 1
        return self._last

    def _before(self) -> int:
        """Return a place before all places given so far."""
        self._front -= 1
        return self._front

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        if self.order == ARRIVAL:
            return float(self._levels.level(self._levels.service(job, workers, view)))
        if job.index not in self._stands:
            self._stands[job.index] = 0, WAITS, self._behind()
        return self._stands[job.index]

    def before_serving(self, view: View) -> None:
        """Move jobs that passed a threshold to the end of their next queue, in order of time."""
        if self.order == ARRIVAL:
            return  # the key is computed from the service each time; no places are kept
        for job in view.finished:
            self._stands.pop(job.index, None)
        fallen = []
        for job, workers in self.running():
            queue = self._levels.level(self._levels.service(job, workers, view))
            if queue != self._stands[job.index][0]:
                passed_at = view.now - self._levels.since_end(job, workers, view)
                fallen.append((rounding.key(passed_at), job.index, queue))
        # Who passed its threshold first stands before those that passed one since.
        for _, index, queue in sorted(fallen):
            self._stands[index] = queue, WAITS, self._behind()

    def after_serving(self) -> None:
        """Put the running jobs of each queue before its waiting jobs; each part keeps its order."""
        if self.order == ARRIVAL:
            return
        for index in self._running:
            queue, stand, _ = self._stands[index]
            if stand == WAITS:
                self._stands[index] = queue, RUNS, self._behind()
        # Backwards, because each goes before all that were moved so far: their order stays.
        for place in reversed(range(len(self._waiting))):
            _, index = self._waiting[place]
            queue, stand, _ = self._stands[index]
            if stand == RUNS:
                self._stands[index] = queue, WAITS, self._before()
                self._waiting[place] = self._stands[index], index

    def wake_at(self, view: View) -> float | None:
        """Return when a running job next passes a threshold; None if no job waits."""
        return self._levels.next_end(self.running(), view) if self._waiting else None
