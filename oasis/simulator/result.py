"""What a run of a policy produced, as plain data that serialises to JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from oasis.model.decision import Decision
from oasis.model.schedule import Schedule
from oasis.online.prices import PriceBounds
from oasis.simulator.outcome import Outcome


@dataclass(frozen=True)
class Run:
    """Outcome of one policy on one instance.

    Parameters
    ----------
    policy : str
        Name of the policy.
    parameters : mapping
        Its parameters.
    decisions : tuple of Decision
        In order of arrival.
    bounds : PriceBounds or None
        Price bounds the policy used, if it prices resources.
    decision_seconds : tuple of float
        Measured time of each decision; not part of equality.
    seed : int or None
        Seed of the instance, where it has one.
    version : str
        Package version.
    outcome : Outcome or None
        Times of the jobs and use of the machines, where the run was simulated.
    report : mapping
        What the policy says of its own run, such as searches that it cut short; often nothing.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> run.policy, run.admitted, run.rejected, round(run.total_utility, 3)
    ('oasis', 2, 1, 100.684)
    """

    policy: str
    parameters: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    bounds: PriceBounds | None
    decision_seconds: tuple[float, ...] = field(compare=False)
    seed: int | None
    version: str
    outcome: Outcome | None = field(default=None, compare=False, repr=False)
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total_utility(self) -> float:
        """Sum of the utilities of the admitted jobs: the objective (1)."""
        return math.fsum(decision.utility for decision in self.decisions)

    @cached_property
    def schedules(self) -> dict[str, Schedule]:
        """Schedule of each admitted job by its id."""
        return {d.job_id: d.schedule for d in self.decisions if d.schedule is not None}

    @property
    def admitted(self) -> int:
        """Number of jobs admitted."""
        return sum(decision.admitted for decision in self.decisions)

    @property
    def rejected(self) -> int:
        """Number of jobs rejected."""
        return len(self.decisions) - self.admitted

    @property
    def latency(self) -> dict[str, float]:
        """Median, 99th percentile and maximum of the decision times, seconds."""
        seconds = self.decision_seconds or (0.0,)
        return {
            "median": float(np.median(seconds)),
            "p99": float(np.percentile(seconds, 99)),
            "max": float(max(seconds)),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "policy": self.policy,
            "parameters": dict(self.parameters),
            "total_utility": self.total_utility,
            "admitted": self.admitted,
            "rejected": self.rejected,
            "alpha": self.bounds.alpha if self.bounds else None,
            "decisions": [decision.to_dict() for decision in self.decisions],
            "decision_seconds": self.latency,
            "report": dict(self.report),
            "simulation": self.outcome.figures() if self.outcome else None,
            "seed": self.seed,
            "version": self.version,
        }
