"""Admission rules: which jobs are promised a completion at arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.job import Job
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan

DEFAULT_FLOOR = 0.6
# Enough jobs for U and L, few enough to follow a load that changes.
MEMORY = 200


class AdmissionRule:
    """Decides on admission under commitment on arrival; this one takes every job with a schedule.

    A job is admitted if Algorithm 2 finds a schedule of positive payoff at the rule's prices, where
    promised jobs may have to move, and the rule accepts it. Only completions worth at least
    `min_utility_fraction` of a job's best are promised: a job that would be late takes room from
    others that would not, and refusing it early is cheap.
    """

    REMADE: tuple[str, ...] = ()  # what a fresh rule of the same making has: no state holds it
    promise_share: float | None = None  # promised is the last slot with so much of what is planned

    def __init__(self, min_utility_fraction: float = DEFAULT_FLOOR) -> None:
        if not 0 <= min_utility_fraction < 1:
            raise InputError("min_utility_fraction", "expected 0 <= phi < 1", min_utility_fraction)
        self.min_utility_fraction = min_utility_fraction

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Options of the rule, as plain data."""
        return {"min_utility_fraction": self.min_utility_fraction}

    def reset(self, cluster: Cluster, horizon: int, patience: int | None = None) -> None:
        """Start a new run; `horizon` and `patience` are those of `Replanner`."""
        self._cluster, self._horizon, self._patience = cluster, horizon, patience

    def learn(self, job: Job) -> PriceBounds | None:
        """Record an arriving job; return prices from its decision on; None: negligible ones."""
        return None

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        """Return whether `live`, which has a schedule in `plan`, is promised a completion."""
        return True

    def accepts_of(self, newcomers: Sequence[LiveJob], plan: WorkingPlan) -> set[int]:
        """Return keys of the simultaneous `newcomers`, all in `plan`, that are promised one."""
        return {live.key for live in newcomers if self.accepts(live, plan)}


class AtPrices(AdmissionRule):
    """Admits jobs at OASiS's prices (22), by default those computed from the last arrivals."""

    def __init__(
        self, bounds: PriceBounds | None = None, min_utility_fraction: float = DEFAULT_FLOOR
    ) -> None:
        super().__init__(min_utility_fraction)
        self.given = bounds

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "admission": "at prices",
            "min_utility_fraction": self.min_utility_fraction,
            "bounds": "so far" if self.given is None else "given",
        }

    def reset(self, cluster: Cluster, horizon: int, patience: int | None = None) -> None:
        super().reset(cluster, horizon, patience)
        self._jobs: deque[Job] = deque(maxlen=MEMORY)

    def learn(self, job: Job) -> PriceBounds:
        # Given bounds are those of the whole run; others follow what has arrived so far.
        if self.given is not None:
            return self.given
        # Where the horizon rolls, every job has the whole of it ahead, whenever it came.
        self._jobs.append(replace(job, arrival=0) if self._patience is not None else job)
        return PriceBounds.from_jobs(
            self._jobs,
            self._cluster,
            self._horizon,
            min_utility_fraction=self.min_utility_fraction,
            may_know_nothing=True,  # the first job may be one that cannot finish
        )
