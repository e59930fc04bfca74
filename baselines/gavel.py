"""Gavel: a linear program shares machines of several kinds out in time, and rounds follow it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from baselines.counts import FixedCountPolicy
from baselines.preemptive import PreemptiveCapacity
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.extras import require
from oasis.model.groups import GROUPS
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import NEVER_FITS, NOTHING, Plan, PolicyJob, Site, View
from oasis.scheduling.book import Counts
from oasis.scheduling.job import LimitedDemand, admits

LEAST = 1e-9  # of a share: below, it is rounding


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a job: a form of it, and how many tasks it then has."""

    job: int
    form: int
    seen: PolicyJob  # the job in that form
    workers: int
    ps: int
    rate: float  # its throughput while it runs


class Kinds:
    """The machines of a site, those together that no requirement and no task tells apart."""

    def __init__(self, site: Site, jobs: Iterable[PolicyJob]) -> None:
        self._site = site
        demands = (group.of(job) for job in jobs for group in GROUPS)
        limits = {demand.machines for demand in demands if isinstance(demand, LimitedDemand)}
        found: dict[tuple[object, ...], list[int]] = {}
        for k, machine in enumerate(site.machines):
            # Machines that no job tells apart are one type: the program stays small on large
            # clusters.
            admitted = frozenset(limit for limit in limits if k in limit)
            found.setdefault((admitted, machine.hosts), []).append(k)
        self.machines = list(found.values())

    def admitting(self, job: PolicyJob, group: str) -> list[int]:
        """The kinds that may run tasks of `group` of a job of one form."""
        demand = job.worker if group == "worker" else job.ps
        first = [(kind, machines[0]) for kind, machines in enumerate(self.machines)]
        hosts = set(self._site.machines_for(group))
        return [kind for kind, k in first if k in hosts and admits(demand, k)]

    def totals(self, capacity: Sequence[Sequence[int]]) -> list[list[int]]:
        """Capacity of each kind by resource, from the capacities of machines."""
        return [
            [sum(column) for column in zip(*(capacity[k] for k in machines), strict=True)]
            for machines in self.machines
        ]


def time_shares(ways: Sequence[Way], kinds: Kinds, totals: Sequence[Sequence[int]]) -> list[float]:
    """Solve the linear program for X, the share of time of each job in each way to run."""
    # Maximise the sum of rate times share over all ways, where the shares of a job are at most 1,
    # and the tasks of all ways, each counted for its share of the time, take no more of any
    # resource of a kind than all machines of that kind have.
    from oasis.solvers.lp import ColumnLp, LpColumn  # noqa: PLC0415 (needs an extra)

    jobs = {job: row for row, job in enumerate(dict.fromkeys(way.job for way in ways))}
    places = {
        (kind, resource): len(jobs) + row
        for row, (kind, resource) in enumerate(
            (k, r) for k, amounts in enumerate(totals) for r, amount in enumerate(amounts) if amount
        )
    }
    program, owners = ColumnLp([1.0] * (len(jobs) + len(places))), []
    for number, way in enumerate(ways):
        hosts = [
            kinds.admitting(way.seen, group) if count else [None]
            for group, count in zip(GROUPS, (way.workers, way.ps), strict=True)
        ]
        for on_worker in hosts[0]:
            for on_ps in hosts[1]:
                # A column for each pair of kinds: workers and parameter servers may be on different
                # ones.
                load = _load(way, (on_worker, on_ps), totals)
                if load is not None:
                    rows = np.array([jobs[way.job], *(places[place] for place in load)])
                    # in shares of what there is: grid units are far too large for a solver
                    program.add_columns([LpColumn(way.rate, rows, np.array([1.0, *load.values()]))])
                    owners.append(number)
    found = [0.0] * len(ways)
    if owners:
        solution = program.solve()
        assert solution is not None, "a budget without a limit is never spent"
        for number, share in zip(owners, solution.values.tolist(), strict=True):
            # The solver may miss 0 and 1 by its tolerance.
            found[number] = min(1.0, found[number] + max(0.0, share))
    return found


def _load(
    way: Way, on: Sequence[int | None], totals: Sequence[Sequence[int]]
) -> dict[tuple[int, int], float] | None:
    """Use of the resources of their kinds by the tasks; None if a kind lacks one of them."""
    load: dict[tuple[int, int], float] = {}
    for group, kind, count in zip(GROUPS, on, (way.workers, way.ps), strict=True):
        if kind is None:
            continue
        for resource, amount in group.of(way.seen):
            total, place = totals[kind][resource], (kind, resource)
            if not total:
                return None
            load[place] = load.get(place, 0.0) + rounding.key(count * amount / total)
    return load


class Gavel(FixedCountPolicy):
    """A linear program says how long each job runs on each kind of machine; rounds follow it.

    Narayanan et al. (OSDI 2020, "Heterogeneity-aware cluster scheduling policies for deep learning
    workloads") fix: X_mj is the share of time that job m spends on machines of type j, and T_mj its
    throughput there; X is at least 0, the X_mj of a job add up to at most 1 and, times the workers
    of each job, over all jobs to at most the machines of each type (section 3.1); of their policies
    this is the one that maximises the sum of the throughputs, sum_m sum_j T_mj X_mj (``max sum
    throughput`` of the public code, without limits on completion and without two jobs on one GPU).
    X is worked out anew when jobs come or go. Time goes in rounds of `round_minutes`; in each the
    pairs of a job and a type get their turns in order of X_mj over the time that the job has
    received on that type since X was worked out, and each job runs at most once (section 5). Who
    has X_mj = 0 gets no turn.

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
        self, seed: int | None = 0, round_minutes: float = 6.0, *, placement: str | None = None
    ) -> None:
        if not 0 < round_minutes < math.inf:
            raise InputError("round_minutes", "expected a finite number > 0", round_minutes)
        super().__init__(seed, placement=placement)
        self.round_minutes = round_minutes

    def reset(self, site: Site) -> None:
        # here, so that whoever has no solver hears of it before the run
        require("Gavel", "pulp", "highspy")
        super().reset(site)
        self._length = self.round_minutes * 60.0 / site.unit_seconds
        self._jobs: dict[int, PolicyJob] = {}
        self._tasks: dict[int, dict[int, Counts]] = {}  # of each job in each form that ever fits
        self._begun: dict[int, int] = {}  # the form that a job began in
        self._shares: dict[tuple[int, int], float] = {}  # X by job and form
        self._received: dict[tuple[int, int], float] = {}
        self._running: dict[int, int] = {}  # those that run, and their form
        self._now = self._round_end = 0.0
        self._is_stale = False

    def decide(self, view: View) -> Plan:
        plan = Plan()
        for index, form in self._running.items():
            key = (index, form)
            self._received[key] = self._received.get(key, 0.0) + view.now - self._now
        self._now = view.now
        came = self._update(view, plan)
        happened = came or view.finished or view.lost or view.returned
        over = view.now >= self._round_end - TOLERANCE * max(1.0, view.now)
        # A job that has begun keeps its form, which changes the program; that can wait for the end
        # of the round.
        if happened or (over and self._is_stale):
            self._share_out(view)
        if happened or over:
            self._play_round(view, plan)
        waiting = any(self._waits(*key) for key, x in self._shares.items() if x > LEAST)
        # If every job with a share runs, later rounds change nothing, nor if none of them could
        # begin on all there is, as when a machine is lost for good.
        changing = self._running and (waiting or self._is_stale)
        plan.wake_at = self._round_end if changing else None
        return plan

    def _waits(self, job: int, form: int) -> bool:
        """Return whether a later round may help: the job does not run, or could in another form."""
        running = self._running.get(job)
        return running is None or (running != form and self._jobs[job].may_switch)

    def _update(self, view: View, plan: Plan) -> bool:
        """Enter departures and arrivals; return whether a new job can run."""
        for job in (*view.finished, *view.evicted):
            self._running.pop(job.index, None)
        for job in view.finished:
            for known in (self._jobs, self._tasks, self._begun):
                known.pop(job.index, None)
        came = False
        for job in view.arrived:
            drawn = {k: self._counts.draw(form) for k, form in enumerate(job.in_forms)}
            tasks = {form: counts for form, counts in drawn.items() if counts is not None}
            if tasks:
                self._jobs[job.index], self._tasks[job.index], came = job, tasks, True
            else:
                plan.rejected[job.index] = job.unmet or NEVER_FITS
        return came

    def _ways(self) -> list[Way]:
        """Remaining ways to run each job."""
        found = []
        for index, job in self._jobs.items():
            first, begun = job.in_forms[0], self._begun.get(index)  # none if it may switch
            for form, (workers, ps) in self._tasks[index].items():
                if begun in (None, form):
                    seen = job.in_forms[form]
                    rate = workers * (first.work / seen.work if seen.work else 1.0)
                    found.append(Way(index, form, seen, workers, ps, rate))
        return found

    def _share_out(self, view: View) -> None:
        """Solve the linear program; time received counts from now."""
        ways = self._ways()
        kinds = Kinds(self._site, [way.seen for way in ways])
        shares = time_shares(ways, kinds, kinds.totals(view.capacity()))
        self._shares = {(way.job, way.form): share for way, share in zip(ways, shares, strict=True)}
        self._received.clear()
        self._is_stale = False

    def _play_round(self, view: View, plan: Plan) -> None:
        """Begin a round: machines go to the pairs of a job and a form in order of priority."""
        self._round_end = view.now + self._length
        ways = {(way.job, way.form): way for way in self._ways()}
        due = [key for key in ways if self._shares.get(key, 0.0) > LEAST]
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
            elif found := capacity.start(way.seen, way.workers, way.ps):
                plan.changes[way.job] = found._replace(form=way.form)
                self._running[way.job] = way.form
                if way.job in before:  # it is not where it was, or in another form
                    capacity.leave(ways[way.job, before[way.job]].seen)
                if way.job not in self._begun and not self._jobs[way.job].may_switch:
                    self._begun[way.job] = way.form
                    self._is_stale |= len(self._tasks[way.job]) > 1
        for index in before.keys() - self._running.keys():
            plan.changes[index] = NOTHING

    def _rank(self, key: tuple[int, int]) -> tuple[float, float, int, int]:
        # Who has had no time yet comes first: its priority is infinite.
        share, received = rounding.key(self._shares[key]), self._received.get(key, 0.0)
        priority = rounding.key(share / received) if received else math.inf
        return -priority, -share, *key
