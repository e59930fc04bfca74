"""The result of a policy on an instance, as plain data that serialises to JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from oasis.model.decision import Decision
from oasis.model.document import count, entry, list_of, mapping, optional, real, text
from oasis.model.files import frame
from oasis.model.schedule import Schedule
from oasis.model.summary import Facts, Summarised, short
from oasis.online.own_prices import OwnPrices
from oasis.online.prices import PriceBounds
from oasis.simulator.outcome import Outcome, read_figures


@dataclass(frozen=True, repr=False)
class Run(Summarised):
    """Outcome of one policy on one instance.

    Parameters
    ----------
    policy : str
        Name of the policy.
    parameters : mapping
        Its parameters.
    decisions : tuple of Decision
        Decisions in order of arrival.
    bounds : PriceBounds, OwnPrices or None
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
    bounds: PriceBounds | OwnPrices | None
    decision_seconds: tuple[float, ...] = field(compare=False)
    seed: int | None
    version: str
    outcome: Outcome | None = field(default=None, compare=False)
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
    def payments(self) -> dict[str, float]:
        """What each admitted job pays at the prices of its arrival, by id; empty without prices."""
        if self.bounds is None and not any(map(self.parameters.get, ("prices", "trust"))):
            return {}
        return {each.job_id: each.cost for each in self.decisions if each.admitted}

    @property
    def revenue(self) -> float:
        """Sum of the payments: what the machines earn if jobs pay the posted prices."""
        return math.fsum(self.payments.values())

    @property
    def admitted_unfinished(self) -> int:
        """Number of jobs that were admitted and did not finish within the horizon.

        `Outcome.unfinished` counts those that were rejected too.
        """
        return sum(d.admitted and d.completion is None for d in self.decisions)

    @cached_property
    def latency(self) -> dict[str, float]:
        """Median, 99th percentile and maximum of the decision times, seconds."""
        seconds = self.decision_seconds or (0.0,)
        return {
            "median": float(np.percentile(seconds, 50)),  # np.median loads masked arrays first
            "p99": float(np.percentile(seconds, 99)),
            "max": float(max(seconds)),
        }

    @cached_property
    def simulation(self) -> dict[str, Any] | None:
        """Figures of `Outcome.figures`; None if the run was not simulated."""
        return None if self.outcome is None else self.outcome.figures()

    def summary(self) -> tuple[str, Facts]:
        """Policy, total utility, and how many jobs were admitted and did not finish."""
        facts = [
            ("policy", self.policy),
            ("total utility", short(self.total_utility)),
            ("admitted", f"{self.admitted} of {len(self.decisions)} jobs"),
        ]
        if self.admitted_unfinished:
            facts.append(("did not finish", f"{self.admitted_unfinished} of them"))
        return "Run", facts

    def to_frame(self) -> Any:
        """Decisions as a pandas DataFrame: one row per job in order of arrival.

        Returns
        -------
        pandas.DataFrame
            With the columns job_id, admitted, utility, cost, payoff, start, completion,
            worker_slots and reason; empty where a job has none.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed, naming the extra that brings it.

        Examples
        --------
        >>> import oasis
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        >>> run.to_frame()[["job_id", "start", "completion"]].values.tolist()
        [['j0', 4, 8], ['j1', <NA>, <NA>], ['j2', 6, 9]]
        """
        rows = []
        for decision in self.decisions:
            row = {name: getattr(decision, name, None) for name in FRAME}
            if (plan := decision.schedule) is not None:
                row |= {"start": plan.start, "worker_slots": plan.worker_slots}
            rows.append(row)
        return frame(rows, FRAME)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data for JSON, the inverse of `from_dict`."""
        return {
            "kind": KIND,
            "policy": self.policy,
            "parameters": dict(self.parameters),
            "total_utility": self.total_utility,
            "admitted": self.admitted,
            "rejected": self.rejected,
            # Prices of one's own are code, of which `parameters` has the name.
            "alpha": self.bounds.alpha if isinstance(self.bounds, PriceBounds) else None,
            "bounds": self.bounds.to_dict() if isinstance(self.bounds, PriceBounds) else None,
            "decisions": [decision.to_dict() for decision in self.decisions],
            "decision_seconds": self.latency,
            "report": dict(self.report),
            "simulation": self.simulation,
            "seed": self.seed,
            "version": self.version,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """Rebuild from `to_dict`, also after a trip through JSON; further keys do not matter.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.

        Examples
        --------
        >>> import json, oasis
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        >>> oasis.Run.from_dict(json.loads(json.dumps(run.to_dict()))).to_dict() == run.to_dict()
        True
        """
        run = cls(
            policy=entry(data, "policy", text),
            parameters=entry(data, "parameters", mapping),
            decisions=entry(data, "decisions", list_of(Decision.from_dict)),
            bounds=entry(data, "bounds", optional(PriceBounds.from_dict)),
            decision_seconds=(),
            seed=entry(data, "seed", optional(count)),
            version=entry(data, "version", text),
            report=entry(data, "report", mapping),
        )
        # The document has neither each measured time nor the outcome that these come from.
        vars(run)["latency"] = entry(data, "decision_seconds", read_latency)
        vars(run)["simulation"] = entry(data, "simulation", optional(read_figures))
        return run


def read_latency(data: Any) -> dict[str, float]:
    """Read `Run.latency`; `InstanceError` with the path of what is missing or wrong."""
    return {name: entry(data, name, real) for name in ("median", "p99", "max")}


KIND = "run"
FRAME = {
    "job_id": "string",
    "admitted": "bool",
    "utility": "float64",
    "cost": "float64",
    "payoff": "float64",
    "start": "Int64",
    "completion": "Int64",
    "worker_slots": "Int64",
    "reason": "string",
}  # columns of `to_frame` and their types
