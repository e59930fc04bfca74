"""What part of the cluster a job takes."""

from __future__ import annotations

from collections.abc import Mapping

from baselines.pools import Pools
from oasis.scheduling.job import PolicyJob
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
