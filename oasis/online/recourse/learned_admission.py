"""Admission at learned prices: a job is promised what pays at the prices of past days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oasis.model.cluster import Cluster
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.online.recourse.learned import GROUPS, LearnedPrices
from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan


class AtLearnedPrices:
    """A job is admitted if it is worth more than its schedule costs at learned prices.

    Jobs complete as early as there is room; prices decide on admission alone.

    Parameters
    ----------
    learned : LearnedPrices
        Prices by slot of the day.
    min_utility_fraction : float
        phi: only completions worth at least this much of a job's best are promised.

    Examples
    --------
    >>> import oasis
    >>> from oasis.online.recourse import AtLearnedPrices
    >>> from offline import learn_prices
    >>> past = [oasis.generate("testbed", jobs=6, seed=seed) for seed in (1, 2)]
    >>> rule = AtLearnedPrices(learn_prices(past), min_utility_fraction=0.3)
    >>> instance = oasis.generate("testbed", jobs=6, seed=3)
    >>> run = oasis.simulate(instance, oasis.Recourse("arrival", admission=rule))
    >>> run.report["broken_promises"]
    []
    """

    promise_share: float | None = None

    def __init__(self, learned: LearnedPrices, min_utility_fraction: float) -> None:
        if not 0 <= min_utility_fraction < 1:
            expected = "expected 0 <= phi < 1"
            raise ValueError(f"min_utility_fraction: {expected}, got {min_utility_fraction}")
        self.min_utility_fraction = min_utility_fraction
        self._learned = learned

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "admission": "learned prices",
            "min_utility_fraction": self.min_utility_fraction,
            "learned": self._learned.digest,
        }

    @property
    def seen(self) -> tuple[Job, ...]:
        """Nothing: decisions do not depend on earlier arrivals."""
        return ()

    @property
    def arrived(self) -> int:
        """How many jobs have arrived in this run."""
        return self._arrived

    @property
    def shared(self) -> Iterable[object]:
        """What a copy may share with the original because nobody changes it."""
        return [self._learned]

    def reset(
        self,
        cluster: Cluster,
        horizon: int,
        patience: int | None = None,
        seen: Iterable[Job] = (),
        arrived: int = 0,
    ) -> None:
        """Begin a new run, or go on with one in which `arrived` jobs came."""
        self._learned.check_resources(cluster.resources, cluster.slot_seconds)
        self._cluster, self._arrived = cluster, arrived

    def learn(self, job: Job) -> None:
        """Count an arriving job; prices of the plan stay next to nothing."""
        self._arrived += 1

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        """Whether the planned completion is worth more than the schedule costs."""
        assert live.schedule is not None
        return live.utility_at(live.schedule.completion) > self.cost(live.job, live.schedule)

    def cost(self, job: Job, schedule: Schedule) -> float:
        """What `schedule` costs at the learned prices."""
        cost = 0.0
        for group in GROUPS:
            rows = schedule.workers if group == "worker" else schedule.ps
            demand = as_array(getattr(job, group), self._cluster.resources)
            by_row = self._learned.prices(group, rows[:, SLOT]) @ demand
            cost += float(by_row @ rows[:, COUNT])
        return cost
