"""What part of the cluster a job takes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from baselines.pools import Pools
from oasis.scheduling.job import Demand, PolicyJob
from oasis.scheduling.site import GROUPS, Site


class Shares:
    """Dominant shares of the resources of `Pools`.

    Parameters
    ----------
    site : Site
        The machines.

    Examples
    --------
    Three workers and as many parameter servers, of one core each, take six of twelve:

    >>> from oasis.scheduling import Machine
    >>> site = Site(("cpu",), (Machine("n0", (12.0,)),))
    >>> Shares(site).dominant(PolicyJob("a", 0.0, 1.0, ((0, 1),), ((0, 1),)), 3, 3)
    0.5
    """

    def __init__(self, site: Site) -> None:
        self._pools = Pools(site)
        self._totals = (self._pools.totals * site.grid).tolist()

    def dominant(self, job: PolicyJob, workers: int, ps: int) -> float:
        """Largest share of a resource that so many workers and parameter servers take."""
        taken: dict[int, int] = {}
        self.add(taken, job, workers, ps)
        return self.largest(taken)

    def add(self, taken: dict[int, int], job: PolicyJob, workers: int, ps: int) -> None:
        """Add what so many tasks of `job` take to amounts that are `taken`, in grid units."""
        for group, count, demand in zip(GROUPS, (workers, ps), (job.worker, job.ps), strict=True):
            for resource, amount in demand if count else ():
                place = self._pools.place(group, resource)
                taken[place] = taken.get(place, 0) + count * amount

    def largest(self, taken: Mapping[int, int]) -> float:
        """The dominant share of who has `taken` such amounts."""
        return max((amount / self._totals[place] for place, amount in taken.items()), default=0.0)


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
