"""Holds jobs to their utility classes: their claims, their payments, their declared work."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

from oasis.driver.entry import Entry
from oasis.kubernetes.control.budgets import Payer, Payments
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.utility_class import Classes, UtilityClass, claim_of
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.model.utility import UTILITIES, Constant, Utility
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site

log = logging.getLogger("oasis.kubernetes")

# What a job counts for that has used far more than it declared: it still gets room that no other
# job wants, and any other claim goes before it.
NEXT_TO_NOTHING = 1e-9  # of what it claims

REFUSED, SPENT = "ClaimRefused", "BudgetSpent"  # reasons of the condition `Placed`


class Verdict(NamedTuple):
    """Reason why a job has to wait."""

    reason: str
    message: str


@dataclass(slots=True)
class _Account:
    """Account of one job."""

    generation: int | None = None  # in which it was let in; None: not yet
    used: float = 0.0  # worker-seconds for which it held room
    paid: float = 0.0
    most: int = 0  # workers that it held at a time
    declared: float | None = None  # worker-seconds, when it was first let in
    factor: float | None = None  # of its class, which may be gone by now
    early: int | None = None  # the slot for the rest of which it paid as it began early


@dataclass(frozen=True, slots=True)
class _Declared:
    """Declarations of a job, computed once per version."""

    spec: JobSpec
    site: Site
    works: tuple[float, ...]  # worker-slots in each form
    cost: float  # hours of the whole cluster, at most
    worthless: JobSpec  # the same job, as it counts when it is overrun


class Tenants:
    """Admits the jobs that keep to their class, and charges their namespaces.

    Parameters
    ----------
    clock : SlotClock
        Its slots are what is paid for.
    has_prices : bool
        Whether the policy prices what a job takes: that is then what it pays, when it is admitted.
        Otherwise it pays for the part of the cluster that it holds, slot by slot.
    """

    def __init__(self, clock: SlotClock, *, has_prices: bool) -> None:
        self.classes = Classes(())
        self.payments = Payments()
        self._clock, self._has_prices = clock, has_prices
        self._accounts: dict[str, _Account] = {}  # by uid of the job
        self._declared: dict[str, _Declared] = {}
        self._asking: dict[str, JobSpec] = {}  # that were let in at this boundary

    def look(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Update the utility classes of the cluster; an invalid one is logged once."""
        before, self.classes = self.classes.errors, Classes(found)
        for name, error in self.classes.errors.items():
            if before.get(name) != error:
                log.warning("UtilityClass %s: %s", name, error)

    # -- who may come in ---------------------------------------------------------------------------

    def let_in(
        self, specs: Collection[JobSpec], live: Mapping[str, Entry[JobSpec]], now: float
    ) -> tuple[dict[str, JobSpec], dict[str, Verdict]]:
        """The jobs that may be planned, as they count, and why the others wait; by uid.

        All of them were told to `declare`. A job is judged when it is new and when it was edited; a
        class that changes later does not stop what runs.
        """
        found: dict[str, JobSpec] = {}
        waiting: dict[str, Verdict] = {}
        self._asking.clear()
        if not self.classes:
            return {spec.uid: spec for spec in specs}, waiting
        asking = {spec.uid for spec in specs if not self._is_known(spec, live.get(spec.uid))}
        held_back = self._held_back(entry for uid, entry in live.items() if uid not in asking)
        for spec in specs:
            account = self._accounts.setdefault(spec.uid, _Account())
            known = live.get(spec.uid)
            if spec.uid in asking:
                verdict = self._judged(spec, account, held_back, now)
                if verdict is not None:
                    waiting[spec.uid] = verdict
                    continue
                self._asking[spec.uid] = spec
            found[spec.uid] = self._as_it_counts(spec, known)
        return found, waiting

    def _is_known(self, spec: JobSpec, known: Entry[JobSpec] | None) -> bool:
        """Whether the job was admitted in this version, or ran before there were classes."""
        let_in = self._accounts.get(spec.uid, _Account()).generation
        if let_in is None and known is not None:
            let_in = known.spec.generation
        return let_in == spec.generation

    def _judged(
        self, spec: JobSpec, account: _Account, held_back: dict[Payer, float], now: float
    ) -> Verdict | None:
        """Return why a job must wait; None admits it, and reserves what it may have to pay."""
        made = self.classes.of(spec)
        if isinstance(made, str):
            return Verdict(REFUSED, made)
        claim = claim_of(spec.job.utility)
        refusal = made.refusal(_kind(spec.job.utility), claim)
        if refusal is not None:
            return Verdict(REFUSED, refusal)
        budget = made.budget
        if budget is None:
            return None
        payer = (made.name, spec.namespace)
        most = claim if self._has_prices else self._declared[spec.uid].cost
        rest = max(0.0, most - account.paid)
        others = held_back.get(payer, 0.0)
        wall = self._clock.wall(now)
        at = self.payments.fits_at(payer, others + rest, budget, wall)
        if at == wall:
            held_back[payer] = others + rest
            return None
        spent = self.payments.spent(payer, budget, wall)
        message = f"may pay up to {rest:.6g}, and namespace {spec.namespace} has paid {spent:.6g} "
        message += f"of {budget.amount:.6g} in {budget.window_seconds:.6g} s for jobs of "
        message += f"UtilityClass {made.name}"
        if others:
            message += f"; other jobs of it that were let in may pay {others:.6g} more"
        if rest > budget.amount:
            message += "; it can never run: make it claim, or need, less"
        elif at is None:
            message += "; it may run when they need less"
        else:
            message += f"; it may run from {time_text(math.ceil(at))} on"
        return Verdict(SPENT, message)

    def _held_back(self, live: Iterable[Entry[JobSpec]]) -> dict[Payer, float]:
        """Amounts that live jobs may still have to pay as they run."""
        found: dict[Payer, float] = {}
        if self._has_prices:  # they have paid when they were admitted
            return found
        for entry in live:
            uid = entry.spec.uid
            account, declared = self._accounts.get(uid), self._declared.get(uid)
            if account is None or declared is None or account.generation is None:
                continue
            made = self.classes.of(entry.spec)
            if isinstance(made, UtilityClass) and made.budget is not None:
                payer = (made.name, entry.spec.namespace)
                rest = max(0.0, declared.cost - account.paid)
                found[payer] = found.get(payer, 0.0) + rest
        return found

    # -- what they do ------------------------------------------------------------------------------

    def may_begin_early(self, spec: JobSpec) -> bool:
        """Return whether a job may begin between boundaries, where no price is known to be paid."""
        made = self.classes.of(spec)
        is_free = not isinstance(made, UtilityClass) or made.budget is None
        return is_free or not self._has_prices

    def held(
        self, entries: Iterable[Entry[JobSpec]], site: Site, now: float, part: float = 1.0
    ) -> None:
        """Record that these jobs hold capacity in a slot, or in a part of it."""
        if not self.classes:
            return
        totals, seconds = _totals(site), part * self._clock.slot_seconds
        for entry in entries:
            held = entry.allocation
            account = self._accounts.setdefault(entry.spec.uid, _Account())
            account.used += held.worker_count * seconds
            account.most = max(account.most, held.worker_count)
            if self._has_prices or not held.workers:
                continue
            share = _share(entry.job, held.worker_count, held.ps_count, totals)
            self._pay(entry.spec, account, share * seconds / 3600.0, now)

    def begun(
        self, entries: Iterable[Entry[JobSpec]], site: Site, now: float, part: float, slot: int
    ) -> None:
        """Record that these jobs begin early, and may hold capacity for the last part of a slot."""
        for entry in entries if self.classes else ():
            account = self._accounts.setdefault(entry.spec.uid, _Account())
            if account.early != slot:  # who begins once more in the slot has paid for the rest
                account.early = slot
                self.held((entry,), site, now, part)

    def decided(
        self, live: Mapping[str, Entry[JobSpec]], decisions: Mapping[str, Decision], now: float
    ) -> None:
        """Record the decisions on the jobs that were let in, by their ids."""
        for uid, spec in self._asking.items():
            if uid not in live:  # it was rejected, and pays nothing
                continue
            account = self._accounts[uid]
            account.generation = spec.generation
            if account.declared is None:
                account.declared = self._declared[uid].works[0] * self._clock.work_seconds
            decision = decisions.get(spec.id)
            if self._has_prices and decision is not None and decision.admitted:
                cost = min(decision.cost, claim_of(spec.job.utility))
                # An edited job pays what it costs beyond what it has paid.
                self._pay(spec, account, cost - account.paid, now)
        self._asking.clear()

    def _pay(self, spec: JobSpec, account: _Account, amount: float, now: float) -> None:
        made = self.classes.of(spec)
        if isinstance(made, UtilityClass) and made.budget is not None and amount > 0.0:
            account.paid += amount
            payer = (made.name, spec.namespace)
            self.payments.pay(payer, amount, made.budget, self._clock.wall(now))

    def overrun(self, spec: JobSpec, form: int) -> str | None:
        """Return why a job counts as worth nothing; None if it does not."""
        account, declared = self._accounts.get(spec.uid), self._declared.get(spec.uid)
        made = self.classes.of(spec)
        if account is None or declared is None:
            return None
        if isinstance(made, UtilityClass):
            account.factor = made.overrun_factor
        unit, factor = self._clock.work_seconds, account.factor
        if factor is None:
            return None
        # The form in which it began may be edited away, which is told when it is planned.
        work = declared.works[min(form, len(declared.works) - 1)]
        # Whoever raised the work again and again before it is used up would declare none.
        grown = 1.0 if account.declared is None else declared.works[0] * unit / account.declared
        work *= min(1.0, factor / grown)
        # Room is held in whole slots: the last one of them may be needed for a moment alone.
        limit = factor * work + account.most
        if account.used <= limit * self._clock.slot_seconds:
            return None
        advice = "spec.work may say more" if grown < factor else "submit what is left as a new job"
        return (
            f"it has held room for more than {limit * unit:.6g} worker-seconds, {factor:g} times "
            f"the {work * unit:.6g} that count as declared and one slot more: it counts as worth "
            f"nothing; {advice}"
        )

    def paid(self, uid: str) -> float:
        """Amount that a job has paid."""
        account = self._accounts.get(uid)
        return 0.0 if account is None else account.paid

    def spent(self, now: float) -> dict[Payer, float]:
        """Amount of each namespace within its window, by class; without deleted classes."""
        found: dict[Payer, float] = {}
        for payer in self.payments.payers():
            made = self.classes.find(*payer)
            if isinstance(made, UtilityClass) and made.budget is not None:
                found[payer] = self.payments.spent(payer, made.budget, self._clock.wall(now))
        return found

    def tell(self, statuses: Mapping[str, StatusWriter], metrics: Metrics, now: float) -> None:
        """Say in the statuses what jobs have paid, and in the metrics what namespaces have."""
        for uid, job in statuses.items():
            if paid := self.paid(uid):
                job.status["paid"] = round(paid, 9)
        for payer, spent in self.spent(now).items():
            metrics.spent.labels(*payer).set(spent)

    # -- what is known -----------------------------------------------------------------------------

    def _as_it_counts(self, spec: JobSpec, known: Entry[JobSpec] | None) -> JobSpec:
        form = 0 if known is None else known.form
        if self.overrun(spec, form) is None:
            return spec
        return self._declared[spec.uid].worthless

    def declare(
        self, spec: JobSpec, seen_as: Callable[[JobSpec, Job], PolicyJob], site: Site
    ) -> None:
        """Record what a job claims for itself; `seen_as` describes it in one form to the policy."""
        known = self._declared.get(spec.uid)
        if not self.classes or (known and known.spec is spec and known.site is site):
            return
        account = self._accounts.get(spec.uid, _Account())
        if (
            known is not None
            and account.generation == known.spec.generation
            and (known.spec.job, known.spec.utility_class) == (spec.job, spec.utility_class)
        ):
            account.generation = spec.generation  # an edit of what no plan depends on
        forms = [seen_as(spec, form) for form in spec.job.in_forms]
        # Room is held in whole slots: the last one may be used by all its workers for a moment.
        hours, totals = self._clock.slot_seconds / 3600.0, _totals(site)
        cost = max(
            (math.ceil(form.work) + form.max_workers) * hours * _most_share(form, totals)
            for form in forms
        )
        worth = Constant(NEXT_TO_NOTHING * claim_of(spec.job.utility))
        worthless = replace(spec, job=replace(spec.job, utility=worth))
        self._declared[spec.uid] = _Declared(
            spec, site, tuple(form.work for form in forms), cost, worthless
        )

    def forget_others(self, uids: Iterable[str]) -> None:
        """Forget all other jobs; their payments stay on the account of their namespace."""
        kept = set(uids)
        self._accounts = {uid: each for uid, each in self._accounts.items() if uid in kept}
        self._declared = {uid: each for uid, each in self._declared.items() if uid in kept}

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`, also with slots of another length."""
        accounts = {uid: list(astuple(each)) for uid, each in self._accounts.items()}
        return {"payments": self.payments.state(), "accounts": accounts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the accounts from the data of `state`."""
        self.payments.restore(state["payments"])
        self._accounts = {uid: _Account(*each) for uid, each in state["accounts"].items()}


def _kind(utility: Utility) -> str:
    return next(kind for kind, made in UTILITIES.items() if isinstance(utility, made))


def _totals(site: Site) -> list[int]:
    """Total capacity of the machines by resource."""
    return [
        sum(machine.capacity[r] for machine in site.machines) for r in range(len(site.resources))
    ]


def _share(job: PolicyJob, workers: int, ps: int, totals: Sequence[int]) -> float:
    """Largest share of a resource of all machines that these tasks take."""
    asked = [0] * len(totals)
    for demand, count in ((job.worker, workers), (job.ps, ps)):
        for resource, amount in demand:
            asked[resource] += count * amount
    return max((a / total for a, total in zip(asked, totals, strict=True) if total), default=0.0)


def _most_share(job: PolicyJob, totals: Sequence[int]) -> float:
    """The largest part of the cluster that a worker takes with its parameter servers."""
    counts = range(job.min_workers, job.max_workers + 1)
    return max(_share(job, count, job.ps_needed(count), totals) / count for count in counts)
