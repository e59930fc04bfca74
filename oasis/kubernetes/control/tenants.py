"""Holds jobs to their utility classes: their claims, and their declared work."""

from __future__ import annotations

import logging
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from oasis.driver.driver import Driver
from oasis.driver.entry import Entry
from oasis.kubernetes.names import CLASS_KIND
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.utility_class import Classes, UtilityClass, claim_of
from oasis.model.job import Job
from oasis.model.utility import UTILITIES, Constant
from oasis.scheduling.policy import Planner, wants

log = logging.getLogger("oasis.kubernetes")

# What a job counts for that has used far more than it declared: it still gets room that no other
# job wants, and any other claim goes before it.
NEXT_TO_NOTHING = 1e-9  # of what it claims
ENDLESS = 1e6  # times its work, for policies that let short jobs go first


@dataclass(slots=True)
class _Account:
    """What one job was admitted with, declared at first, and has used since."""

    generation: int | None = None  # in which it was let in; None: not yet
    used: float = 0.0  # worker-seconds for which it held room
    most: int = 0  # workers that it held at a time
    form: int = 0  # in which it held them
    declared: tuple[float, ...] | None = None  # worker-seconds in each form, when first let in
    factor: float | None = None  # of its class, which may be gone by now
    times: float = 1.0  # how often what it declares its work counts


@dataclass(frozen=True, slots=True)
class _Declared:
    """What one version of a job declares, and the job as it counts because of that."""

    spec: JobSpec
    works: tuple[float, ...]  # worker-slots in each form
    counted: JobSpec  # the same job, with as much work as is expected of it
    overrun: JobSpec  # and as it counts when that is overrun


class Took:
    """Real work of the jobs of each namespace, as a multiple of their declared work."""

    def __init__(self) -> None:
        self.sums: dict[str, tuple[float, float]] = {}  # weight, and weighted logarithms

    def learn(self, namespace: str, declared: float, took: float) -> None:
        """Record real against declared worker-seconds; long and recent jobs weigh more."""
        weight, logs = self.sums.get(namespace, (0.0, 0.0))
        # Half is forgotten at most, and less after a job that is short beside the others: neither a
        # long honest job hides the lies that follow, nor a few short ones those before them.
        kept = max(0.5, weight / (weight + 8 * took))
        log_ratio = math.log(max(1.0, took / declared))  # who declares too much gains nothing later
        self.sums[namespace] = kept * weight + took, kept * logs + took * log_ratio

    def times(self, namespace: str) -> float:
        """Return the multiple for a namespace, rounded down to tenths; at least 1."""
        weight, logs = self.sums.get(namespace, (1.0, 0.0))
        return math.floor(10 * math.exp(logs / weight)) / 10


class Tenants:
    """Refuses jobs that claim more than their class allows, and finds overruns."""

    def __init__(self, clock: SlotClock, driver: Driver[JobSpec]) -> None:
        self.classes, policy = Classes(()), driver.policy
        self._clock, self._driver, self._took = clock, driver, Took()
        prefers_short = wants(policy, "told_remaining") and not wants(policy, "prefers_long")
        self._prefers_short = prefers_short and not isinstance(policy, Planner)
        self._accounts: dict[str, _Account] = {}  # by uid of the job
        self._declared: dict[str, _Declared] = {}
        self._asking: dict[str, JobSpec] = {}  # that were let in at this boundary

    def follow_classes(self, classes: Classes) -> None:
        """Hold jobs to these classes from now on; what is wrong with one is logged once."""
        self._asking.clear()
        before, self.classes = self.classes.errors, classes
        for name, error in classes.errors.items():
            if before.get(name) != error:
                log.warning("UtilityClass %s: %s", name, error)

    # -- who may come in ---------------------------------------------------------------------------

    def refusal(self, spec: JobSpec, known: Entry[JobSpec] | None) -> str | None:
        """Return why a job must wait, None if it may be planned; `known` is its entry if live."""
        # It is judged when it is new and when it was edited; a class that changes later does not
        # stop what runs.
        if not self.classes:
            return None
        account = self._accounts.setdefault(spec.uid, _Account())
        self._declare(spec, account, known)
        let_in = account.generation
        if let_in is None and known is not None:  # it ran before there were classes
            let_in = known.spec.generation
        if let_in == spec.generation:
            return None
        utility_class = self.classes.find(spec.utility_class, spec.namespace)
        if isinstance(utility_class, str):
            return utility_class
        utility = spec.job.utility
        kind = next(kind for kind, shape in UTILITIES.items() if isinstance(utility, shape))
        refusal = utility_class.refusal(kind, claim_of(utility))
        if refusal is None:
            refusal = self._raised(spec, account.declared, utility_class)
        if refusal is None:
            self._asking[spec.uid] = spec
        return refusal

    def counted(self, spec: JobSpec) -> JobSpec:
        """Return the job with the work expected of it; after an overrun it is worth nothing."""
        declared = self._declared.get(spec.uid) if self.classes else None
        if declared is None:
            return spec
        return declared.counted if self.overrun(spec) is None else declared.overrun

    def _raised(
        self, spec: JobSpec, first: tuple[float, ...] | None, utility_class: UtilityClass
    ) -> str | None:
        """Return why a job may not declare so much more work than `first`; None if it may."""
        works = self._declared[spec.uid].works
        # A form that was added is compared with the longest.
        known = () if first is None else [*first, *[max(first)] * len(works)]
        for work, before in zip(works, known, strict=False):
            seconds, most = work * self._clock.work_seconds, utility_class.overrun_factor * before
            # The work of the model is whole worker-slots.
            if seconds > most + self._clock.work_seconds:
                allows = f"{CLASS_KIND} {utility_class.name} allows at most {most:.6g}"
                raises = f"raises its work to {seconds:.6g} worker-seconds from {before:.6g}"
                return f"{raises}, and {allows}"
        return None

    # -- what they do ------------------------------------------------------------------------------

    def held(self, entries: Iterable[Entry[JobSpec]]) -> None:
        """Add the workers that these jobs hold in a slot to their accounts."""
        for entry in entries if self.classes else ():
            workers = entry.allocation.worker_count
            account = self._accounts.setdefault(entry.spec.uid, _Account())
            account.used += workers * self._clock.slot_seconds
            account.most, account.form = max(account.most, workers), entry.form

    def decided(self, live: Mapping[str, Entry[JobSpec]]) -> None:
        """Record which jobs that passed their class in this slot the policy admitted."""
        for uid, spec in self._asking.items():
            if uid not in live:  # it was rejected
                continue
            account, works = self._accounts[uid], self._declared[uid].works
            account.generation = spec.generation
            if account.declared is None:
                account.declared = tuple(work * self._clock.work_seconds for work in works)
        self._asking.clear()

    def overrun(self, spec: JobSpec) -> str | None:
        """Return why a job counts as worth nothing; None if it does not."""
        account, declared = self._accounts.get(spec.uid), self._declared.get(spec.uid)
        utility_class = self.classes.find(spec.utility_class, spec.namespace)
        if account is None or declared is None:
            return None
        if isinstance(utility_class, UtilityClass):
            account.factor = utility_class.overrun_factor
        unit, factor = self._clock.work_seconds, account.factor
        if factor is None:
            return None
        work = account.times * _work_in(declared, account)
        # Room is held in whole slots: the last one of them may be needed for a moment alone.
        limit = factor * work + account.most
        if account.used <= limit * self._clock.slot_seconds:
            return None
        return (
            f"it has held room for more than {limit * unit:.6g} worker-seconds, {factor:g} times "
            f"the {work * unit:.6g} that count as declared and one slot more: it counts as worth "
            f"nothing; spec.work may say up to {factor:g} times what it said at first"
        )

    # -- what is known -----------------------------------------------------------------------------

    def _declare(self, spec: JobSpec, account: _Account, entry: Entry[JobSpec] | None) -> None:
        """Store what a job declares and how it counts, if its spec or its factor changed."""
        known, before = self._declared.get(spec.uid), account.times
        times = self._took.times(spec.namespace)
        # A job that waits is planned anew only if that says much, and one that has begun is not.
        waits = entry is None or not entry.begun
        if spec.ends_itself and waits and (account.generation is None or times > 2 * before):
            account.times = times
        if known and known.spec is spec and account.times == before:
            return
        if (
            known is not None
            and account.generation == known.spec.generation
            and (known.spec.job, known.spec.utility_class) == (spec.job, spec.utility_class)
        ):
            account.generation = spec.generation  # an edit of what no plan depends on
        works = tuple(self._driver.as_seen(spec, form).work for form in spec.job.in_forms)
        worth = Constant(NEXT_TO_NOTHING * claim_of(spec.job.utility))
        counted = self._longer(spec.job, account.times)
        last = replace(counted, utility=worth)
        if self._prefers_short:
            last = self._longer(last, ENDLESS)
        both = replace(spec, job=counted), replace(spec, job=last)
        self._declared[spec.uid] = _Declared(spec, works, *both)

    def _longer(self, job: Job, times: float) -> Job:
        """Return the job with `times` as much work in each form."""
        if times == 1.0:
            return job

        def longer(one: Job) -> float:
            return one.minibatch_time + (times - 1) * one.minibatch_slots(self._clock.work_seconds)

        forms = zip(job.forms, job.in_forms, strict=False)
        longer_forms = tuple(replace(form, minibatch_time=longer(one)) for form, one in forms)
        return replace(job, minibatch_time=longer(job), forms=longer_forms)

    def forget_others(
        self, uids: Container[str], worked: Mapping[str, float], completed: Container[str]
    ) -> None:
        """Drop the accounts of jobs not in `uids`, and learn how much work they took."""
        # They `worked` for so many worker-slots; what was not `completed` tells only if it is more.
        for uid in [uid for uid in self._accounts if uid not in uids]:
            account, declared = self._accounts.pop(uid), self._declared.pop(uid, None)
            if declared is None or not declared.spec.ends_itself:
                continue
            # Room that was held without any pod at work counts, too, but for a slot in which a job
            # that is short did not need all of it.
            slots = account.used / self._clock.slot_seconds - account.most
            work, took = _work_in(declared, account), max(worked.get(uid, 0.0), slots)
            if took > work or (uid in completed and took):
                self._took.learn(declared.spec.namespace, work, took)

    def state(self) -> dict[str, Any]:
        """Return plain data for `restore`, also with slots of another length."""
        accounts = {uid: list(astuple(each)) for uid, each in self._accounts.items()}
        return {"accounts": accounts, "took": self._took.sums}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the accounts from the data of `state`."""
        self._took.sums = dict(state.get("took", {}))
        self._accounts = {uid: _Account(*each) for uid, each in state.get("accounts", {}).items()}


def _work_in(declared: _Declared, account: _Account) -> float:
    """Return the declared worker-slots of the form in which a job held its workers."""
    return declared.works[min(account.form, len(declared.works) - 1)]
