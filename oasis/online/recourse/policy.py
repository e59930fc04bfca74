"""Recourse as a policy: the plan of all live jobs, carried out slot by slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.instance import Instance, expect_instance
from oasis.model.job import Job
from oasis.model.summary import called
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR, AdmissionRule, AtPrices
from oasis.online.recourse.futures import DEFAULT_SAMPLES
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.recourse.params import Commitment, RecourseParams, check_commitment
from oasis.online.recourse.planner import Planner
from oasis.online.recourse.rules import (
    RuleName,
    admission_rule,
    check_unused,
    rule_name,
)
from oasis.scheduling.job import NOTHING
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocation_in, cluster_of


class Recourse:
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
        No round begins so long after a decision began; the report counts where that happened.
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
    slotted = False
    told_remaining = True
    plans_in_model = True

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
        check_commitment(commitment)
        if seconds is not None and not seconds >= 0:
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
        self.planner: Planner | None = None

    @classmethod
    def from_instance(
        cls,
        instance: Instance,
        commitment: Commitment = "none",
        *,
        min_utility_fraction: float = DEFAULT_FLOOR,
        **options: Any,
    ) -> Recourse:
        """With the exact U and L of `instance`, and jobs admitted at OASiS's prices."""
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
        shown |= {k: v for k, v in asdict(self.params).items() if v != searched[k]}
        return called(self, shown)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this run from another, as plain data."""
        own = {"commitment": self.commitment, "seed": self._seed, "seconds": self._seconds}
        return {**own, **self._rule, **asdict(self.params)}

    @property
    def report(self) -> Mapping[str, Any]:
        """Promises broken, jobs given up after they ran, work wasted and searches cut short."""
        return self.planner.report() if self.planner is not None else {}

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`."""
        if not site.slotted or site.horizon is None:
            raise InputError(
                "", "policy recourse needs slots and a horizon, as an instance has them"
            )
        self._servers = [
            (group, k) for group in ("worker", "ps") for k in range(len(site.machines_for(group)))
        ]
        self._site = site
        self.planner = Planner(
            cluster_of(site),
            int(site.horizon),
            commitment=self.commitment,
            params=self.params,
            seed=self._seed,
            seconds=self._seconds,
            admission=self.admission,
        )

    def decide(self, view: View) -> Plan:
        """Follow the plan, and make it again where something happened."""
        planner = self.planner
        assert planner is not None  # the engine has called reset
        planner.advance(int(view.now))
        for job in view.finished:
            planner.finish(job.index)
        for machines, holds in ((view.lost, False), (view.returned, True)):
            for machine in machines:
                planner.set_capacity(*self._servers[machine], holds)
        changed = self._follow_work(view, planner)
        answer = Plan()
        if view.arrived or view.lost or view.returned or changed:
            arrivals = {job.index: _source(job.source, self.name) for job in view.arrived}
            answer.rejected = planner.replan(arrivals)
        answer.rejected |= planner.give_up()
        self._carry_out(view, planner, answer)
        return answer

    def _follow_work(self, view: View, planner: Planner) -> bool:
        """Where costs or speeds made work slower or faster than planned, the plan must change."""
        changed = False
        for job in view.jobs():
            live = planner.plan.live.get(job.index)
            if live is None:
                continue
            remaining = max(1, int(rounding.ceil(view.remaining(job))))
            if remaining != live.remaining:
                planner.revise(job.index, remaining)
                changed = True
        return changed

    def _carry_out(self, view: View, planner: Planner, answer: Plan) -> None:
        """What each job holds in this slot, and when that will change next."""
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
                at = max(now + 1, schedule.start)
                next_change = at if next_change is None else min(at, next_change)
        answer.wake_at = None if next_change is None else float(next_change)


def _source(job: Job | None, policy: str) -> Job:
    if job is None:
        raise InputError("", f"policy {policy} needs jobs of an instance, not plain ones")
    return job
