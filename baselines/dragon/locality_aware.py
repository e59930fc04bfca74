"""DRAGON without scaling: whole gangs, packed, first come first served with passing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baselines.dragon.packing import FewestNodes, Ladder
from baselines.gang_controller import GangController
from baselines.gang_queue import Size
from oasis.scheduling import Plan, Site
from oasis.scheduling.policy import View

TEXT, CODE = "text", "code"


class LocalityAware(GangController):
    """The rival of the DRAGON paper: its scheduling and its packing, but no scaling (section 4.1).

    A job is launched with all its tasks at once, or waits (gang scheduling, section 3.1). The queue
    is served by `launch_first_that_fits`.

    What a job asks for, the "Num. Workers" of the paper's Table 1, and what was chosen is as in
    `GangController`; the queue is in order of arrival.

    Parameters
    ----------
    reading : {"text", "code"}
        Whether jobs are placed as the paper says (`FewestNodes`) or as the public code does
        (`Ladder`, which may launch a job with fewer workers than it asks for).

    Examples
    --------
    The second job of six waits, and a smaller one that came later passes it; each is packed on one
    machine:

    >>> from oasis.simulator import Machine, PolicyJob, Workload, replay
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 12.0, ((0, 1),), min_workers=n, max_workers=n)
    ...     for name, n in (("a", 6), ("b", 6), ("c", 2))
    ... ]
    >>> [job.start for job in replay(Workload.of(site, jobs), LocalityAware()).jobs]
    [0.0, 2.0, 0.0]
    """

    name = "locality-aware"

    def __init__(self, *, reading: str = TEXT) -> None:
        if reading not in (TEXT, CODE):
            raise ValueError(f"reading: expected {TEXT} or {CODE}, got {reading!r}")
        super().__init__(FewestNodes if reading == TEXT else Ladder)
        self.reading = reading

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"reading": self.reading}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._hopeless: set[Size] = set()

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.launch_first_that_fits()
        return self._plan

    def launch_first_that_fits(self) -> None:
        """Step (3) of Fig. 5, AFCFS (section 3.3): launch the first waiting job that fits.

        "It simply selects the first arrival job in the queue whose required resource capacity is
        less than the residual capacity"; then the next, until none fits. Read: less or equal, as a
        whole cluster could else never be used; and a job fits if its tasks can be placed, not if
        their sum is free somewhere.
        """
        self._queue.launch_all(lambda job: (job.index,), self._launch, self._hopeless)

    def _begin(self, view: View) -> None:
        """Enter what happened (OnAdd and OnDelete of Fig. 5) and look at the residual capacity."""
        super()._begin(view)
        self._hopeless.clear()
