"""Admission rules: which jobs are promised a completion at arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.job import Job
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan

DEFAULT_FLOOR = 0.6
# Enough jobs for U and L, few enough to follow a load that changes.
MEMORY = 200


class AdmissionRule(Protocol):
    """Decides on admission under commitment on arrival.

    A job is admitted if Algorithm 2 finds a schedule of positive payoff at the rule's prices,
    where promised jobs may have to move, and the rule then accepts it.
    """

    min_utility_fraction: float
    promise_share: float | None  # a job is promised the last slot with so much of what is planned

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Options of the rule, as plain data."""
        ...

    @property
    def seen(self) -> tuple[Job, ...]:
        """The last arrivals, as far as decisions depend on them."""
        ...

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived in this run."""
        ...

    @property
    def shared(self) -> Iterable[object]:
        """Immutable parts that a copy may share with the original."""
        ...

    def reset(
        self,
        cluster: Cluster,
        horizon: int,
        patience: int | None = None,
        seen: Iterable[Job] = (),
        arrived: int = 0,
    ) -> None:
        """Start a run, or resume one after `arrived` arrivals, the last of them `seen`.

        `horizon` and `patience` are those of `Replanner`.
        """
        ...

    def learn(self, job: Job) -> PriceBounds | None:
        """Record an arriving job; return the prices from its decision on.

        None leaves prices next to nothing: jobs then complete as early as they can.
        """
        ...

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        """Return whether `live`, scheduled in `plan`, gets its promise."""
        ...


@runtime_checkable
class AcceptingTogether(Protocol):
    """A rule that decides on many simultaneous arrivals together, instead of one by one."""

    def accepts_of(self, newcomers: Sequence[LiveJob], plan: WorkingPlan) -> set[int]:
        """Return keys of the `newcomers` that get a promise; all are scheduled in `plan`."""
        ...


class AtPrices:
    """OASiS's prices (22): what pays at them is admitted.

    Parameters
    ----------
    bounds : PriceBounds, optional
        U and L. Default: those of the jobs that have arrived so far, the deciding one included.
    min_utility_fraction : float
        phi: only completions worth at least this much of a job's best are promised. A job that
        would be late takes room from others that would not; refusing it early is cheap.
    memory : int
        Number of last arrivals that give the default bounds.
    """

    promise_share: float | None = None

    def __init__(
        self,
        bounds: PriceBounds | None = None,
        min_utility_fraction: float = DEFAULT_FLOOR,
        memory: int = MEMORY,
    ) -> None:
        if not 0 <= min_utility_fraction < 1:
            expected = "expected 0 <= phi < 1"
            raise InputError("min_utility_fraction", f"{expected}", min_utility_fraction)
        if type(memory) is not int or memory < 1:
            raise InputError("memory", "expected an integer >= 1", memory)
        self.min_utility_fraction = min_utility_fraction
        self._given, self._memory = bounds, memory

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "admission": "at prices",
            "min_utility_fraction": self.min_utility_fraction,
            "bounds": "so far" if self._given is None else "given",
            "memory": self._memory,
        }

    @property
    def given(self) -> PriceBounds | None:
        """The bounds that it was made with."""
        return self._given

    @property
    def seen(self) -> tuple[Job, ...]:
        """The last arrivals, which give the bounds if none were given."""
        return tuple(self._seen)

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived in this run."""
        return self._arrived

    @property
    def shared(self) -> Iterable[object]:
        """Immutable parts that a copy may share with the original."""
        return [self._given, *self._seen]

    def reset(
        self,
        cluster: Cluster,
        horizon: int,
        patience: int | None = None,
        seen: Iterable[Job] = (),
        arrived: int = 0,
    ) -> None:
        """Start a run, or resume one after `arrived` arrivals, the last of them `seen`."""
        self._cluster, self._horizon, self._rolling = cluster, horizon, patience is not None
        self._arrived = arrived
        self._seen: deque[Job] = deque(seen, maxlen=self._memory)

    def learn(self, job: Job) -> PriceBounds:
        self._arrived += 1
        # Given bounds are those of the whole run; others follow what has arrived so far.
        if self._given is not None:
            return self._given
        # Where the horizon rolls, every job has the whole of it ahead, whenever it came.
        self._seen.append(replace(job, arrival=0) if self._rolling else job)
        return PriceBounds.from_jobs(
            self._seen,
            self._cluster,
            self._horizon,
            min_utility_fraction=self.min_utility_fraction,
            may_know_nothing=True,  # the first job may be one that cannot finish
        )

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        return True
