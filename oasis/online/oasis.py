"""OASiS, Algorithm 1: price each arriving job, admit it if it is worth more than it displaces."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import Any

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision, Explanation
from oasis.model.errors import InputError, InstanceError, describe
from oasis.model.files import read_archive, write_archive
from oasis.model.instance import Instance, expect_instance
from oasis.model.instance_file import cluster_from_dict, cluster_to_dict
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.validation import integer
from oasis.online.best_schedule import BestSchedule, found_by, result_of
from oasis.online.ledger import Ledger, Past
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION, PriceBounds
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.rejection import explanation
from oasis.online.search import Granularity, Search, check_granularity
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocations

CHECKPOINT = "oasis-scheduler 1"
REFUSAL = "not admitted; the decision says why"  # finding the reason may take time


class OASiS:
    """The online primal-dual scheduler (Algorithm 1).

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
    slotted = False
    told_remaining = True

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
        if bounds.worker.log_lower.shape != (len(cluster.resources),):
            raise InputError("bounds", f"expected one for each of {', '.join(cluster.resources)}")
        self.cluster = cluster
        self.horizon = integer(horizon, "horizon", minimum=1)
        self.bounds = bounds
        self.granularity: Granularity = granularity
        self.decisions: list[Decision] = []
        self.decision_seconds: list[float] = []
        self.on_decision: Callable[[Decision], None] | None = None
        self.now = 0
        self._bounds_from: str | None = None
        self._ids: set[str] = set()
        self._past = Past(partial(Ledger.idle, cluster, horizon, bounds), bounds)
        self._due: dict[int, dict[int, Allocation]] = {}  # slot -> job -> what it holds from there

    @property
    def ledger(self) -> Ledger:
        """What is committed, and what it costs."""
        return self._past.present

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
        if not 0 < scale < math.inf:
            raise InputError("scale", "expected a finite number > 0", scale)
        if scale != 1.0:
            own = own.scaled(scale)
        scheduler = cls(instance.cluster, instance.horizon, own, granularity=granularity)
        if learned is not None:
            scheduler._bounds_from = bounds if isinstance(bounds, str) else learned.name
        return scheduler

    def __repr__(self) -> str:
        admitted = sum(decision.admitted for decision in self.decisions)
        seen = f"{len(self.decisions)} jobs seen, {admitted} admitted"
        options = f"granularity={self.granularity!r}, alpha={self.bounds.alpha:.6g}"
        return f"OASiS({seen}, slot {self.now} of {self.horizon}, {options})"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that this scheduler was made with, as plain data."""
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
        found = found_by(self._search(job, self.ledger))
        if found is None:
            return Decision.rejected(job.id, partial(self._explain, job, self._past.commits))
        return _admitted(job.id, found)

    def submit(self, job: Job) -> Decision:
        """Decide on `job` and, if it is admitted, commit its schedule (Alg. 1, l. 5-12)."""
        decision = self.quote(job)
        if decision.schedule is not None:
            self._past.commit(job, decision.schedule)
        self._record(decision, job.arrival)
        return decision

    def _search(self, job: Job, ledger: Ledger) -> Search:
        return Search(job, ledger, self.granularity, self.bounds.min_utility_fraction)

    def _explain(self, job: Job, commits: int) -> Explanation:
        return explanation(self._search(job, self._past.after(commits)))

    def _record(self, decision: Decision, arrival: int) -> None:
        self.now = arrival
        self._ids.add(decision.job_id)
        self.decisions.append(decision)

    def _check(self, job: Job) -> None:
        self.cluster.check(job)
        if not self.now <= job.arrival < self.horizon:
            expected = f"expected {self.now}..{self.horizon - 1}, in order of arrival"
            raise InstanceError("arrival", f"{expected}, got {job.arrival} (job {job.id!r})")
        if job.id in self._ids:
            raise InstanceError("id", f"expected a new job, got {job.id!r} again")

    def reset(self, site: Site) -> None:
        """Carry out on `site` what is decided from now on; what was committed stays committed."""
        self._site = site
        self._due = {}
        self.decision_seconds = []

    def decide(self, view: View) -> Plan:
        """Submit what has arrived and carry out what was decided for this slot."""
        plan = Plan()
        for job in view.arrived:
            if job.source is None:
                raise InputError(
                    "", f"policy {self.name} needs jobs of an instance, not plain ones"
                )
            begin = perf_counter()
            decision = self.submit(job.source)
            self.decision_seconds.append(perf_counter() - begin)
            if self.on_decision is not None:
                self.on_decision(decision)
            if decision.schedule is None:
                plan.rejected[job.index] = REFUSAL
            else:
                self._note(job.index, decision.schedule)
        active = {job.index for job in view.jobs()}
        due = self._due.pop(int(view.now), {})
        plan.changes = {index: what for index, what in due.items() if index in active}
        plan.wake_at = min(self._due, default=None)
        return plan

    def _note(self, index: int, schedule: Schedule) -> None:
        """Enter the changes that `schedule` asks for, slot by slot."""
        planned = allocations(schedule, self._site)
        held = NOTHING
        for slot, allocation in planned.items():
            if allocation != held:
                self._due.setdefault(slot, {})[index] = held = allocation
            if slot + 1 not in planned:
                self._due.setdefault(slot + 1, {})[index] = held = NOTHING

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to `path`, a NumPy archive; it appears whole or not at all.

        The prices are stored although they follow from the committed amounts. Computed again in
        arrays of another layout they may differ in the last bit, and so might a later decision.
        """
        state = {
            "horizon": self.horizon,
            "now": self.now,
            "granularity": self.granularity,
            "bounds": self.bounds.to_dict(),
            "bounds_from": self._bounds_from,
            "cluster": cluster_to_dict(self.cluster),
            "decisions": [decision.to_dict() for decision in self.decisions],
        }
        write_archive(path, CHECKPOINT, state, self.ledger.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OASiS:
        """Read a scheduler that `save` wrote; it decides as the saved one would have, bit for bit.

        Raises
        ------
        OasisError
            If the file is no saved scheduler.
        """
        state, arrays = read_archive(path, CHECKPOINT)
        scheduler = cls(
            cluster_from_dict(state["cluster"]),
            state["horizon"],
            PriceBounds.from_dict(state["bounds"]),
            granularity=state["granularity"],
        )
        scheduler._bounds_from = state.get("bounds_from")  # older versions do not say
        saved = Ledger.restored(scheduler.cluster, arrays)
        scheduler._past = Past(partial(deepcopy, saved), scheduler.bounds)
        for entry in state["decisions"]:
            scheduler._record(Decision.from_dict(entry), state["now"])
        return scheduler


def decide(search: Search) -> Decision:
    """Admit the job of `search` if a schedule has a positive payoff (Alg. 1, l. 5-7)."""
    job_id, best = search.job.id, result_of(search)
    if best.schedule is None:
        return Decision(job_id, False, reason=best.reason, rejection=best.rejection)
    return _admitted(job_id, best)


def _admitted(job_id: str, best: BestSchedule) -> Decision:
    return Decision(
        job_id, True, best.payoff, best.utility, best.cost, best.completion, best.schedule
    )
