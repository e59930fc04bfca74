"""Admission by sampled futures: the cost of a promise to the jobs that may still arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError, located_at
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.validation import integer
from oasis.online.recourse.admission import DEFAULT_FLOOR, AdmissionRule
from oasis.online.recourse.learned import LearnedPrices
from oasis.online.recourse.live_job import LiveJob, grid_of
from oasis.online.recourse.working_plan import WorkingPlan

DEFAULT_SAMPLES = 8  # with `MOST_JOBS`, 320 insertions in a decision at most
EARLIEST = 4  # if this many futures agree, no others are drawn
TIE = 1e-9  # share of the utility below which a gain is a rounding error
MOST_JOBS = 20  # of a future: each costs two insertions, with the newcomer and without it
MEMORY = 100  # jobs: enough to draw from, few enough to follow a load that changes
ENOUGH = 10  # known jobs from which on an equal trade is accepted
DEFAULT_PROMISE_SHARE = 0.8  # chosen on training seeds: docs/recourse
FIRST_KEY = 2**62  # beyond every key of a job that has arrived


class SampledFutures(AdmissionRule):
    """A job is promised a completion if it earns more than it takes from sampled futures.

    A future is a list of jobs that could arrive until the job completes. Each is planned twice by
    the same insertion in order of density: beside the promised jobs and the newcomer, and beside
    the promised jobs alone. The newcomer is admitted if it is worth at least what the futures lose
    by it on average.

    While fewer than ten jobs are known, futures are copies of very few, and an equal trade is
    refused: better jobs may come. From ten known jobs on, equal trades are accepted: otherwise a
    cluster with identical jobs would never admit one.

    Jobs are drawn from those of past days or the last arrivals, their numbers from
    Poisson distributions. A job is promised the last slot in which it is worth `promise_share` of
    what it is worth at its planned completion, so that it can give way to jobs in more of a hurry.

    Van Hentenryck and Bent, Online Stochastic Combinatorial Optimization, MIT Press 2006: the
    algorithms Expectation and Regret.
    """

    REMADE = ("_learned", "_past")

    def __init__(
        self,
        learned: LearnedPrices | None = None,
        *,
        samples: int = DEFAULT_SAMPLES,
        min_utility_fraction: float = DEFAULT_FLOOR,
        promise_share: float | None = DEFAULT_PROMISE_SHARE,
        seed: int = 0,
    ) -> None:
        self._samples = integer(samples, "samples", minimum=1)
        super().__init__(min_utility_fraction)
        if promise_share is not None and not 0 < promise_share <= 1:
            raise InputError("promise_share", "expected 0 < share <= 1", promise_share)
        if learned is not None and not learned.jobs:
            raise InputError("prices", "expected at least one past job to sample futures from")
        self.promise_share = promise_share
        self._learned, self._seed = learned, seed

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "admission": "futures",
            "samples": self._samples,
            "min_utility_fraction": self.min_utility_fraction,
            "promise_share": self.promise_share,
            "learned": None if self._learned is None else self._learned.digest,
            "seed": self._seed,
        }

    def reset(self, cluster: Cluster, horizon: int, patience: int | None = None) -> None:
        if self._learned is not None:
            with located_at("prices"):
                self._learned.check_resources(cluster.resources, cluster.slot_seconds)
        super().reset(cluster, horizon, patience)
        self._grid = grid_of(cluster)
        self._known: deque[tuple[int, LiveJob]] = deque(maxlen=MEMORY)
        self._arrived = 0
        past = () if self._learned is None else self._learned.jobs
        self._past = [self._template(job) for job in past]

    def learn(self, job: Job) -> None:
        """Record an arriving job; return no prices, so that they stay negligible."""
        if self._learned is None:
            self._known.append((job.arrival, self._template(job)))
        self._arrived += 1

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        """Return whether `live` is worth more than jobs of sampled futures lose by its schedule."""
        schedule = live.schedule
        assert schedule is not None
        # A generator of its own for each decision: how many numbers
        # an earlier one drew does not matter.
        rng = np.random.default_rng((self._seed, self._arrived))
        # Jobs that arrive after the completion do not compete with this job.
        end = min(schedule.completion + 1, plan.ledger.end)
        utility = live.utility_at(schedule.completion)
        # With few jobs known, a future holds copies of them: an equal trade there says little.
        takes_ties = len(self._past or self._known) >= ENOUGH
        gains: list[float] = []
        for sample in range(self._samples):
            # All of one mind so far: more futures would seldom change the sign of the sum.
            if sample == EARLIEST and len({is_gain(gain, takes_ties) for gain in gains}) == 1:
                break
            future = self._future(rng, plan, end)
            # The same future with the newcomer and without it: what both have in common cancels.
            beside, mark = utility_earned(plan, future), plan.mark
            plan.remove(live)
            gain = utility + beside - utility_earned(plan, future)
            gains.append(gain if abs(gain) > TIE * utility else 0.0)
            plan.undo(mark)
        # The sign of the sum is that of the mean.
        total = sum(gains)
        return is_gain(total if abs(total) > TIE * utility else 0.0, takes_ties)

    def accepts_of(self, newcomers: Sequence[LiveJob], plan: WorkingPlan) -> set[int]:
        """Return keys of newcomers that at least half of the sampled futures plan (Consensus)."""
        if not newcomers:
            return set()
        rng = np.random.default_rng((self._seed, self._arrived))
        planned = [live.schedule.completion for live in newcomers if live.schedule is not None]
        end = min(max(planned) + 1, plan.ledger.end)
        votes = dict.fromkeys((live.key for live in newcomers), 0)
        sampled = 0
        for sampled in range(1, self._samples + 1):
            mark = plan.mark
            for live in newcomers:
                plan.remove(live)
            together = [*newcomers, *self._future(rng, plan, end)]
            for live in sorted(together, key=lambda live: (-plan.density(live), live.key)):
                if plan.insert(live) and live.key in votes:
                    votes[live.key] += 1
            plan.undo(mark)
            # All of one mind so far: more futures would seldom change a majority.
            if sampled == EARLIEST and set(votes.values()) <= {0, sampled}:
                break
        return {key for key, count in votes.items() if 2 * count >= sampled}

    def rates(self, now: int, end: int) -> FloatArray:
        """Return arrivals expected in each slot ``now .. end - 1``; half of slot `now` is over."""
        if self._learned is not None:
            rates = self._learned.rates(now, end)
        else:
            # The deque forgets the oldest, so the rate is that of the jobs it still knows.
            first, _ = self._known[0]
            rates = np.full(end - now, len(self._known) / (now + 1 - first))
        rates[0] *= 0.5
        return rates

    def _future(self, rng: np.random.Generator, plan: WorkingPlan, end: int) -> list[LiveJob]:
        """Draw jobs that may arrive before slot `end`; return them, the densest first."""
        known = self._past or [live for _, live in self._known]
        slots = plan.now + np.repeat(
            np.arange(end - plan.now), rng.poisson(self.rates(plan.now, end))
        )
        drawn = rng.integers(len(known), size=len(slots))
        future = []
        # The jobs nearest in time compete most, and each one costs two insertions.
        for k in range(min(len(slots), MOST_JOBS)):
            live = self._arriving(known[int(drawn[k])], FIRST_KEY + k, int(slots[k]))
            # A job that cannot be in time takes nothing, with the newcomer or without it.
            if live.earliest(plan.now) <= live.deadline:
                future.append(live)
        # Greedy by density stands in for the optimum of the future, as in `by_density`.
        return sorted(future, key=lambda live: (-plan.density(live), live.key))

    def _template(self, job: Job) -> LiveJob:
        """Make a live job of `job` as if it arrived in slot 0, to be copied to other slots."""
        end = self._horizon if self._patience is None else self._patience
        job = replace(job, arrival=0)
        return LiveJob.of(0, job, self._cluster, end, self._grid, self.min_utility_fraction)

    def _arriving(self, template: LiveJob, key: int, slot: int) -> LiveJob:
        """Copy `template` as a job with this key that arrives in `slot`."""
        end = self._horizon if self._patience is None else slot + self._patience
        return template.arriving(key, slot, end)


def is_gain(gain: float, takes_ties: bool) -> bool:
    """Return whether `gain` is positive, or 0 if `takes_ties`."""
    return gain > 0 or (takes_ties and gain == 0)


def utility_earned(plan: WorkingPlan, future: Sequence[LiveJob]) -> float:
    """Insert the jobs of `future` in order, sum what they earn, and restore the plan."""
    mark = plan.mark
    total = 0.0
    for live in future:
        if plan.insert(live):
            assert live.schedule is not None
            total += live.utility_at(live.schedule.completion)
    plan.undo(mark)
    return total
