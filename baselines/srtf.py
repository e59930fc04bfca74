"""Shortest remaining time first."""

from __future__ import annotations

from baselines.ordered import Ordered
from oasis.scheduling import PolicyJob, View


class SRTF(Ordered):
    """The job with the shortest remaining run time goes first and may preempt.

    The rule is textbook (Schrage and Miller, 1966, for one machine, where it is optimal for the
    mean). Chosen: the remaining time of a job is its remaining work over its fixed number of
    workers, known at arrival; the rest as in `Ordered`.
    """

    name = "srtf"
    told_remaining = True

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return view.remaining(job) / workers
