"""Recourse as a policy: the plan of all live jobs, carried out slot by slot."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, fields, replace
from numbers import Real
from typing import Any, Self, get_args

import numpy as np

from oasis.model.decision import Decision
from oasis.model.errors import InputError
from oasis.model.groups import TaskGroup
from oasis.model.instance import Instance, expect_instance
from oasis.model.job import Job, remaining_job
from oasis.model.summary import called
from oasis.model.utility import later
from oasis.model.validation import LARGEST_SIZE, integer
from oasis.online import rolling
from oasis.online.answers import WAITS, Quote, change_between
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR, AdmissionRule, AtPrices
from oasis.online.recourse.futures import DEFAULT_SAMPLES
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.recourse.live_job import CurrentAllocation, LiveJob, PromiseRecord
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.planner import Replanner
from oasis.online.recourse.rules import (
    RuleName,
    admission_rule,
    check_unused,
    rule_name,
)
from oasis.online.recourse.staying import kinds_of, stay
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocation_in, cluster_of


class Recourse(rolling.LivePlanner):
    """Plans all live jobs again at each arrival and at each loss or return of a server.

    It may move, pause and, as far as nothing was promised, give up what it planned before; work
    that was done counts. Jobs are inserted by Algorithm 2, plans improved by ruin and recreate.

    Parameters
    ----------
    commitment : {"arrival", "start", "none"}
        ``arrival``: an admitted job completes by the slot it was promised at its arrival, though
        its schedule may move; ``start``: once it has run, a job completes by the slot planned
        when it first ran; ``none``: a job may be given up at any time.
    seed : int
        Seed of the search; the same input and seed give the same decisions.
    rounds : int, optional
        Rounds of ruin and recreate in each decision; overrides that of `params`.
    seconds : float, optional
        No round begins later than this after the decision began; the report counts such decisions.
    admission : {"futures", "learned", "oasis"} or AdmissionRule, optional
        Who is admitted under commitment on arrival: ``futures``: a job worth more than it takes
        from sampled futures; ``learned``: a job worth more than its schedule costs at learned
        prices; ``oasis``: a job that pays at OASiS's prices. Default: ``oasis`` where
        `bounds` are given, ``learned`` where `prices` are, else ``futures``.
    prices : LearnedPrices or path, optional
        What `offline.learn_prices` or ``oasis learn`` found in past days: jobs for ``futures``,
        prices for ``learned``, U and L for ``oasis``. ``learned`` needs it; the others otherwise
        learn from the jobs that have arrived.
    samples : int
        Futures that are sampled for each decision.
    admission_floor : float
        Under commitment on arrival, only completions worth at least this fraction of the job's
        best are promised; not used where `admission` is a rule of your own.
    bounds : PriceBounds, optional
        U and L for ``oasis``.
    params : RecourseParams, optional
        How plans are searched for and compared.

    Attributes
    ----------
    late : set of int
        Jobs whose promise the last decision broke.
    withdrawn : list of int
        Jobs that their owners took back since the last decision.
    rounds_given : int or None
        Exact number of rounds of the search in the next decisions: it repeats decisions that were
        made under a limit in seconds.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, Recourse.from_instance(instance, "arrival"))
    >>> run.admitted, run.report["broken_promises"]
    (2, [])
    >>> instance = oasis.generate("testbed", jobs=8, seed=2)
    >>> run = oasis.simulate(instance, Recourse(rounds=3))
    >>> printed = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> run.total_utility > printed.total_utility
    True
    """

    name = "recourse"
    keeps_run_times = True
    REMADE = ("_bounds", "_learned")

    def __init__(
        self,
        commitment: Commitment = "none",
        *,
        seed: int = 0,
        rounds: int | None = None,
        seconds: float | None = None,
        admission: RuleName | AdmissionRule | None = None,
        prices: str | LearnedPrices | None = None,
        samples: int = DEFAULT_SAMPLES,
        admission_floor: float = DEFAULT_FLOOR,
        bounds: PriceBounds | None = None,
        params: RecourseParams | None = None,
    ) -> None:
        if commitment not in get_args(Commitment):
            expected = ", ".join(get_args(Commitment))
            raise InputError("commitment", f"expected one of {expected}", commitment)
        if seconds is not None and not (isinstance(seconds, Real) and seconds >= 0):
            raise InputError("seconds", "expected a number >= 0", seconds)
        self.commitment: Commitment = commitment
        self.params = params or RecourseParams()
        if rounds is not None:
            self.params = replace(self.params, rounds=rounds)
        learned = learned_from(prices, "prices")
        self.admission: AdmissionRule | None = None
        if commitment != "arrival":
            check_unused(admission=admission, prices=prices, bounds=bounds)
        elif admission is None or isinstance(admission, str):
            admission = rule_name(admission, learned, bounds)
            self.admission = admission_rule(
                admission,
                prices=learned,
                bounds=bounds,
                samples=samples,
                min_utility_fraction=admission_floor,
                seed=seed,
            )
        else:
            self.admission = admission
        named = {"admission": admission, "samples": samples, "admission_floor": admission_floor}
        name = prices.name if isinstance(prices, LearnedPrices) else prices
        self._rule: dict[str, Any] = named | {"prices": name}
        if not (admission is None or isinstance(admission, str)):
            self._rule = {"admission": dict(admission.parameters)}
        self._seed, self._seconds = seed, seconds
        self._learned, self._bounds = learned, bounds
        self.planner: Replanner | None = None
        self.patience: int | None = None
        self.keep_admitted = self.slotted = False
        self._forget()

    @classmethod
    def rolling(
        cls,
        lookahead: int,
        commitment: Commitment = "none",
        *,
        patience: int | None = None,
        keep_admitted: bool = False,
        **options: Any,
    ) -> Self:
        """Make a policy on a horizon that rolls, as a service and a cluster need it.

        Parameters
        ----------
        lookahead : int
            Slots that the plan always reaches ahead, the present one included.
        commitment
            As for `Recourse`.
        patience : int, optional
            Number of slots after the arrival in which a completion counts. Default: twice
            `lookahead`.
        keep_admitted : bool
            Whether what is left of a job, whose patience is over though it is still worth
            something, is decided on once more as a job that arrives now. Otherwise such a job is
            given up.
        **options
            The other arguments of `Recourse`.

        Examples
        --------
        >>> import oasis
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> oasis.simulate(instance, Recourse.rolling(instance.horizon)).admitted
        3
        """
        policy = cls(commitment, **options)
        policy.lookahead = integer(lookahead, "lookahead", minimum=1, maximum=LARGEST_SIZE)
        slots = 2 * policy.lookahead if patience is None else patience
        policy.patience = integer(slots, "patience", minimum=1, maximum=2 * LARGEST_SIZE)
        policy.keep_admitted = keep_admitted
        policy.slotted = True  # it follows what was really done, slot by slot
        return policy

    @classmethod
    def from_instance(
        cls,
        instance: Instance,
        commitment: Commitment = "none",
        *,
        min_utility_fraction: float = DEFAULT_FLOOR,
        **options: Any,
    ) -> Recourse:
        """Make a policy that admits jobs at OASiS's prices, with exact U and L of `instance`."""
        expect_instance(instance)
        if commitment == "arrival":
            bounds = PriceBounds.from_instance(instance, min_utility_fraction=min_utility_fraction)
            options |= {"admission": AtPrices(bounds, min_utility_fraction)}
        return cls(commitment, **options)

    def __repr__(self) -> str:
        shown: dict[str, Any] = {"commitment": self.commitment, "seed": self._seed}
        own = {"seconds": self._seconds, **(self._rule if self.admission is not None else {})}
        usual = {"seconds": None, "samples": DEFAULT_SAMPLES, "admission_floor": DEFAULT_FLOOR}
        shown |= {name: value for name, value in own.items() if value != usual.get(name)}
        searched = asdict(RecourseParams())
        if self.lookahead is not None:
            shown |= {"lookahead": self.lookahead, "patience": self.patience}
        shown |= {k: v for k, v in asdict(self.params).items() if v != searched[k]}
        return called(self, shown)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Options of the policy, as plain data."""
        own = {"commitment": self.commitment, "seed": self._seed, "seconds": self._seconds}
        if self.lookahead is not None:
            own |= {
                "lookahead": self.lookahead,
                "patience": self.patience,
                "keep_admitted": self.keep_admitted,
            }
        return {**own, **self._rule, **asdict(self.params)}

    @property
    def report(self) -> Mapping[str, Any]:
        """Promises broken, jobs given up after they ran, work wasted and searches cut short."""
        return self.planner.report() if self.planner is not None else {}

    @property
    def rounds_done(self) -> int:
        """Rounds of the search in the last decision."""
        return self._planner.rounds_done

    @property
    def cut_short(self) -> int:
        """Decisions of this run in which the limit in seconds left rounds undone."""
        return self._planner.record.cut_short

    @property
    def _planner(self) -> Replanner:
        assert self.planner is not None  # whoever drives a policy has called reset
        return self.planner

    # -- deciding ----------------------------------------------------------------------------------

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`, with an empty plan."""
        if self.lookahead is None and not (site.slotted and site.horizon is not None):
            raise InputError(
                "", "policy recourse needs slots and a horizon, as an instance has them"
            )
        if not site.slotted:
            raise InputError("", "policy recourse needs slots")
        self._servers = rolling.servers_of(site)
        self._site = site
        self._cluster = cluster_of(site)
        self._kinds = kinds_of(self._cluster)
        horizon = int(site.horizon or 0) if self.lookahead is None else self.lookahead
        self.planner = Replanner(
            self._cluster,
            horizon,
            commitment=self.commitment,
            params=self.params,
            seed=self._seed,
            seconds=self._seconds,
            admission=self.admission,
            patience=self.patience,
        )
        self._forget()

    def decide(self, view: View) -> Plan:
        """Update the plan for what happened, replan if needed; return changed allocations."""
        planner = self._planner
        planner.rounds_given = self.rounds_given
        broken, reach = len(planner.record.broken), planner.plan.ledger.end
        # Completions before losses, losses before arrivals: a job that is done needs no new place,
        # and what arrives must not be promised a machine that is gone.
        changed = self._pass(int(view.now), [job.index for job in view.finished])
        for machines, holds in ((view.lost, False), (view.returned, True)):
            for machine in machines:
                server = self._servers[machine]
                planner.set_capacity(*server, holds)
        changed |= planner.plan_around(self._calendar)
        # Work that turned out other than planned is corrected before anything is planned on it.
        changed |= self._follow_work(view, planner)
        changed |= planner.keep_running()
        # Waiting jobs get the new slots before a newcomer does.
        if planner.plan.ledger.end > reach:  # slots have come within reach
            planner.extend(reach)
        answer = Plan()
        forms: dict[int, int] = {}
        renewed, late = self._renewed(view, planner, forms) if self.keep_admitted else ({}, set())
        # If nothing happened, the plan is what it was and is only
        # carried out: no search, no random numbers.
        if view.arrived or view.lost or view.returned or changed or renewed:
            arrivals = {job.index: rolling.source_of(job, self.name) for job in view.arrived}
            answer.rejected = planner.replan(renewed | arrivals, forms)
        # Time alone makes jobs hopeless, too, also where nothing was planned again.
        answer.rejected |= planner.give_up()
        self._note(view, planner, answer.rejected, broken)
        self.late |= late
        stay(planner.plan, self._kinds)
        self._carry_out(view, planner, answer)
        planner.plan.keep()
        return answer

    def _pass(self, now: int, finished: list[int]) -> bool:
        """Advance to slot `now`, remove finished jobs; return whether one left capacity unused."""
        planner, changed = self._planner, False
        planner.advance(now)
        for index in (*self.withdrawn, *finished):
            live = planner.plan.live.get(index)
            if live is None:
                continue
            # A job that ends as planned leaves the plans of the others as they are; one that ends
            # earlier leaves capacity that they can use.
            is_early = live.remaining > 0 or live.schedule is not None
            changed |= is_early
            if is_early and index in self.withdrawn:
                planner.cancel(index)
            else:
                planner.finish(index)
        self.withdrawn = []
        return changed

    def _follow_work(self, view: View, planner: Replanner) -> bool:
        """Update allocations and remaining work of jobs; return whether a plan may be affected."""
        changed = False
        for job in view.jobs():
            live = planner.plan.live.get(job.index)
            if live is None:
                continue
            until = view.kept_until(job)
            live.current = self._allocation_of(view.allocation(job), until)
            changed |= until == view.now > 0  # from now on it may change
            # What holds something has begun in its form, even if no slot has passed since.
            if live.forms and (current := view.allocation(job)) != NOTHING:
                live.be_in(current.form)
                live.forms = ()
            # Of a job that may still be in any form the view says the work in one of them.
            if live.forms:
                continue
            work = rolling.work_left(job, view)
            if rolling.differs(live, work):
                planner.revise(job.index, work)
                changed = True
        return changed

    def _allocation_of(self, allocation: Allocation, until: float) -> CurrentAllocation | None:
        """Convert an allocation to servers of the model; None if the job does not run."""
        if not allocation.workers:
            return None
        first = len(self._site.machines_for(TaskGroup.WORKER))
        workers = np.array(allocation.workers, dtype=np.int64)
        ps = np.array(allocation.ps, dtype=np.int64).reshape(-1, 2)
        return CurrentAllocation(workers, ps - (first, 0), int(until))

    def _renewed(
        self, view: View, planner: Replanner, forms: dict[int, int]
    ) -> tuple[dict[int, Job], set[int]]:
        """Return jobs whose patience is over, as new jobs, and keys of those with promises."""
        assert self.lookahead is not None
        reach, now = rolling.reach_of(self.lookahead), planner.now
        promised = {key for key, live in planner.plan.live.items() if live.promise is not None}
        before = dict(planner.plan.live)
        gone = planner.give_up()
        renewed = {}
        for job in view.jobs():
            if job.index not in gone:
                continue
            source, live = rolling.source_of(job, self.name), before[job.index]
            if live.forms:  # it has not run: it may still be in any form
                utility = later(source.utility, now - source.arrival, reach)
                renewed[job.index] = replace(source, arrival=now, utility=utility)
            else:
                one, work = source.in_form(live.form), rolling.work_left(job, view)
                renewed[job.index] = remaining_job(one, work, now, reach)
                forms[job.index] = live.form
        return renewed, promised & gone.keys()

    def _note(self, view: View, planner: Replanner, gone: Mapping[int, str], broken: int) -> None:
        """Record decisions on arrivals, and jobs whose promise was broken in this decision."""
        self._decided = {job.index: self._decision(job.index, job.id, gone) for job in view.arrived}
        fresh = set(planner.record.broken[broken:])
        self.late = {job.index for job in view.jobs() if job.id in fresh} if fresh else set()
        if self.lookahead is not None:  # years of names are not kept; counts are
            planner.record = PromiseRecord(cut_short=planner.record.cut_short)

    def _decision(self, index: int, job_id: str, gone: Mapping[int, str]) -> Decision:
        """Return the decision on job `index`, which has just arrived; `gone` has refusals."""
        if index in gone:
            return Decision(job_id, False, reason=gone[index])
        live = self._planner.plan.live[index]
        if live.schedule is None:
            return Decision(job_id, True, reason=WAITS)
        completion = live.schedule.completion
        utility = live.utility_at(completion)
        return Decision(job_id, True, utility, utility, 0.0, completion, live.schedule)

    def _carry_out(self, view: View, planner: Replanner, answer: Plan) -> None:
        """Add this slot's changed allocations, and when the next change is due, to `answer`."""
        now, next_change = planner.now, None
        for job in view.jobs():
            live = planner.plan.live.get(job.index)
            if live is None:
                continue
            schedule = live.schedule
            wanted = NOTHING if schedule is None else allocation_in(schedule, now, self._site)
            if wanted != view.allocation(job):
                answer.changes[job.index] = wanted
            if schedule is not None:
                # The first slot in which something may change; asking at
                # every planned slot is never too late.
                at = max(now + 1, schedule.start)
                next_change = at if next_change is None else min(at, next_change)
        answer.wake_at = None if next_change is None else float(next_change)

    # -- looking -----------------------------------------------------------------------------------

    def foresee(self, job: Job, now: int) -> Quote:
        """Return what would happen to `job`, and to others, if it arrived in slot `now`.

        Nothing changes. With a limit in seconds the decision itself may still be another.
        """
        # The decision is made in earnest, on a copy, as `submit` would make it.
        copied = deepcopy(self)
        plan, reach = copied._planner.plan, copied._planner.plan.ledger.end
        copied._pass(now, [])
        for key in [key for key, live in plan.live.items() if live.remaining == 0]:
            copied._planner.finish(key)  # as it will be if the plan is kept
        if plan.ledger.end > reach:
            copied._planner.extend(reach)
        copied._planner.give_up()
        copied._planner.record = PromiseRecord()
        before = copied.planned()
        index = max(copied._planner.plan.live, default=-1) + 1
        gone = copied._planner.replan({index: job})
        decision = copied._decision(index, job.id, gone)
        # Jobs that were given up are gone from the copy, so their
        # names are taken from the original.
        names = {key: live.job.id for key, live in self._planner.plan.live.items()}
        change = change_between(
            before,
            copied.planned(),
            job.id,
            gone=[names[key] for key in gone if key != index],
            broken=copied._planner.record.broken,
        )
        return Quote(decision, change)

    @property
    def live(self) -> dict[int, LiveJob]:
        """Live jobs by key, in order of arrival."""
        return self._planner.plan.live

    @property
    def now(self) -> int:
        """The present slot."""
        return self._planner.plan.now

    # -- what lasts --------------------------------------------------------------------------------

    def making(self) -> dict[str, Any] | None:
        """Plain data from which `made` builds the same policy.

        None if admission is a user's own rule: the caller then makes the policy with that rule.
        """
        if not isinstance(self._rule["admission"], str | None):
            return None
        files = {"prices": self._learned, "bounds": self._bounds}
        contents = {name: None if one is None else one.to_dict() for name, one in files.items()}
        return {**self.parameters, **contents}

    @classmethod
    def made(cls, making: Mapping[str, Any]) -> Self:
        """Make a policy of what `making` returned."""
        options = dict(making)
        steering = {field.name: options.pop(field.name) for field in fields(RecourseParams)}
        for name, kind in (("prices", LearnedPrices), ("bounds", PriceBounds)):
            if options[name] is not None:
                options[name] = kind.from_dict(options[name])
        options["params"] = RecourseParams(**steering)
        return cls.rolling(**options) if "lookahead" in options else cls(**options)
