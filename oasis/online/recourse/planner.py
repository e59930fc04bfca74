"""Planning all live jobs again whenever something happens, without a clock or a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np

from oasis.model.calendar import Calendar
from oasis.model.cluster import Cluster
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.online.recourse.admission import AdmissionRule
from oasis.online.recourse.futures import SampledFutures
from oasis.online.recourse.live_job import LiveJob, PromiseRecord, crowded_by, grid_of
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.staying import goes_on, in_the_way
from oasis.online.recourse.working_plan import WorkingPlan
from oasis.online.rejection import Reason


def by_density(plan: WorkingPlan, jobs: Iterable[LiveJob]) -> list[LiveJob]:
    """Return jobs sorted: promised ones first, then the densest; equals in order of arrival."""
    # A promise comes before any utility; the key makes the order of equals the same in every run.
    return sorted(jobs, key=lambda live: (live.promise is None, -plan.density(live), live.key))


def start_over(plan: WorkingPlan, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Replan all jobs by density, until `is_over`; undo it if worse; return whether it stays."""
    # Plans that grew job by job favour the jobs that came first; this
    # one does not depend on the order of arrival.
    before, mark = plan.standing, plan.mark
    for live in plan.movable():
        plan.remove(live)
    for live in by_density(plan, plan.unplanned()):
        if is_over():
            break
        plan.insert(live)
    return keep_if_no_worse(plan, before, mark)


def ruin_and_recreate(plan: WorkingPlan, rng: np.random.Generator) -> bool:
    """Replan random jobs in noisy order of density; undo it if worse; return if it stays."""
    params = plan.params
    planned, others = plan.movable(), plan.unplanned()
    before, mark = plan.standing, plan.mark
    # One generator serves all draws, so that their order is part of what a seed means.
    leaving = draw(planned, params.most_leaving, rng)
    joining = draw(others, params.most_joining, rng)
    for live in leaving:
        plan.remove(live)
    back = leaving + joining
    # A factor instead of a summand: densities differ by orders of magnitude and stay positive.
    noise = np.exp(rng.normal(0.0, params.noise, len(back))).tolist()
    keys = {live.key: plan.density(live) * factor for live, factor in zip(back, noise, strict=True)}
    for live in sorted(back, key=lambda live: (-keys[live.key], live.key)):
        plan.insert(live)
    return keep_if_no_worse(plan, before, mark)


def keep_if_no_worse(plan: WorkingPlan, before: tuple[int, float], mark: int) -> bool:
    """Undo the changes since `mark` if `plan` is now worse than `before`; return if they stay."""
    # Promises kept first, then value. A plan as good is kept,
    # or the search would stay on a plateau.
    if plan.standing >= before:
        return True
    plan.undo(mark)
    return False


def draw(jobs: list[LiveJob], most: int, rng: np.random.Generator) -> list[LiveJob]:
    """Draw at least one and at most `most` of `jobs`; return an empty list if there are none."""
    if not jobs:
        return []
    # One job at least, or the round would change nothing.
    number = min(len(jobs), int(rng.integers(1, most + 1)))
    return [jobs[at] for at in rng.choice(len(jobs), number, replace=False).tolist()]


# Newcomers of one moment times servers: beyond it they are decided on together. One by one, each
# would have futures of its own, and try to move others out of its way for itself.
ONE_BY_ONE = 1000
# Tries to make room for all newcomers that are decided on together: this times
# `RecourseParams.tries`.
ROOM_TRIES = 5

NO_SCHEDULE = "no schedule pays beside what is promised"
REFUSED = "worth less than what it would take from other jobs"
LATE = "can no longer complete in time to be worth anything"


class Replanner:
    """The plan of all live jobs, recomputed at each event.

    With `patience` the horizon rolls: there is no last slot, the plan always reaches `horizon`
    slots ahead, and a completion counts in this number of slots after the arrival.
    """

    REMADE = ("rounds_given",)  # it is asked of the next decision

    def __init__(
        self,
        cluster: Cluster,
        horizon: int,
        *,
        commitment: Commitment = "none",
        params: RecourseParams | None = None,
        seed: int = 0,
        seconds: float | None = None,
        admission: AdmissionRule | None = None,
        patience: int | None = None,
    ) -> None:
        self.commitment = commitment
        self.params = params or RecourseParams()
        self.admission = (
            (admission or SampledFutures(seed=seed)) if commitment == "arrival" else None
        )
        if self.admission is not None:
            self.admission.reset(cluster, horizon, patience)
        self.plan = WorkingPlan(cluster, horizon, self.params, rolling=patience is not None)
        self.record = PromiseRecord()
        self.rounds_done = 0
        self.rounds_given: int | None = None
        self._cluster, self._horizon, self._patience = cluster, horizon, patience
        self.grid = grid_of(cluster)
        self._servers = sum(len(group.capacity(cluster)) for group in GROUPS)
        self.rng = np.random.default_rng(seed)
        self._seconds = seconds

    @property
    def now(self) -> int:
        """The present slot."""
        return self.plan.now

    def advance(self, now: int) -> None:
        """Count what is planned before slot `now` as done; jobs that start may get promises."""
        if now <= self.plan.now:
            return
        fresh = [live for live in self.plan.live.values() if not live.started]
        # Noted before time passes, which cuts off what was carried out.
        ends = {live.key: live.schedule.completion for live in fresh if live.schedule}
        self.plan.advance(now)
        if self.commitment == "start":
            for live in fresh:
                if live.started and live.remaining > 0:
                    live.promise = ends[live.key]

    def extend(self, reach: int) -> None:
        """Plan waiting jobs again because slots from `reach` on have come within the horizon."""
        plan = self.plan
        # A job that is worth nothing in the new slots finds no more room than it did before.
        waiting = [live for live in plan.unplanned() if live.deadline >= reach]
        for live in by_density(plan, waiting):
            plan.insert(live)

    def cancel(self, key: int) -> None:
        """Remove a job whose owner cancelled it; it does not count as given up."""
        live = self.plan.live.pop(key)
        if live.schedule is not None:
            self.plan.remove(live)
        self.record.done += live.done

    def finish(self, key: int) -> None:
        """Remove a job that is complete, as planned or earlier, and count it as completed."""
        live = self.plan.live[key]
        if live.schedule is not None:
            self.plan.remove(live)
        self._drop(live, completed=True)

    def revise(self, key: int, remaining: int) -> None:
        """Set the remaining work of a job and take it out of the plan until `replan`."""
        live = self.plan.live[key]
        if live.schedule is not None:
            self.plan.remove(live)
        live.remaining = remaining

    def keep_running(self) -> bool:
        """Replan so that jobs that must stay go on; return whether any plan changed."""
        plan = self.plan
        locked = [live for live in plan.live.values() if live.is_kept(plan.now)]
        late = [live for live in locked if not goes_on(plan, live)]
        if not late:
            return False
        for live in late:
            if live.schedule is not None:
                plan.remove(live)
        # They all had this room a moment ago, so that only plans of others can be in the way.
        for live in in_the_way(plan, late):
            plan.remove(live)
        for live in late:
            plan.insert(live)
        for live in by_density(plan, plan.unplanned()):
            plan.insert(live)
        return True

    def set_capacity(self, group: TaskGroup, server: int, holds: bool) -> None:
        """Restore a server if `holds`, else lose it: its jobs leave the plan until `replan`."""
        if not holds:
            # A plan on a lost server is no plan: its jobs look for
            # other places with what they have left.
            for live in list(self.plan.using(group, server)):
                self.plan.remove(live)
        servers = group.of(self.plan.ledger)
        if holds:
            bounds, capacity = self.plan.bounds, group.capacity(self._cluster)[server]
            servers.set_capacity(server, capacity, group.of(bounds) if bounds else None)
        else:
            servers.lose(server)

    def plan_around(self, calendar: Calendar) -> bool:
        """Close machines by `calendar`; their jobs leave the plan; return whether it is new."""
        plan = self.plan
        if calendar == plan.ledger.calendar:
            return False
        for live in crowded_by(calendar, plan.ledger, plan.planned()):
            self.plan.remove(live)
        return True

    def replan(
        self, arrivals: Mapping[int, Job], forms: Mapping[int, int] | None = None
    ) -> dict[int, str]:
        """Replan with new jobs by key; return reasons of rejected and abandoned jobs by key."""
        begin = perf_counter()
        plan, forms = self.plan, forms or {}
        gone = {key: why for key, job in arrivals.items() if (why := self._unmet(job))}
        arrivals = {key: job for key, job in arrivals.items() if key not in gone}
        # Jobs that lost their place and have a promise choose first: to all
        # others a later completion costs utility alone.
        for live in by_density(plan, plan.unplanned()):
            if live.promise is not None:
                plan.insert(live)
        if self.admission is None:
            floor = self.params.min_utility_fraction
            fresh = [self._add(key, job, floor, forms.get(key, 0)) for key, job in arrivals.items()]
            for live in by_density(plan, fresh):
                plan.insert(live)
        else:
            gone |= self._admit(arrivals, forms, self.admission)
        # With a rule of admission the plan is one of promises: it is packed
        # anew only where one of them has no place.
        displaced = any(live.promise is not None for live in plan.unplanned())
        if self.admission is None or displaced:
            start_over(plan)
        # Before a promise is broken, the search has had its rounds to keep it.
        self._improve(begin)
        self._break_promises()
        return gone | self.give_up()

    def give_up(self) -> dict[int, str]:
        """Remove jobs that can earn nothing any more; return a reason for each, by key."""
        now = self.plan.now
        hopeless = [live for live in self.plan.unplanned() if live.earliest(now) > live.last]
        for live in hopeless:
            self._drop(live, completed=False)
        return {live.key: LATE for live in hopeless}

    def report(self) -> dict[str, Any]:
        """Return the record of promises as if the present plan were carried out to its end."""
        final = deepcopy(self.record)
        for live in self.plan.live.values():
            final.leave(live, completed=live.schedule is not None)
            final.done += live.schedule.worker_slots if live.schedule else 0
        return final.to_dict()

    def _improve(self, begin: float) -> None:
        """Run rounds of the search, until the limit in seconds since `begin` has passed."""
        self.rounds_done = 0
        rounds = self.params.rounds if self.rounds_given is None else self.rounds_given
        for _ in range(rounds):
            if self._is_late(begin):
                break
            ruin_and_recreate(self.plan, self.rng)
            self.rounds_done += 1
        # Compared with what was asked for, also while a journal is
        # repeated: the count comes out the same.
        self.record.cut_short += self.rounds_done < self.params.rounds

    def _is_late(self, begin: float) -> bool:
        # A decision that is repeated does the recorded rounds, however fast this machine is.
        """Whether the limit in seconds since `begin` has passed."""
        limit = self._seconds if self.rounds_given is None else None
        return limit is not None and perf_counter() - begin >= limit

    def _unmet(self, job: Job) -> str | None:
        """Return why no machine admits any form of `job` (the first); None if one does."""
        unmet = [self._cluster.unmet(form) for form in job.in_forms]
        return f"{Reason.LABELS}: {unmet[0]}" if all(unmet) else None

    def _add(self, key: int, job: Job, floor: float, form: int) -> LiveJob:
        """Make a live job of `job`, whose first form is `form`, and add it to the plan."""
        end = self._horizon if self._patience is None else job.arrival + self._patience
        live = LiveJob.of(key, job, self._cluster, end, self.grid, floor, form)
        self.plan.live[key] = live
        return live

    def _drop(self, live: LiveJob, completed: bool) -> None:
        del self.plan.live[live.key]
        self.record.leave(live, completed)

    def _admit(
        self, arrivals: Mapping[int, Job], forms: Mapping[int, int], rule: AdmissionRule
    ) -> dict[int, str]:
        """Promise a completion to jobs with a schedule that pays; return reasons of refusals."""
        plan = self.plan
        if len(arrivals) > 1 and len(arrivals) * self._servers > ONE_BY_ONE:
            return self._admit_together(arrivals, forms, rule)
        refused: dict[int, str] = {}
        for key, job in arrivals.items():
            bounds = rule.learn(job)
            # Setting prices touches every server in every slot; the
            # same object means the same prices.
            if bounds is not None and bounds is not plan.bounds:
                plan.set_prices(bounds)
            live = self._add(key, job, rule.min_utility_fraction, forms.get(key, 0))
            mark = plan.mark
            # Moving others is tried only where the newcomer finds no place beside them.
            is_planned = plan.insert(live) or self._make_room(live, self.params.tries)[0]
            if is_planned and rule.accepts(live, plan):
                self._promise(live, rule)
                continue
            plan.undo(mark)
            refused[key] = self._refuse(live, is_planned)
        return refused

    def _promise(self, live: LiveJob, rule: AdmissionRule) -> None:
        """Promise `live` its planned completion, or the last slot worth the rule's share."""
        assert live.schedule is not None
        planned, share = live.schedule.completion, rule.promise_share
        live.promise = planned if share is None else live.latest_worth(share, planned)

    def _refuse(self, live: LiveJob, is_planned: bool) -> str:
        """Remove a newcomer and return why; `is_planned`: it had a schedule until now."""
        self._drop(live, completed=False)
        # A job that would be late on an idle cluster, too, is told that, whatever the rule said.
        if live.earliest(self.plan.now) > live.last:
            return LATE
        return REFUSED if is_planned else NO_SCHEDULE

    def _admit_together(
        self, arrivals: Mapping[int, Job], forms: Mapping[int, int], rule: AdmissionRule
    ) -> dict[int, str]:
        """As `_admit`, for many jobs: the densest choose first, and one set of futures decides."""
        plan, bounds = self.plan, None
        for job in arrivals.values():
            bounds = rule.learn(job)
        if bounds is not None and bounds is not plan.bounds:
            plan.set_prices(bounds)
        floor = rule.min_utility_fraction
        fresh = [self._add(key, job, floor, forms.get(key, 0)) for key, job in arrivals.items()]
        fresh, tries = by_density(plan, fresh), ROOM_TRIES * self.params.tries
        for live in fresh:
            if not plan.insert(live):
                # Sparse ones that find no room when all tries are used up would seldom pay.
                _, used = self._make_room(live, min(tries, self.params.tries))
                tries -= used
        planned = [live for live in fresh if live.schedule is not None]
        accepted = rule.accepts_of(planned, plan)
        refused = {}
        for live in fresh:
            is_planned = live.schedule is not None
            if live.key not in accepted:
                if is_planned:
                    plan.remove(live)
                refused[live.key] = self._refuse(live, is_planned)
        for live in fresh:
            if live.key in accepted:
                # What was refused left room: the best completion may be earlier now.
                before = live.schedule
                assert before is not None
                plan.remove(live)
                if not plan.insert(live):  # prices have risen since, but it was accepted
                    plan.put(live, before)
                self._promise(live, rule)
        return refused

    def _make_room(self, newcomer: LiveJob, tries: int) -> tuple[bool, int]:
        """Plan `newcomer` by moving others within promises; return success, and tries made."""
        plan = self.plan
        # Not even an idle cluster would do: no promised job needs to move.
        if newcomer.earliest(plan.now) > newcomer.deadline:
            return False, 0
        others = plan.movable()
        for tried in range(tries if others else 0):
            mark = plan.mark
            leaving = draw(others, self.params.most_leaving, self.rng)
            for live in leaving:
                plan.remove(live)
            # Earliest deadline first: the jobs with most time left can give way to the others.
            leaving.sort(key=lambda live: (live.deadline, live.key))
            # Inserted by deadline, a job that left finds a place within
            # its promise or the whole trial is undone.
            if plan.insert(newcomer) and all(plan.insert(live) for live in leaving):
                return True, tried + 1
            plan.undo(mark)
        return False, tries

    def _break_promises(self) -> None:
        """Drop and count promises of jobs without a schedule, and plan these jobs without."""
        for live in self.plan.unplanned():
            if live.promise is not None:
                self.record.broken.append(live.job.id)
                # Without the promise its deadline is its last worthy slot: it may find a place now.
                live.promise = None
                self.plan.insert(live)
