"""Holds jobs to their utility classes: their claims, and their declared work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from oasis.driver.entry import Entry
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.utility_class import Classes, UtilityClass, claim_of
from oasis.model.job import Job
from oasis.model.utility import UTILITIES, Constant, Utility
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site

log = logging.getLogger("oasis.kubernetes")

# What a job counts for that has used far more than it declared: it still gets room that no other
# job wants, and any other claim goes before it.
NEXT_TO_NOTHING = 1e-9  # of what it claims


@dataclass(slots=True)
class _Account:
    """Account of one job."""

    generation: int | None = None  # in which it was let in; None: not yet
    used: float = 0.0  # worker-seconds for which it held room
    most: int = 0  # workers that it held at a time
    declared: float | None = None  # worker-seconds, when it was first let in
    factor: float | None = None  # of its class, which may be gone by now


@dataclass(frozen=True, slots=True)
class _Declared:
    """Declarations of a job, computed once per version."""

    spec: JobSpec
    site: Site
    works: tuple[float, ...]  # worker-slots in each form
    worthless: JobSpec  # the same job, as it counts when it is overrun


class Tenants:
    """Admits the jobs that keep to their class, and tells which have overrun their work."""

    def __init__(self, clock: SlotClock) -> None:
        self.classes = Classes(())
        self._clock = clock
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
        self, specs: Collection[JobSpec], live: Mapping[str, Entry[JobSpec]]
    ) -> tuple[dict[str, JobSpec], dict[str, str]]:
        """The jobs that may be planned, as they count, and why the others wait; by uid.

        All of them were told to `declare`. A job is judged when it is new and when it was edited; a
        class that changes later does not stop what runs.
        """
        found: dict[str, JobSpec] = {}
        waiting: dict[str, str] = {}
        self._asking.clear()
        if not self.classes:
            return {spec.uid: spec for spec in specs}, waiting
        for spec in specs:
            self._accounts.setdefault(spec.uid, _Account())
            known = live.get(spec.uid)
            if not self._is_known(spec, known):
                refusal = self._refusal(spec)
                if refusal is not None:
                    waiting[spec.uid] = refusal
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

    def _refusal(self, spec: JobSpec) -> str | None:
        """Return why a job must wait; None admits it."""
        made = self.classes.of(spec)
        if isinstance(made, str):
            return made
        return made.refusal(_kind(spec.job.utility), claim_of(spec.job.utility))

    # -- what they do ------------------------------------------------------------------------------

    def held(self, entries: Iterable[Entry[JobSpec]]) -> None:
        """Record that these jobs hold capacity in a slot."""
        for entry in entries if self.classes else ():
            workers = entry.allocation.worker_count
            account = self._accounts.setdefault(entry.spec.uid, _Account())
            account.used += workers * self._clock.slot_seconds
            account.most = max(account.most, workers)

    def decided(self, live: Mapping[str, Entry[JobSpec]]) -> None:
        """Record which of the jobs that were let in the policy has admitted."""
        for uid, spec in self._asking.items():
            if uid not in live:  # it was rejected
                continue
            account = self._accounts[uid]
            account.generation = spec.generation
            if account.declared is None:
                account.declared = self._declared[uid].works[0] * self._clock.work_seconds
        self._asking.clear()

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
        worth = Constant(NEXT_TO_NOTHING * claim_of(spec.job.utility))
        worthless = replace(spec, job=replace(spec.job, utility=worth))
        works = tuple(form.work for form in forms)
        self._declared[spec.uid] = _Declared(spec, site, works, worthless)

    def forget_others(self, uids: Iterable[str]) -> None:
        """Forget all other jobs."""
        kept = set(uids)
        self._accounts = {uid: each for uid, each in self._accounts.items() if uid in kept}
        self._declared = {uid: each for uid, each in self._declared.items() if uid in kept}

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`, also with slots of another length."""
        return {uid: list(astuple(each)) for uid, each in self._accounts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the accounts from the data of `state`."""
        self._accounts = {uid: _Account(*each) for uid, each in state.items()}


def _kind(utility: Utility) -> str:
    return next(kind for kind, made in UTILITIES.items() if isinstance(utility, made))
