"""OASiS, Algorithm 1: price each arriving job, admit it if it is worth more than it displaces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np

from oasis.model import document
from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.cluster import Cluster
from oasis.model.decision import Decision, Explanation
from oasis.model.errors import InputError, InstanceError, describe, located_at
from oasis.model.files import save_state, saved_state
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance, expect_instance
from oasis.model.instance_file import (
    cluster_from_dict,
    cluster_to_dict,
    job_from_dict,
    job_to_dict,
)
from oasis.model.job import Job
from oasis.model.remaining import later, remaining_job
from oasis.model.schedule import COUNT, Schedule
from oasis.model.validation import LARGEST_SIZE, integer, number
from oasis.online import rolling
from oasis.online.answers import Planned, Quote, change_between
from oasis.online.best_schedule import admitted, found_by
from oasis.online.commitments import Commitments
from oasis.online.ledger import Ledger, LedgerHistory
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION, PriceBounds
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.rejection import explanation, schedule_cost
from oasis.online.search import Granularity, Search, check_granularity, searches
from oasis.scheduling.calendar import held_back
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocation_in, allocations, cluster_of

CHECKPOINT = "oasis-scheduler 1"
REFUSAL = "not admitted; the decision says why"  # finding the reason may take time
GIVEN_UP = "given up: it can earn nothing any more"


@dataclass(frozen=True, slots=True)
class RollingHorizon:
    """Arguments of `OASiS.rolling` beside the lookahead."""

    bounds: PriceBounds | Callable[[Cluster], PriceBounds]
    patience: int | None
    keep_admitted: bool
    end: int | None


class OASiS:
    """Jobs are admitted if their best schedule is worth more than it costs (Algorithm 1).

    Parameters
    ----------
    cluster : Cluster
        Servers and the length of a slot.
    horizon : int
        Number of slots T.
    bounds : PriceBounds
        U and L: exact (`PriceBounds.from_instance`) or estimated from past jobs
        (`PriceBounds.from_jobs`).
    granularity : {"worker-slot", "chunk"}
        Unit in which Algorithm 2 splits work over slots.

    Notes
    -----
    Decisions are irrevocable: `submit` commits resources for the whole life of an admitted job.
    Jobs are submitted in order of arrival. As a policy (`oasis.simulate`) it submits what arrives
    and carries out, slot by slot, what it decided.

    Attributes
    ----------
    decisions : list of Decision
        One for each job, in order of arrival.
    decision_seconds : list of float
        The measured time of each decision that it made as a policy.
    on_decision : callable or None
        Called for each of these decisions.

    References
    ----------
    arXiv 1801.00936, Algorithms 1 and 2, price functions (22)-(26).

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.OASiS.from_instance(instance)
    >>> decision = scheduler.submit(instance.jobs[0])
    >>> decision.admitted, decision.completion
    (True, 8)
    >>> print(f"{decision.utility:.2f} - {decision.cost:.2f} = {decision.payoff:.2f}")
    28.05 - 0.35 = 27.70
    """

    name = "oasis"
    told_remaining = True
    plans_in_model = True
    knows_forms = True

    def __init__(
        self,
        cluster: Cluster,
        horizon: int,
        bounds: PriceBounds,
        *,
        granularity: Granularity = "worker-slot",
    ) -> None:
        check_granularity(granularity)
        for name, value, kind in (("cluster", cluster, Cluster), ("bounds", bounds, PriceBounds)):
            if not isinstance(value, kind):
                expected = f"expected oasis.{kind.__name__}, as OASiS.from_instance makes it"
                raise TypeError(f"{name}: {expected}, got {describe(value)}")
        if any(len(group.of(bounds).log_lower) != len(cluster.resources) for group in GROUPS):
            raise InputError("bounds", f"expected one for each of {', '.join(cluster.resources)}")
        self.cluster = cluster
        self.horizon = integer(horizon, "horizon", minimum=1, maximum=LARGEST_SIZE)
        self.bounds = bounds
        self.granularity: Granularity = granularity
        self.now = 0
        self._bounds_from: str | None = None
        self._ids: set[str] = set()
        self._history = LedgerHistory(partial(Ledger.idle, cluster, horizon, bounds), bounds)
        self._begin(None)

    def _begin(self, window: RollingHorizon | None) -> None:
        """Reset all decisions."""
        self._window = window
        self.settles = window is None
        # on a horizon that rolls, what was really done is followed slot by slot
        self.slotted = window is not None
        self.decisions: list[Decision] = []
        self.decision_seconds: list[float] = []
        self.on_decision: Callable[[Decision], None] | None = None
        self._due: dict[int, dict[int, Allocation]] = {}  # slot -> job -> what it holds from there
        self._decided: dict[int, Decision] = {}
        self.late: set[int] = set()
        self.withdrawn: list[int] = []
        self._calendar = EVER_OPEN
        # Late jobs and their forms; None: it has not begun in any.
        self._overdue: dict[int, int | None] = {}

    @property
    def ledger(self) -> Ledger:
        """Committed amounts and their prices."""
        return self._history.present if self.settles else self._commitments.ledger

    @classmethod
    def from_instance(
        cls,
        instance: Instance,
        *,
        normalize: bool = True,
        min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION,
        scale: float = 1.0,
        granularity: Granularity = "worker-slot",
        bounds: LearnedPrices | str | None = None,
    ) -> OASiS:
        """Scheduler with the exact bounds of `instance`, U/L multiplied by `scale` (Fig. 6).

        These bounds follow what the jobs report, so a job can gain by a false utility; with bounds
        fixed beforehand no false priority pays (docs/theory, "Truth in bids").

        With `bounds`, learned prices or their file, U and L are those of past days instead, and
        so are `normalize` and `min_utility_fraction`.
        """
        expect_instance(instance)
        learned = learned_from(bounds, "bounds")
        if learned is None:
            own = PriceBounds.from_instance(
                instance, normalize=normalize, min_utility_fraction=min_utility_fraction
            )
        else:
            learned.check_resources(instance.cluster.resources, instance.slot_seconds)
            own = learned.bounds
        scale = number(scale, "scale", above=True)
        if scale != 1.0:
            own = own.scaled(scale)
        scheduler = cls(instance.cluster, instance.horizon, own, granularity=granularity)
        if learned is not None:
            scheduler._bounds_from = bounds if isinstance(bounds, str) else learned.name
        return scheduler

    @classmethod
    def rolling(
        cls,
        lookahead: int,
        bounds: PriceBounds | Callable[[Cluster], PriceBounds],
        *,
        patience: int | None = None,
        keep_admitted: bool = False,
        end: int | None = None,
    ) -> Self:
        """OASiS as a policy on a horizon that rolls, on whatever machines it meets.

        A job keeps the schedule that it was admitted with. Where a server is lost or its work
        turns out to be another, the rest is placed by Algorithm 2 at the prices of the moment.

        Parameters
        ----------
        lookahead : int
            Slots that the plan reaches ahead, the present one included.
        bounds : PriceBounds or callable
            U and L, or what computes them for a cluster.
        patience : int, optional
            Number of slots after the arrival in which a completion counts; it matters only for
            jobs that are placed again. Default: twice `lookahead`.
        keep_admitted : bool
            Whether an admitted job for whose rest nothing pays any more is kept: the rest is
            decided on once more as a job that arrives now, and if that is not admitted either, it
            is brought to its end with what the plan leaves free. Otherwise it is given up.
        end : int, optional
            Completions from this slot on are worth nothing, as in an instance.

        Examples
        --------
        >>> import oasis
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> bounds = oasis.PriceBounds.from_instance(instance)
        >>> run = oasis.simulate(instance, OASiS.rolling(instance.horizon, bounds))
        >>> run.admitted, run.bounds is bounds
        (3, True)
        """
        if not (isinstance(bounds, PriceBounds) or callable(bounds)):
            expected = "expected oasis.PriceBounds, or what computes them for a cluster"
            raise TypeError(f"bounds: {expected}, got {describe(bounds)}")
        policy = cls.__new__(cls)
        policy.horizon = integer(lookahead, "lookahead", minimum=1)
        policy.granularity, policy.now = "worker-slot", 0
        policy._bounds_from, policy._ids = None, set()
        if isinstance(bounds, PriceBounds):
            policy.bounds = bounds
        policy._begin(RollingHorizon(bounds, patience, keep_admitted, end))
        return policy

    def __repr__(self) -> str:
        if self._window is not None:
            return f"OASiS.rolling(lookahead={self.horizon})"
        admitted = sum(decision.admitted for decision in self.decisions)
        seen = f"{len(self.decisions)} jobs seen, {admitted} admitted"
        options = f"granularity={self.granularity!r}, alpha={self.bounds.alpha:.6g}"
        return f"OASiS({seen}, slot {self.now} of {self.horizon}, {options})"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that this scheduler was made with, as plain data."""
        if self._window is not None:
            known = self._window.bounds if isinstance(self._window.bounds, PriceBounds) else None
            return {
                "lookahead": self.horizon,
                "patience": self._window.patience,
                "end": self._window.end,
                "keep_admitted": self._window.keep_admitted,
                "alpha": None if known is None else known.alpha,
            }
        return {
            "bounds": self._bounds_from,
            "granularity": self.granularity,
            "normalize": self.bounds.normalize,
            "min_utility_fraction": self.bounds.min_utility_fraction,
            "scale": self.bounds.scale,
        }

    def quote(self, job: Job) -> Decision:
        """Say how `submit` would decide on `job` now; nothing is committed.

        Why a job is rejected is found out when `reason` or `rejection` is asked for. It is the
        reason at the moment of the decision, whatever has been committed since.

        Raises
        ------
        InstanceError
            If the job does not fit the cluster's resources, the horizon or the order of arrival.
        """
        if not isinstance(job, Job):
            raise TypeError(f"job: expected an oasis.Job, got {describe(job)}")
        self._check(job)
        # Alg. 1, l. 5: the best schedule at the prices of this moment (21).
        found = found_by(self._searches(job, self.ledger))
        if found is None:
            # Finding the reason takes another search; the number of commits
            # is enough to come back to this moment.
            return Decision.rejected(job.id, partial(self._explain, job, self._history.commits))
        return admitted(job.id, found)

    def submit(self, job: Job) -> Decision:
        """Decide on `job` and, if it is admitted, commit its schedule (Alg. 1, l. 5-12)."""
        decision = self.quote(job)
        # Alg. 1, l. 6-12: charge the schedule and raise the prices of what it
        # touches. Nothing of this is ever taken back.
        if decision.schedule is not None:
            self._history.commit(job, decision.schedule)
        self._record(decision, job.arrival)
        return decision

    def _searches(self, job: Job, ledger: Ledger) -> list[Search]:
        return searches(job, ledger, self.granularity, self.bounds.min_utility_fraction)

    def _explain(self, job: Job, commits: int) -> Explanation:
        return explanation(self._searches(job, self._history.after(commits)))

    def _record(self, decision: Decision, arrival: int) -> None:
        self.now = arrival
        self._ids.add(decision.job_id)
        self.decisions.append(decision)

    def _check(self, job: Job) -> None:
        self.cluster.check(job)
        # Prices say what earlier jobs took: a job that comes late in
        # the order would see those of later ones.
        if not self.now <= job.arrival < self.horizon:
            expected = f"expected {self.now}..{self.horizon - 1}, in order of arrival"
            raise InstanceError("arrival", expected, job.arrival, hint=f" (job {job.id!r})")
        if job.id in self._ids:
            raise InstanceError("id", "expected a new job", job.id, hint=" again")

    # -- as a policy -------------------------------------------------------------------------------

    def reset(self, site: Site) -> None:
        """Begin to carry out decisions on `site`; earlier commitments stay."""
        self._site = site
        self._due = {}
        self.decision_seconds = []
        window = self._window
        if window is not None:
            if not site.slotted:
                raise InputError("", "policy oasis needs slots")
            self.cluster = cluster_of(site)
            found = window.bounds
            self.bounds = found if isinstance(found, PriceBounds) else found(self.cluster)
            self._held = Commitments(self.cluster, self.horizon, self.bounds, window.patience)
            self._servers = rolling.servers_of(site)
            self._begin(window)

    def decide(self, view: View) -> Plan:
        """Submit the arrivals, and carry out the plan of this slot."""
        if self._window is not None:
            return self._decide_rolling(view, self._window, self._held)
        plan = Plan()
        for job in view.arrived:
            begin = perf_counter()
            decision = self.submit(rolling.source_of(job, self.name))
            self.decision_seconds.append(perf_counter() - begin)
            if self.on_decision is not None:
                self.on_decision(decision)
            if decision.schedule is None:
                plan.rejected[job.index] = REFUSAL
            else:
                self._note(job.index, decision.schedule)
        # A job that ended early may still have changes here; it is not there any more to make them.
        active = {job.index for job in view.jobs()}
        due = self._due.pop(int(view.now), {})
        plan.changes = {index: what for index, what in due.items() if index in active}
        # Between two changes all jobs keep what they hold: no call is needed.
        plan.wake_at = min(self._due, default=None)
        return plan

    def _note(self, index: int, schedule: Schedule) -> None:
        """Record the changes of allocation in `schedule`, slot by slot."""
        planned = allocations(schedule, self._site)
        held = NOTHING
        for slot, allocation in planned.items():
            # Only changes are noted, so that a long schedule of equal slots is one entry.
            if allocation != held:
                self._due.setdefault(slot, {})[index] = held = allocation
            # A pause or the end: in the next slot the job must not go on with what it held.
            if slot + 1 not in planned:
                self._due.setdefault(slot + 1, {})[index] = held = NOTHING

    # -- as a policy on a horizon that rolls -------------------------------------------------------

    @property
    def _commitments(self) -> Commitments:
        if self.settles:
            raise InputError("oasis", "expected a horizon that rolls (OASiS.rolling)")
        return self._held

    def _decide_rolling(self, view: View, window: RollingHorizon, held: Commitments) -> Plan:
        """Process events, decide on arrivals, and carry out the plan of this slot."""
        plan, now = Plan(), int(view.now)
        self._decided = {}
        held.broken.clear()
        # Time first, then completions, losses, returns, corrections of work, and arrivals last:
        # each step may free or take what the next ones count on.
        held.advance(now)
        for index in (*self.withdrawn, *(job.index for job in view.finished)):
            held.leave(index)
            self._overdue.pop(index, None)
        self.withdrawn = []
        before = dict(held.live)
        # all losses first: what is placed again must not meet a server that is lost as well
        dropped = held.lose([self._servers[machine] for machine in view.lost])
        dropped += held.plan_around(self._calendar)
        # Returned machines count at once, but no job moves back:
        # a schedule that can be kept is kept.
        for machine in view.returned:
            held.restore_server(*self._servers[machine])
        for job in view.jobs():
            if job.index in held.live:
                left = rolling.work_left(job.in_form(held.live[job.index].form), view)
                if rolling.differs(held.live[job.index], left):
                    dropped += [] if held.revise(job.index, left) else [job.index]
        # Taken before the jobs are tried once more: these have broken
        # their promise, whatever comes of it.
        self.late = set(held.broken)
        for job in [job for job in view.jobs() if job.index in dropped]:
            if not window.keep_admitted:
                plan.rejected[job.index] = GIVEN_UP
                continue
            self.late.add(job.index)
            # As a job that arrives now it may wait longer than its first arrival allowed.
            form = before[job.index].form
            rest = self._rest(job, form, view, window.end)
            if held.submit(job.index, rest, form).schedule is None:
                has_begun = view.attained(job) > 0 or view.allocation(job).workers
                self._overdue[job.index] = form if has_begun else None
        for job in view.arrived:  # after those that were admitted before them
            source = rolling.source_of(job, self.name)
            decision = held.submit(job.index, _arriving(source, now, window.end))
            self._decided[job.index] = decision
            if decision.schedule is None:
                # On a cluster that begins anew, old jobs arrive once more:
                # they are not turned away a second time.
                if window.keep_admitted and view.was_admitted(job):
                    self._overdue[job.index] = None
                    self.late.add(job.index)
                else:
                    plan.rejected[job.index] = decision.reason or "rejected"
        self._carry_out(view, plan, held)
        return plan

    def _rest(self, job: PolicyJob, form: int, view: View, end: int | None) -> Job:
        """Remaining work of a job admitted in this form, as a job that arrives now."""
        left, reach = rolling.work_left(job.in_form(form), view), rolling.reach_of(self.horizon)
        source = rolling.source_of(job, self.name).in_form(form)
        return remaining_job(source, left, int(view.now), reach, end)

    def _carry_out(self, view: View, plan: Plan, held: Commitments) -> None:
        """Add the allocations of this slot; overdue jobs share what the planned ones leave."""
        room = Room(self._site, view.capacity(), view.down())
        rest, taken = [], []
        for job in view.jobs():
            if job.index in plan.rejected:
                continue
            if job.index in self._overdue:
                rest.append(job)
                continue
            live = held.live.get(job.index)
            wanted = NOTHING
            if live is not None and live.schedule is not None:
                wanted = allocation_in(live.schedule, held.now, self._site)
            # Planned jobs come first; what is overdue takes only
            # what their plans leave in this slot.
            room.hold(job.in_form(wanted.form), wanted)
            taken.append((job.in_form(wanted.form), wanted))
            if wanted != view.allocation(job):
                plan.changes[job.index] = wanted
        for job in rest:
            kept = held_back(self._calendar, held.now, self._site, taken, job.id)
            wanted = self._leftover(job, view, room.without(kept))
            room.occupy(job.in_form(wanted.form), wanted)
            taken.append((job.in_form(wanted.form), wanted))
            if wanted != view.allocation(job):
                plan.changes[job.index] = wanted

    def _leftover(self, job: PolicyJob, view: View, room: Room) -> Allocation:
        """Find a gang beside the plan of this slot; tasks that are held stay where they fit.

        It is in the form of the job, or in the first that fits if it has not begun in any.
        """
        held, form = view.allocation(job), self._overdue[job.index]
        # A job that may stay where it is need not be started again.
        if held.workers and room.hold(job.in_form(held.form), held):
            return held
        for k in range(len(job.in_forms)) if form is None else [form]:
            found = _largest(job.in_form(k), view, room)
            if found is not None:
                self._overdue[job.index] = k
                return found._replace(form=k)
        return NOTHING

    def withdraw(self, job: PolicyJob) -> None:
        """Remove `job`, which its owner has cancelled."""
        self.withdrawn.append(job.index)

    def plan_around(self, calendar: Calendar) -> None:
        """Plan around `calendar` from the next decision on."""
        if calendar and self.settles:
            raise InputError("calendar", "expected a horizon that rolls (OASiS.rolling)")
        self._calendar = calendar

    def last_decisions(self) -> Mapping[int, Decision]:
        """Decisions on the latest arrivals, by index of the job."""
        return self._decided

    def promised(self, job: PolicyJob) -> int | None:
        """The slot by which `job` is to be complete; None if nothing was promised."""
        live = self._commitments.live.get(job.index)
        return None if live is None else live.promise

    def ahead(self, slots: int) -> Mapping[int, list[tuple[int, Allocation]]]:
        """Planned allocations of each job in the next `slots` slots, by index of the job."""
        held = self._commitments
        return rolling.held_ahead(held.live, held.now + slots, self._site)

    def planned(self) -> Planned:
        """Schedule and planned utility of every live job, by id."""
        return rolling.planned(self._commitments.live.values())

    def foresee(self, job: Job, now: int) -> Quote:
        """Return the decision that `job` would get if it arrived in slot `now`; nothing changes."""
        copied = self._commitments.copy()
        end = None if self._window is None else self._window.end
        copied.advance(now)
        before = rolling.planned(copied.live.values())
        # A key that no live job has; the copy is thrown away, so it may be given again.
        key = max(copied.live, default=-1) + 1
        decision = copied.submit(key, _arriving(job, now, end))
        after = rolling.planned(copied.live.values())
        return Quote(decision, change_between(before, after, job.id))

    def rehearsed(self) -> Self:
        """An independent copy."""
        kept: list[object] = [self.cluster, self.bounds, self._window, self._site]
        return deepcopy(self, {id(thing): thing for thing in kept})

    def making(self) -> dict[str, Any]:
        """Plain data from which `made` builds the same policy."""
        if self._window is None:
            raise InputError("oasis", "expected a horizon that rolls (OASiS.rolling)")
        return {
            "lookahead": self.horizon,
            "bounds": self.bounds.to_dict(),
            "patience": self._window.patience,
            "keep_admitted": self._window.keep_admitted,
            "end": self._window.end,
        }

    @classmethod
    def made(cls, making: Mapping[str, Any]) -> Self:
        """A policy as it was made; the inverse of `making`."""
        given = dict(making)
        return cls.rolling(
            given.pop("lookahead"), PriceBounds.from_dict(given.pop("bounds")), **given
        )

    def state(self) -> dict[str, Any]:
        """Return plain data that `restore` accepts."""
        late, forms = list(self._overdue), list(self._overdue.values())
        told: dict[str, Any] = {"overdue_forms": forms} if any(form != 0 for form in forms) else {}
        if calendar := self._commitments.ledger.calendar:
            told["calendar"] = calendar.to_dict()
        return {**self._commitments.state(), "overdue": late, **told}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the data of `state`, on the same machines."""
        self._commitments.restore(state)
        if "calendar" in state:
            self.plan_around(Calendar.from_dict(state["calendar"]))
            self._commitments.keep(self._calendar)
        late = state["overdue"]
        forms = state.get("overdue_forms", [0] * len(late))
        self._overdue = dict(zip(late, forms, strict=True))

    # -- what lasts --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to the file `path`; it appears whole or not at all.

        Prices and committed amounts are not stored: they follow from the schedules, to the last
        bit, as `load` commits them again.

        Raises
        ------
        InputError
            If the horizon rolls (`oasis.LiveScheduler` saves such a scheduler), or an admitted job
            has a utility that the file format does not know.
        """
        if self._window is not None:
            raise InputError("oasis", "expected a fixed horizon, or oasis.LiveScheduler to save it")
        jobs = self._history.jobs
        state = {
            "horizon": self.horizon,
            "now": self.now,
            "granularity": self.granularity,
            "bounds": self.bounds.to_dict(),
            "bounds_from": self._bounds_from,
            "cluster": cluster_to_dict(self.cluster),
            "decisions": [
                {**told.to_dict(), "job": job_to_dict(next(jobs)) if told.admitted else None}
                for told in self.decisions
            ],
        }
        save_state(path, CHECKPOINT, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OASiS:
        """Read a scheduler that `save` wrote; it decides as the saved one would have, bit for bit.

        Raises
        ------
        OasisError
            If the file is no saved scheduler, or a decision in it does not follow from those
            before it; names the entry.
        """
        state = saved_state(path, CHECKPOINT)
        with located_at(source=path):
            scheduler = cls(
                document.entry(state, "cluster", cluster_from_dict),
                document.entry(state, "horizon", document.count),
                document.entry(state, "bounds", PriceBounds.from_dict),
                granularity=document.entry(state, "granularity", lambda value: value),
            )
            source = document.entry(state, "bounds_from", document.optional(document.text))
            scheduler._bounds_from = source
            document.entry(state, "decisions", document.list_of(scheduler._decide_again))
            first, last = scheduler.now, scheduler.horizon - 1
            scheduler.now = integer(state.get("now"), "now", minimum=first, maximum=last)
        return scheduler

    def _decide_again(self, data: Any) -> None:
        """Take over a saved decision, if it follows from its schedule and those before it."""
        told = Decision.from_dict(data)
        job = document.entry(data, "job", document.optional(job_from_dict))
        found = Decision(told.job_id, False, reason=told.reason, rejection=told.rejection)
        if told.schedule is not None and job is not None:
            with located_at("job"):
                self._check(job)
            with located_at("schedule"):
                self._check_rows(told.schedule, job)
            with np.errstate(over="ignore"):  # at bounds of e^709, which no decision follows from
                cost = schedule_cost(told.schedule, job, self.ledger).total
            self._history.commit(job, told.schedule)
            if self.ledger.crowded(job, told.schedule):
                raise InputError("schedule", "expected no more than the servers have left")
            end = told.schedule.completion
            utility = float(job.in_form(told.schedule.form).utility(end - job.arrival))
            found = Decision(job.id, True, utility - cost, utility, cost, end, told.schedule)
        elif told.job_id in self._ids:
            raise InputError("job_id", "expected a new job", told.job_id)
        # Another machine may round the last bit of a cost in another way.
        slack = 1e-9 * abs(found.utility)
        for name in ("payoff", "utility", "cost"):
            its = getattr(found, name)
            if not abs(getattr(told, name) - its) <= slack:  # nor if one of them is no number
                raise InputError(name, f"expected {its}, as it follows", getattr(told, name))
            found = replace(found, **{name: getattr(told, name)})
        if found != told:
            expected = "expected a schedule and its completion if it is admitted, otherwise none"
            raise InputError("", expected, told)
        self._record(told, self.now if job is None else job.arrival)

    def _check_rows(self, schedule: Schedule, job: Job) -> None:
        """Raise `InputError` unless the rows could be those of a schedule of `job`."""
        integer(schedule.form, "form", maximum=len(job.in_forms) - 1)
        for group in GROUPS:
            rows, servers = group.placed(schedule), len(group.capacity(self.cluster))
            last = self.horizon - 1, servers - 1, job.in_form(schedule.form).chunks
            again = (rows[1:, :COUNT] == rows[:-1, :COUNT]).all(axis=1)
            if (rows < (job.arrival, 0, 1)).any() or (rows > last).any() or again.any():
                expected = f"slots {job.arrival}..{last[0]}, servers 0..{last[1]}, each place once"
                raise InputError(f"{group}", f"expected {expected}, with 1..{last[2]} tasks")
        if not len(schedule.workers):
            raise InputError("workers", "expected at least one")


def _arriving(job: Job, now: int, end: int | None) -> Job:
    """`job` as it arrives now; completions from slot `end` on are worth nothing."""
    if end is None:
        return job
    # As in an instance, none must be planned after the last slot.
    left = max(0, end - now)
    return replace(job, utility=later(job.utility, 0, left + 1, left))


def _largest(job: PolicyJob, view: View, room: Room) -> Allocation | None:
    """The largest gang of a job in one form that fits; None if none does."""
    most = min(job.max_workers, max(job.min_workers, rolling.work_left(job, view)))
    # The largest gang is done soonest, and no more workers than work is left can be of use.
    for workers in range(most, job.min_workers - 1, -1):
        found = BestFit().place(room, job, workers, job.ps_needed(workers))
        if found is not None:
            return found
    return None
