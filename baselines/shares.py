"""What part of the cluster a job takes."""

from __future__ import annotations

import math

from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.site import GROUPS, Site


class Shares:
    """Dominant shares: a resource of the worker servers and of the PS hosts are two resources."""

    def __init__(self, site: Site) -> None:
        self._totals = [[total * site.grid for total in site.totals(group)] for group in GROUPS]

    def dominant(self, job: PolicyJob, workers: int, ps: int) -> float:
        """Largest share of a resource that so many workers and parameter servers take."""
        return max(
            (
                count * amount / totals[resource]
                for count, demand, totals in zip(
                    (workers, ps), (job.worker, job.ps), self._totals, strict=True
                )
                for resource, amount in demand
                if count
            ),
            default=0.0,
        )


class MachineShares:
    """What tasks ask for, as shares of what the largest machine has of each resource.

    Parameters
    ----------
    site : Site
        The machines.
    group : {"worker", "ps"}
        Which tasks: machines that host such tasks are looked at.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> shares = MachineShares(Site(("gpu",), (Machine("n0", (4.0,), cpu_cores=8.0),)), "worker")
    >>> shares.of(((0, 1),), 2.0), shares.of(((0, 1),), 2.0, tasks=3)
    ([0.25, 0.25], [0.75, 0.75])
    """

    def __init__(self, site: Site, group: str) -> None:
        machines = [site.machines[k] for k in site.machines_for(group)]
        rows = [machine.capacity for machine in machines]
        self._largest = [max(column, default=0) for column in zip(*rows, strict=True)]
        self._cores = max((machine.cpu_cores for machine in machines), default=math.inf)

    def of(self, demand: Demand, cores: float, tasks: int = 1) -> list[float]:
        """The share of each resource that `tasks` reserve, and last that of the cores.

        `cores` is what each of them keeps busy without reserving it.
        """
        shares = [tasks * amount / self._largest[resource] for resource, amount in demand]
        return [*shares, tasks * cores / self._cores]
