"""The job as a policy sees it."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model import rounding
from oasis.model.job import Job
from oasis.model.utility import Utility

Demand = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PolicyJob:
    """A job, all of which a policy may know once it has arrived.

    Parameters
    ----------
    id : str
        Its name.
    arrival : float
        Time of arrival.
    work : float
        Work, in units of one worker for one unit of time.
    worker, ps : tuple of (resource index, amount)
        Demand of one worker and of one parameter server, in grid units.
    min_workers, max_workers : int
        It runs with so many workers, or not at all.
    ps_per_worker : float
        b_i / B_i: n workers need ceil(n b_i / B_i) parameter servers (6), and at most n (7).
    utility : Utility or None
        Value by delay in slots; None in a plain trace.
    source : Job or None
        The job of the instance.
    index : int
        Its place in the order of arrival, which says nothing about later jobs.
    """

    id: str
    arrival: float
    work: float
    worker: Demand
    ps: Demand = ()
    min_workers: int = 1
    max_workers: int = 1
    ps_per_worker: float = 0.0
    utility: Utility | None = None
    source: Job | None = None
    index: int = -1

    def ps_needed(self, workers: int) -> int:
        """Fewest parameter servers for `workers` (6)."""
        return int(rounding.ceil(workers * self.ps_per_worker)) if self.ps_per_worker else 0
