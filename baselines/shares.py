"""What part of the cluster a job takes."""

from __future__ import annotations

from oasis.scheduling.job import PolicyJob
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
