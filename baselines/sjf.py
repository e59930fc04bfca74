"""Shortest job first."""

from __future__ import annotations

from baselines.queued import Queued
from oasis.scheduling import PolicyJob, View


class SJF(Queued):
    """Of the jobs that wait, the shortest starts first; those that run go on to their end.

    The rule is textbook (Conway, Maxwell and Miller, "Theory of Scheduling", 1967, chapter 8: of
    the rules for one machine that never preempt it has the least mean). Chosen: the length of a job
    is its remaining work over its fixed number of workers, known at arrival; equal ones in order of
    arrival; a job that lost a server returns with what is left of it.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The long job runs to its end, but the last one passes the second:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> rows = [(0.0, 60.0), (5.0, 40.0), (10.0, 20.0)]
    >>> jobs = [PlainJob(f"j{k}", *row, 8) for k, row in enumerate(rows)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SJF())
    >>> [job.end for job in outcome.jobs]
    [60.0, 120.0, 80.0]
    """

    name = "sjf"
    told_remaining = True

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return view.remaining(job) / workers
