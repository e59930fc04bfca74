"""Samples of the evaluation functions of jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oasis.model.records import Number, Whole, check, entry
from oasis.model.validation import LARGEST_COUNT
from oasis.scheduling.job import PolicyJob


@dataclass(frozen=True, slots=True)
class Observation:
    """Sampling of the evaluation functions of jobs.

    Parameters
    ----------
    interval : float
        Each job that works is looked at whenever the clock shows a multiple of this.
    noise : float
        Standard deviation of the error of a sample.
    seed : int
        Seed of the errors; each job has errors of its own, whatever the others do.

    Examples
    --------
    >>> Observation(interval=30.0).noise
    0.0
    """

    interval: float = entry(
        Number(above=True, maximum=LARGEST_COUNT), "Seconds between two samples."
    )
    noise: float = entry(
        Number(), "Standard deviation of the normal noise added to each sample.", 0.0
    )
    seed: int = entry(Whole(), "Seed of the noise.", 0)

    def __post_init__(self) -> None:
        check(self)


class Samples:
    """The samples of one job so far; the job must have a `curve`."""

    __slots__ = ("_how", "_next", "_rng", "values")

    def __init__(self, job: PolicyJob, how: Observation) -> None:
        self._how = how
        self._next = 0  # the next multiple of the interval to look at
        # A generator for each job: errors do not depend on which job was looked at first.
        self._rng = np.random.default_rng([how.seed, job.index]) if how.noise else None
        self.values: list[tuple[float, float]] = []  # time and value of each evaluation

    def note(self, job: PolicyJob, begin: float, now: float, remaining: float, rate: float) -> None:
        """Add the samples due from `begin`, when `remaining` work is left, to `now` at `rate`."""
        interval, curve = self._how.interval, job.curve
        assert curve is not None
        # Multiples of the interval in which the job did not work show nothing.
        self._next = max(self._next, math.ceil(begin / interval))
        while (time := self._next * interval) <= now:
            self._next += 1
            ahead = max(0.0, remaining - (time - begin) * rate)
            value = curve.at(1.0 - ahead / job.work if job.work else 1.0)
            if self._rng is not None:
                value += self._how.noise * float(self._rng.standard_normal())
            self.values.append((time, value))
