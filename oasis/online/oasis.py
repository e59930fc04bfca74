"""OASiS, Algorithm 1: price each arriving job, admit it if it is worth more than it displaces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision, Explanation
from oasis.model.errors import InstanceError, describe, located_at
from oasis.model.files import save_state, saved_state
from oasis.model.instance import Instance, expect_instance
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.validation import LARGEST_SIZE, integer, number
from oasis.online.best_schedule import admitted, found_by
from oasis.online.ledger import Ledger, LedgerHistory
from oasis.online.own_prices import (
    PAPER,
    OwnPrices,
    blended,
    check_prices,
    refuse_beside,
)
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION, PriceBounds, Prices
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.rejection import explanation
from oasis.online.rolling import source_of
from oasis.online.rolling_oasis import RollingOASiS
from oasis.online.saved import CHECKPOINT, content, restore
from oasis.online.search import Granularity, Search, check_granularity, searches
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocations

REFUSAL = "not admitted; the decision says why"  # finding the reason may take time


class OASiS:
    """Jobs are admitted if their best schedule is worth more than it costs (Algorithm 1).

    Parameters
    ----------
    cluster : Cluster
        Servers and the length of a slot.
    horizon : int
        Number of slots T.
    bounds : PriceBounds or OwnPrices
        U and L: exact (`PriceBounds.from_instance`) or estimated from past jobs
        (`PriceBounds.from_jobs`); or prices of your own.
    granularity : {"worker-slot", "chunk"}
        Unit in which Algorithm 2 splits work over slots.

    Notes
    -----
    Decisions are irrevocable: `submit` commits resources for the whole life of an admitted job.
    Jobs are submitted in order of arrival. As a policy (`oasis.simulate`) it submits what arrives
    and carries out, slot by slot, what it decided. Operators run `OASiS.rolling`.

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
    plans_in_model = True
    knows_forms = True
    rolling = RollingOASiS  #: Algorithm 1 on a horizon that rolls, as operators run it

    def __init__(
        self,
        cluster: Cluster,
        horizon: int,
        bounds: PriceBounds | OwnPrices,
        *,
        granularity: Granularity = "worker-slot",
    ) -> None:
        check_granularity(granularity)
        if not isinstance(cluster, Cluster):
            expected = "expected oasis.Cluster, as OASiS.from_instance makes it"
            raise TypeError(f"cluster: {expected}; got {describe(cluster)}")
        check_prices(bounds, cluster.resources)
        self.cluster = cluster
        self.horizon = integer(horizon, "horizon", minimum=1, maximum=LARGEST_SIZE)
        self.bounds = bounds
        self.granularity: Granularity = granularity
        self.now = 0
        self.decisions: list[Decision] = []
        self.decision_seconds: list[float] = []
        self.on_decision: Callable[[Decision], None] | None = None
        self.bounds_from: str | None = None
        self.ids: set[str] = set()
        self.history = LedgerHistory(partial(Ledger.idle, cluster, horizon, bounds), bounds)
        self._due: dict[int, dict[int, Allocation]] = {}  # slot -> job -> what it holds from there

    @property
    def ledger(self) -> Ledger:
        """Committed amounts and their prices."""
        return self.history.present

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
        prices: Prices | tuple[Prices, Prices] | OwnPrices | None = None,
        trust: float = 0.0,
    ) -> OASiS:
        """Make a scheduler with exact bounds of `instance`, U/L multiplied by `scale` (Fig. 6).

        These bounds follow what the jobs report, so a job can gain by a false utility; with bounds
        fixed beforehand no false priority pays (docs/theory, "Truth in bids").

        With `bounds`, learned prices or their file, U and L are those of past days instead, and
        so are `normalize` and `min_utility_fraction`; `trust`, 0 to 1, mixes the learned prices
        in. With `prices`, one's own for both groups or a pair, there are no bounds.
        """
        expect_instance(instance)
        if prices is not None:
            refuse_beside((bounds, scale, normalize, trust))
            own_prices = OwnPrices.of(prices, min_utility_fraction)
            return cls(instance.cluster, instance.horizon, own_prices, granularity=granularity)
        learned = learned_from(bounds, "bounds")
        if learned is None:
            own = PriceBounds.from_instance(
                instance, normalize=normalize, min_utility_fraction=min_utility_fraction
            )
        else:
            with located_at("bounds"), located_at(source=bounds if isinstance(bounds, str) else ""):
                learned.check_resources(instance.cluster.resources, instance.slot_seconds)
            own = learned.bounds
        scale = number(scale, "scale", above=True)
        if scale != 1.0:
            own = own.scaled(scale)
        laws = own if learned is None or not trust else blended(own, learned, trust)
        scheduler = cls(instance.cluster, instance.horizon, laws, granularity=granularity)
        if learned is not None:
            scheduler.bounds_from = bounds if isinstance(bounds, str) else learned.name
        return scheduler

    def __repr__(self) -> str:
        admitted = sum(decision.admitted for decision in self.decisions)
        counts = f"{len(self.decisions)} jobs seen, {admitted} admitted"
        options = f"granularity={self.granularity!r}, {self.bounds!r}"
        return f"OASiS({counts}, slot {self.now} of {self.horizon}, {options})"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that this scheduler was made with, as plain data."""
        return {
            "bounds": self.bounds_from,
            "granularity": self.granularity,
            **PAPER,
            **self.bounds.parameters,
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
        self.check(job)
        # Alg. 1, l. 5: the best schedule at the prices of this moment (21).
        best = found_by(self._searches(job, self.ledger))
        if best is None:
            # Finding the reason takes another search; the number of commits
            # is enough to come back to this moment.
            return Decision.rejected(job.id, partial(self._explain, job, self.history.commits))
        return admitted(job.id, best)

    def submit(self, job: Job) -> Decision:
        """Decide on `job` and, if it is admitted, commit its schedule (Alg. 1, l. 5-12)."""
        decision = self.quote(job)
        # Alg. 1, l. 6-12: charge the schedule and raise the prices of what it
        # touches. Nothing of this is ever taken back.
        if decision.schedule is not None:
            self.history.commit(job, decision.schedule)
        self.record(decision, job.arrival)
        return decision

    def _searches(self, job: Job, ledger: Ledger) -> list[Search]:
        return searches(job, ledger, self.granularity, self.bounds.min_utility_fraction)

    def _explain(self, job: Job, commits: int) -> Explanation:
        """Explain why `job` was rejected when `commits` schedules were committed."""
        return explanation(self._searches(job, self.history.after(commits)))

    def record(self, decision: Decision, arrival: int) -> None:
        """Append `decision`, on a job that arrived in slot `arrival`, to the decisions."""
        self.now = arrival
        self.ids.add(decision.job_id)
        self.decisions.append(decision)

    def check(self, job: Job) -> None:
        """Raise `InstanceError` unless the job fits the cluster and may arrive now."""
        self.cluster.check(job)
        # Prices say what earlier jobs took: a job that comes late in
        # the order would see those of later ones.
        if not self.now <= job.arrival < self.horizon:
            expected = f"expected {self.now}..{self.horizon - 1}, in order of arrival"
            raise InstanceError("arrival", expected, job.arrival, hint=f" (job {job.id!r})")
        if job.id in self.ids:
            raise InstanceError("id", "expected a new job", job.id, hint=" again")

    # -- as a policy -------------------------------------------------------------------------------

    def reset(self, site: Site) -> None:
        """Begin to act as a policy on `site`; earlier commitments stay."""
        self._site = site
        self._due = {}
        self.decision_seconds = []

    def decide(self, view: View) -> Plan:
        """Submit the jobs that arrive, and return the allocations that change in this slot."""
        plan = Plan()
        for job in view.arrived:
            begin = perf_counter()
            decision = self.submit(source_of(job, self.name))
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
        plan.changes = {index: allocation for index, allocation in due.items() if index in active}
        # Between two changes all jobs keep what they hold: no call is needed.
        plan.wake_at = min(self._due, default=None)
        return plan

    def _note(self, index: int, schedule: Schedule) -> None:
        """Schedule the changes of allocation of job `index`, by slot, for `decide`."""
        planned = allocations(schedule, self._site)
        current = NOTHING
        for slot, allocation in planned.items():
            # Only changes are noted, so that a long schedule of equal slots is one entry.
            if allocation != current:
                self._due.setdefault(slot, {})[index] = current = allocation
            # A pause or the end: in the next slot the job must not go on with what it held.
            if slot + 1 not in planned:
                self._due.setdefault(slot + 1, {})[index] = current = NOTHING

    # -- what lasts --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to the file `path`; it appears whole or not at all.

        Prices and committed amounts are not stored: they follow from the schedules, to the last
        bit, as `load` commits them again.

        Raises
        ------
        InputError
            If an admitted job has a utility that the file format does not know.
        """
        save_state(path, CHECKPOINT, content(self))

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
            return restore(cls, state)
