"""Shortest remaining time first."""

from __future__ import annotations

from baselines.ordered import Ordered
from oasis.scheduling import PolicyJob, View


class SRTF(Ordered):
    """The job with the shortest remaining run time goes first and may preempt.

    The rule is textbook (Schrage and Miller, 1966, for one machine, where it is optimal for the
    mean). Chosen: the remaining time of a job is its remaining work over its fixed number of
    workers, known at arrival; the rest as in `Ordered`.

    Examples
    --------
    The short job preempts the long one:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("long", 0.0, 60.0, 8), PlainJob("short", 5.0, 30.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SRTF()).completions
    [90.0, 30.0]
    """

    name = "srtf"
    told_remaining = True

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return view.remaining(job) / workers
