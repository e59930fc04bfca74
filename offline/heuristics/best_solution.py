"""The best verified solution so far, and the prices by which the next job is chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.online.ledger import Ledger
from oasis.solvers.budget import NO_LIMIT, Budget
from offline.column_generation.pricing import empty, in_time, price
from offline.model.arrays import OfflineArrays
from offline.state import SolveState

# Prices that only choose between places: small enough that every job of some use pays.
NEARLY_FREE = 1e-4


class PartialSolution:
    """Schedules by job index with the resources they use, always feasible together."""

    def __init__(
        self, arrays: OfflineArrays, schedules: Mapping[str, Schedule] | None = None
    ) -> None:
        self.arrays = arrays
        self.schedules: dict[int, Schedule] = {}
        self.values: dict[int, float] = {}
        self._worker_used = np.zeros((arrays.horizon, *arrays.worker.capacity.shape))
        self._ps_used = np.zeros((arrays.horizon, *arrays.ps.capacity.shape))
        for index, job in enumerate(arrays.jobs):
            if schedules is not None and job.id in schedules:
                self.put(index, schedules[job.id])

    @property
    def value(self) -> float:
        """Total utility (1)."""
        return math.fsum(self.values.values())

    @property
    def by_id(self) -> dict[str, Schedule]:
        """Schedules by job id, in the order of the file."""
        return {self.arrays.jobs[k].id: self.schedules[k] for k in sorted(self.schedules)}

    @property
    def by_form(self) -> dict[int, Schedule]:
        """Schedules by the index of the form that runs, in the order of the file."""
        ordered = sorted(self.schedules.items())
        return {self.arrays.form_of(k, schedule): schedule for k, schedule in ordered}

    def put(self, index: int, schedule: Schedule) -> None:
        """Add the schedule of a job, given by index; the caller must know that it fits."""
        self.schedules[index] = schedule
        self.values[index] = self.arrays.utility(index, schedule.completion)
        form = self.arrays.form_of(index, schedule)
        for used, rows, group in (
            (self._worker_used, schedule.workers, self.arrays.worker),
            (self._ps_used, schedule.ps, self.arrays.ps),
        ):
            used[rows[:, SLOT], rows[:, SERVER]] += rows[:, COUNT, None] * group.demand[form]

    def insert(self, index: int, worker_prices: FloatArray, ps_prices: FloatArray) -> bool:
        """Schedule a job at the best payoff for these prices; return whether one is positive."""
        _, schedule = price(self.arrays.jobs[index], self.ledger(worker_prices, ps_prices))
        if schedule is not None:
            self.put(index, schedule)
        return schedule is not None

    def ledger(self, worker_prices: FloatArray, ps_prices: FloatArray) -> Ledger:
        """Return a ledger of the used amounts, with these prices, for the search of schedules."""
        resources = self.arrays.worker.resources
        used = self._worker_used[..., :resources], self._ps_used[..., :resources]
        return Ledger.of_arrays(self.arrays.cluster, worker_prices, ps_prices, *used)

    def free(self) -> tuple[FloatArray, FloatArray]:
        """Return unused capacities (T, H, R + L), (T, K, R + L), with L columns of admission."""
        return (
            np.maximum(0.0, self.arrays.worker.capacity - self._worker_used),
            np.maximum(0.0, self.arrays.ps.capacity - self._ps_used),
        )

    def distances(self, jobs: Sequence[int], slot: float) -> FloatArray:
        """Slots between `slot` and the time at which each of these jobs runs; 0 if it runs then."""
        gaps = [
            max(0.0, self.schedules[k].start - slot, slot - self.schedules[k].completion)
            for k in jobs
        ]
        return np.array(gaps)

    def fill(self, order: Iterable[int], worker_prices: FloatArray, ps_prices: FloatArray) -> None:
        """Insert jobs with a payoff at these prices, in this order; then the others that fit."""
        # At the prices of the bound only jobs worth their place come in; what is left over is free.
        rejected = [k for k in order if not self.insert(k, worker_prices, ps_prices)]
        for k in rejected:
            self.insert(k, worker_prices * NEARLY_FREE, ps_prices * NEARLY_FREE)


BETTER = 1e-12  # relative: what rounding may add to a total utility


class BestSolution:
    """The incumbent as a `PartialSolution`; solutions that are better are verified and recorded."""

    def __init__(self, arrays: OfflineArrays, state: SolveState) -> None:
        self.solution = PartialSolution(arrays, state.schedules)
        self.is_own = False
        self.state = state
        if state.incumbent is None:  # else it was verified when it became the incumbent
            state.record_solution(self.solution.by_id)

    @property
    def value(self) -> float:
        """Total utility (1)."""
        return self.solution.value

    def offer(self, solution: PartialSolution) -> bool:
        """Verify `solution` and make it the incumbent if it is better; return whether it was."""
        if not is_better(solution.value, self.value):
            return False
        # No heuristic is trusted: what it offers is checked before it counts.
        self.state.record_solution(solution.by_id)
        self.solution, self.is_own = solution, True
        return True

    def catch_up(self) -> None:
        """Replace the solution by the state's incumbent, from elsewhere, if that is better."""
        known = self.state.incumbent
        if known is not None and is_better(known, self.value):
            self.solution = PartialSolution(self.solution.arrays, self.state.schedules)
            self.is_own = False

    @property
    def is_proven(self) -> bool:
        """Whether the gap between incumbent and bound is closed."""
        return self.state.is_proven


def is_better(value: float, known: float) -> bool:
    """Return whether a total utility exceeds another beyond rounding."""
    return value > known * (1 + BETTER)


# Standard deviation of the normal variable whose exponential multiplies a job's priority:
# orders differ, and the best jobs still come first.
PRIORITY_NOISE = 0.3
# Of a job's best utility: what counts as payoff where it has none, so that it is tried now and
# then.
HOPE = 0.05
LEAST = 1e-3  # of a job's best utility: its priority without payoff
TINY = 1e-12  # so that every job has some chance


@dataclass(frozen=True, slots=True, eq=False)
class DualValues:
    """Prices of a bound, and the payoffs of jobs at these prices."""

    worker_prices: FloatArray
    ps_prices: FloatArray
    payoffs: FloatArray
    best: FloatArray

    @classmethod
    def of(
        cls,
        arrays: OfflineArrays,
        worker_prices: FloatArray,
        ps_prices: FloatArray,
        budget: Budget = NO_LIMIT,
    ) -> DualValues:
        """Find each job's best payoff on the empty cluster at these prices, and at zero prices."""
        dear = empty(arrays, worker_prices, ps_prices)
        free = empty(arrays, worker_prices * 0.0, ps_prices * 0.0)
        payoffs, best = (
            np.array([price(job, ledger)[0] for job in in_time(arrays.jobs, ledger, budget)])
            for ledger in (dear, free)
        )
        return cls(worker_prices, ps_prices, payoffs, best)

    @property
    def chances(self) -> FloatArray:
        """Relative probability (I,) that a search draws each job to insert it."""
        chances: FloatArray = self.payoffs + HOPE * self.best + TINY
        return chances

    def order(self, jobs: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Return jobs by noisy payoff, noisy payoff per utility, or at random: one of these."""
        noise = np.exp(rng.normal(0.0, PRIORITY_NOISE, len(jobs)))
        ids = np.array(jobs, dtype=np.int64)
        keys = (self.payoffs[ids], self.payoffs[ids] / np.maximum(self.best[ids], 1e-300))
        # No one order is best on all instances, so each of three has its turn.
        choice = int(rng.integers(3))
        key = (keys[choice] + LEAST * self.best[ids]) * noise if choice < 2 else noise
        return [jobs[k] for k in np.argsort(-key, kind="stable").tolist()]
