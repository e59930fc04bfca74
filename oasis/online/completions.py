"""The slots in which a job may complete, and its utility there (docs/theory, "The floor")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.model.cluster import Cluster
from oasis.model.job import Job
from oasis.model.rounding import TOLERANCE, FloatArray

HEAD = 64  # completions that are looked at first: where there is a floor, seldom more count
FAR = 1e-9  # relative; more than all rounding of a logarithm of a utility


@dataclass(frozen=True, slots=True)
class Completions:
    """The slots in which a job can complete if it has the cluster to itself, N_i workers at a time.

    A completion *counts* if its utility is positive and not below the floor; all others are treated
    as worthless.
    """

    first: int  # earliest completion slot
    utility: FloatArray  # (n,): f_i at completion in `first` and later; 0 where it does not count
    log_utility: FloatArray  # (n,): exact where the utility is too small for a float; else -inf

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Mask of the completions that count, shape (n,)."""
        return self.log_utility > -np.inf

    @property
    def log_best(self) -> float:
        """Logarithm of f_i at the earliest completion; -inf if that is 0 or after the horizon."""
        return float(self.log_utility[0]) if self.log_utility.size else -np.inf

    @property
    def log_smallest(self) -> float:
        """Logarithm of the smallest utility of a completion that counts; -inf if none counts."""
        counted: Any = self.log_utility[self.counted]
        return float(counted.min()) if counted.size else -np.inf


def completions(
    job: Job,
    horizon: int,
    slot_seconds: float,
    min_utility_fraction: float,
    shortest: int | None = None,
) -> Completions:
    """Completion slots of `job`, which has one form, and their utility under the floor.

    The floor is a share of the utility of the earliest possible completion, which is after
    `shortest` slots if another form of the job is faster.
    """
    # A job that completes in the slot of its arrival has no delay.
    first = job.arrival + job.shortest_duration(slot_seconds) - 1
    n = max(horizon - first, 0)
    utility, log_utility = np.zeros(n), np.empty(n)
    log_utility.fill(-np.inf)
    if n:
        delay = first - job.arrival
        # The floor is a share of the job's best utility, which is that of its
        # earliest completion. Without a floor the threshold is -inf, and zero
        # utilities are told apart by the second condition.
        known = None
        if shortest is not None and shortest <= delay:
            best = job.utility.log_value(np.arange(shortest - 1, shortest))
            known = _threshold(best, min_utility_fraction)
        logs = _logs_of_head(job, delay, n, min_utility_fraction, known)
        floor = _threshold(logs, min_utility_fraction) if known is None else known
        counted = ((logs >= floor) & (logs > -np.inf)).nonzero()[0]
        worth = job.utility(counted + delay)
        # If the best utility is 0 as a float, though its logarithm may be finite, no completion
        # counts: no cost is below 0, so none can have a positive payoff.
        if len(counted) and worth[0] != 0.0:
            log_utility[counted], utility[counted] = logs[counted], worth
    return Completions(first, utility, log_utility)


def completions_by_form(
    job: Job, cluster: Cluster, horizon: int, min_utility_fraction: float
) -> list[Completions]:
    """Completions of `job` in each form; the floor is a share of the best over all forms."""
    seconds, forms = cluster.slot_seconds, job.in_forms
    durations = [None if cluster.unmet(form) else form.shortest_duration(seconds) for form in forms]
    shortest = min((slots for slots in durations if slots is not None), default=None)
    return [
        completions(form, horizon, seconds, min_utility_fraction, shortest)
        if slots is not None
        else Completions(horizon, np.zeros(0), np.zeros(0))
        for form, slots in zip(forms, durations, strict=True)
    ]


def _logs_of_head(
    job: Job, delay: int, n: int, min_utility_fraction: float, known: float | None
) -> FloatArray:
    """Logarithms of utility at the first of `n` delays; all later ones are below the floor."""
    if n > HEAD:
        # No utility grows with time: once one is below the floor by more than
        # rounding, all later ones are, and need not be computed.
        logs = job.utility.log_value(np.arange(delay, delay + HEAD))
        threshold = _threshold(logs, min_utility_fraction) if known is None else known
        if logs[-1] < threshold - FAR * max(1.0, abs(threshold)):
            return logs
    return job.utility.log_value(np.arange(delay, delay + n))


def _threshold(logs: FloatArray, min_utility_fraction: float) -> float:
    # What is worth exactly the share counts, whatever rounding says.
    """Logarithm of the utility floor: this fraction of the best, which is the first of `logs`."""
    return float(logs[0] + _log(min_utility_fraction)) - TOLERANCE


@cache
def _log(fraction: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(fraction))
