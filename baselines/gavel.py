"""Gavel: a linear program shares machines of several kinds out in time, and rounds follow it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from baselines.counts import FixedCountPolicy
from baselines.preemptive import PreemptiveCapacity
from baselines.time_shares import Kinds, Program, Way
from oasis.extras import require
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import NEVER_FITS, NOTHING, Plan, PolicyJob, Site, View
from oasis.scheduling.book import Counts

LEAST = 1e-9  # of a share: below, it is rounding
THROUGHPUT, MAX_MIN, FINISH_TIME, MAKESPAN = OBJECTIVES = (
    "throughput",
    "max-min-fairness",
    "finish-time-fairness",
    "makespan",
)
EVENTS, STRICT = "events", "strict"
HALVINGS = 30  # of the range of the finish-time fairness


class Gavel(FixedCountPolicy):
    """A linear program divides the time on each kind of machine among the jobs; rounds follow it.

    Narayanan et al. (OSDI 2020, "Heterogeneity-aware cluster scheduling policies for deep learning
    workloads") fix: X_mj is the share of time that job m spends on machines of type j, and T_mj its
    throughput there; X is at least 0, the X_mj of a job add up to at most 1 and, times the workers
    of each job, over all jobs to at most the machines of each type (section 3.1). X is worked out
    anew when jobs come or go. Time goes in rounds of `round_minutes`; in each the pairs of a job
    and a type get their turns in order of X_mj over the time that the job has received on that type
    since X was worked out, and each job runs at most once (section 5). Who has X_mj = 0 gets no
    turn. No two jobs share a GPU.

    Four of their objectives (section 4), none with weights of jobs or limits on completion. With
    the throughput sum_j T_mj X_mj of a job,

    * ``throughput`` maximises the sum of the throughputs;
    * ``max-min-fairness`` maximises the least throughput over that of an equal share of all
      machines, times the workers of the job (least attained service that knows types);
    * ``makespan`` minimises the time until the last of the jobs that are there ends;
    * ``finish-time-fairness`` minimises the largest rho of a job, its completion time over that
      which it would have with its part of all machines for itself.

    Where one of the last three leaves a choice, the largest sum of the throughputs is taken.

    Chosen: the types of a job are its forms, and the machines of a kind those that admit the same
    (`time_shares`, for any resources and with parameter servers). A job that may switch goes from
    form to form as in the paper; as other jobs keep theirs, their other forms leave the program
    when they begin, and X is worked out anew at the next round. The throughput is in units of the
    first form, its workers times the work of the job in the first form over that in this one, since
    mini-batches of different jobs have no common unit. Counts are fixed in each form as for FIFO.
    Of equal priorities the larger share goes first, then the earlier job, then the form that stands
    first; a job that goes on stays where it is unless one before it took its place. A round is at
    least a slot.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    round_minutes : float
        Length of a round, in minutes.
    objective : {"throughput", "max-min-fairness", "finish-time-fairness", "makespan"}
        What the linear program is to optimise.
    rounds : {"events", "strict"}
        Whether an event begins a new round, or all wait for the end of the round.
    reset_minutes : float
        Time that passes in strict rounds before X is worked out again, in minutes.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    Three jobs on one machine, of which two fit side by side: the wide one pays as much as both of
    them together, and in rounds of six minutes they take turns.

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob(name, 0.0, 1800.0, gpus) for name, gpus in (("a", 8), ("b", 4), ("c", 4))]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), Gavel())
    >>> sorted(job.end for job in outcome.jobs)[-1]
    3600.0
    """

    name = "gavel"
    is_slow = True
    told_remaining = True
    knows_forms = True

    def __init__(
        self,
        seed: int | None = 0,
        round_minutes: float = 6.0,
        *,
        objective: str = THROUGHPUT,
        rounds: str = EVENTS,
        reset_minutes: float = 32.0,
        placement: str | None = None,
    ) -> None:
        if not 0 < round_minutes < math.inf:
            raise InputError("round_minutes", "expected a finite number > 0", round_minutes)
        if objective not in OBJECTIVES:
            raise InputError("objective", f"expected {', '.join(OBJECTIVES)}", objective)
        if rounds not in (EVENTS, STRICT):
            raise InputError("rounds", f"expected {EVENTS} or {STRICT}", rounds)
        if not 0 <= reset_minutes < math.inf:
            raise InputError("reset_minutes", "expected a finite number >= 0", reset_minutes)
        super().__init__(seed, placement=placement)
        self.round_minutes, self.reset_minutes = round_minutes, reset_minutes
        self.objective, self.rounds = objective, rounds
        self.prefers_long = objective == MAKESPAN
        self._no_turn = LEAST if rounds == EVENTS else -1.0  # up to this share

    def reset(self, site: Site) -> None:
        # here, so that whoever has no solver hears of it before the run
        require("Gavel", "pulp", "highspy")
        super().reset(site)
        minute = 60.0 / site.unit_seconds
        self._length, self._least_apart = self.round_minutes * minute, self.reset_minutes * minute
        if site.slotted:  # a round ends with a slot
            self._length = max(1.0, math.ceil(self._length - TOLERANCE))
        self._jobs: dict[int, PolicyJob] = {}
        self._tasks: dict[int, dict[int, Counts]] = {}  # of each job in each form that ever fits
        self._first_forms: dict[int, int] = {}  # the form that a job began in
        self._last: dict[int, int] = {}  # the form that a job last ran in
        # Of each job for `_finish_times`: time that it would have run alone, work left, its part
        self._isolated: dict[int, tuple[float, float, float]] = {}
        self._shares: dict[tuple[int, int], float] = {}  # X by job and form
        self._received: dict[tuple[int, int], float] = {}
        self._owed: dict[tuple[int, int], float] = {}  # of earlier shares, not received
        self._running: dict[int, int] = {}  # those that run, and their form
        self._now = self._round_end = self._shared_at = 0.0
        self._is_stale = False

    def decide(self, view: View) -> Plan:
        plan = Plan()
        for index, form in self._running.items():
            key = (index, form)
            self._received[key] = self._received.get(key, 0.0) + view.now - self._now
        self._now = view.now
        has_arrivals = self._update(view, plan)
        happened = bool(has_arrivals or view.finished or view.lost or view.returned)
        is_due, begins = self._turn(view.now, happened)
        if is_due:
            self._share_out(view)
        if begins:
            self._play_round(view, plan)
        shares = [(*key, x) for key, x in self._shares.items() if key[0] in self._jobs]
        waiting = any(self._waits(job, form) for job, form, x in shares if x > self._no_turn)
        # If every job with a share runs, later rounds change nothing, nor if none of them could
        # begin on all there is, as when a machine is lost for good.
        changing = self._running and (waiting or self._is_stale)
        plan.wake_at = self._round_end if changing else None
        return plan

    def _turn(self, now: float, happened: bool) -> tuple[bool, bool]:
        """Return whether X is worked out now, and whether a round begins now."""
        is_strict = self.rounds == STRICT
        if is_strict and self._running:
            # While nobody waited, nobody looked at the ends of rounds.
            passed = (now - self._round_end) / self._length - TOLERANCE
            self._round_end += max(0, math.ceil(passed)) * self._length
        over = now >= self._round_end - TOLERANCE * max(1.0, now)
        if not is_strict:
            # A job that has begun keeps its form, which changes the program; that can wait for the
            # end of the round.
            return happened or (over and self._is_stale), happened or over
        self._is_stale |= happened
        over |= not self._running
        # Where nothing runs, waiting for longer would only leave machines idle.
        may_solve = now - self._shared_at >= self._least_apart or not self._running
        return over and self._is_stale and (may_solve or not self._shares), over

    def _waits(self, job: int, form: int) -> bool:
        """Return whether a later round may help: the job does not run, or could in another form."""
        running = self._running.get(job)
        return running is None or (running != form and self._jobs[job].may_switch)

    def _update(self, view: View, plan: Plan) -> bool:
        """Process departures and arrivals; return whether a new job can run."""
        for job in (*view.finished, *view.evicted):
            self._running.pop(job.index, None)
        for job in view.finished:
            for known in (self._jobs, self._tasks, self._first_forms, self._last, self._isolated):
                known.pop(job.index, None)
        has_arrivals = False
        for job in view.arrived:
            drawn = {k: self._counts.draw(form) for k, form in enumerate(job.in_forms)}
            tasks = {form: counts for form, counts in drawn.items() if counts is not None}
            if tasks:
                self._jobs[job.index], self._tasks[job.index], has_arrivals = job, tasks, True
            else:
                plan.rejected[job.index] = job.unmet or NEVER_FITS
        return has_arrivals

    def _ways(self) -> list[Way]:
        """Return the forms in which each job may still run, with tasks and throughput."""
        ways = []
        for index, job in self._jobs.items():
            first, fixed = job.in_forms[0], self._first_forms.get(index)  # none if it may switch
            for form, (workers, ps) in self._tasks[index].items():
                if fixed in (None, form):
                    seen = job.in_forms[form]
                    rate = workers * (first.work / seen.work if seen.work else 1.0)
                    ways.append(Way(index, form, seen, workers, ps, rate))
        return ways

    def _share_out(self, view: View) -> None:
        """Solve the linear program; time received on each type is counted anew from now."""
        for key, share in self._shares.items():
            missing = share * (view.now - self._shared_at) - self._received.get(key, 0.0)
            self._owed[key] = self._owed.get(key, 0.0) + missing
        ways = self._ways()
        kinds = Kinds(self._site, [way.seen for way in ways])
        program = Program(ways, kinds, kinds.totals(view.capacity()))
        shares = program.shares(self._needs(view, ways, program))
        self._shares = {(way.job, way.form): share for way, share in zip(ways, shares, strict=True)}
        self._owed = {key: owed for key, owed in self._owed.items() if key in self._shares}
        self._received.clear()
        self._is_stale, self._shared_at = False, view.now

    def _needs(self, view: View, ways: Sequence[Way], program: Program) -> dict[int, float] | None:
        """Return by what each job's throughput is divided in the objective; None: by nothing."""
        if self.objective == THROUGHPUT:
            return None
        if self.objective == MAKESPAN:
            return {job: self._work_left(view, job) for job in self._jobs}
        # Throughput of each job, were all machines its own and its gang filled them. Measured by
        # that, jobs that get equal parts are equal, however many workers a gang has.
        progress: dict[int, float] = {}
        for way in ways:
            progress[way.job] = progress.get(way.job, 0.0) + way.rate * program.gangs(way)
        if self.objective == MAX_MIN:
            return progress
        # Of n jobs each has an n-th of all machines for itself, and is there all the time at most.
        fits = dict.fromkeys(progress, 0.0)
        for way in ways:
            fits[way.job] += program.gangs(way) / len(progress)
        part = {job: r / len(progress) / max(1.0, fits[job]) for job, r in progress.items()}
        return self._finish_times(view, part, program)

    def _work_left(self, view: View, index: int) -> float:
        """Return the remaining work of the job with this index, in units of its first form."""
        first, now = (self._jobs[index].in_forms[k] for k in (0, self._last.get(index, 0)))
        return view.remaining(now) * (first.work / now.work if now.work else 1.0)

    def _finish_times(
        self, view: View, part: Mapping[int, float], program: Program
    ) -> dict[int, float]:
        """Return the throughput that each job needs if the largest rho is as small as possible."""
        work = {job: self._work_left(view, job) for job in part}
        ends: dict[int, float] = {}
        for job, rate in part.items():
            # Time alone so far: the work that was done since, at what was its part then.
            spent, before, then = self._isolated.get(job, (0.0, work[job], 0.0))
            spent += (before - work[job]) / then if then else 0.0
            self._isolated[job] = spent, work[job], rate
            if rate:
                ends[job] = spent + work[job] / rate
        waited = {job: view.now - self._jobs[job].arrival for job in ends}

        def needs(rho: float) -> dict[int, float]:
            return {job: work[job] / (rho * ends[job] - waited[job]) for job in ends if ends[job]}

        # A rho is reached if all throughputs that it needs fit: rho is found by halving. At `low`
        # a job would have to end at once.
        low = max((waited[job] / ends[job] for job in ends if ends[job]), default=0.0)
        high = low + 1.0
        while program.level(needs(high)) < 1.0:
            high = low + 2.0 * (high - low)
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2.0
            if low < middle < high and program.level(needs(middle)) >= 1.0:
                high = middle
            else:
                low = middle
        return needs(high)

    def _play_round(self, view: View, plan: Plan) -> None:
        """Begin a round: machines go to the pairs of a job and a form in order of priority."""
        self._round_end = view.now + self._length
        ways = {(way.job, way.form): way for way in self._ways()}
        due = [key for key in ways if self._shares.get(key, -1.0) > self._no_turn]
        running = [ways[key].seen for key in self._running.items()]
        capacity = PreemptiveCapacity(self._site, self._placement, view, running)
        before, self._running = self._running, {}
        for key in sorted(due, key=self._rank):
            way, goes_on = ways[key], before.get(key[0]) == key[1]
            # It has got its turn of this round in another form.
            if way.job in self._running:
                continue
            if goes_on and capacity.keep(way.seen):
                self._running[way.job] = way.form
            elif allocation := capacity.start(way.seen, way.workers, way.ps):
                plan.changes[way.job] = allocation._replace(form=way.form)
                self._running[way.job] = self._last[way.job] = way.form
                if way.job in before:  # it is not where it was, or in another form
                    capacity.leave(ways[way.job, before[way.job]].seen)
                if way.job not in self._first_forms and not self._jobs[way.job].may_switch:
                    self._first_forms[way.job] = way.form
                    self._is_stale |= len(self._tasks[way.job]) > 1
        for index in before.keys() - self._running.keys():
            plan.changes[index] = NOTHING

    def _rank(self, key: tuple[int, int]) -> tuple[float, ...]:
        """Return the sort key of a pair (job, form) in a round: the highest priority is first."""
        share, received = rounding.key(self._shares[key]), self._received.get(key, 0.0)
        if self.rounds == STRICT:
            priority = rounding.key(share / (received + self._length / 2.0))
            return -priority, -round(self._owed.get(key, 0.0) / self._length, 6), -share, *key
        # Who has had no time yet comes first: its priority is infinite.
        priority = rounding.key(share / received) if received else math.inf
        return -priority, -share, *key
