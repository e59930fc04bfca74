"""Workloads of elastic jobs: machines, jobs that may be resized, and what resizing costs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.model.summary import Facts, Summarised
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.observation import Observation
from oasis.simulator.speed import Speed
from oasis.simulator.workload import Workload


@dataclass(frozen=True, slots=True, repr=False)
class ElasticWorkload(Summarised):
    """Elastic jobs on machines, with all that decides how fast they train; times in seconds.

    Parameters
    ----------
    workload : Workload
        The machines and the jobs.
    speed : Speed
        How fast the jobs work.
    costs : ChangeCosts
        What changes cost them.
    observation : Observation or None
        How their training is looked at.
    document : mapping
        The plain data of the file that all this was made from.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import generate_elastic, replay
    >>> made = generate_elastic(jobs=3, seed=1)
    >>> len(replay(made.workload, FIFO(), **made.options).completions)
    3
    """

    workload: Workload
    speed: Speed
    costs: ChangeCosts
    observation: Observation | None
    document: Mapping[str, Any] = field(repr=False, compare=False)

    def summary(self) -> tuple[str, Facts]:
        """Jobs, machines and resources; and the speed model."""
        _, said = self.workload.summary()
        return "ElasticWorkload", [*said, ("speed", type(self.speed).__name__)]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `replay` and `Engine` that are part of the workload."""
        return {"speed": self.speed, "costs": self.costs, "observation": self.observation}
