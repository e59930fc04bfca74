"""First come, first served."""

from __future__ import annotations

from baselines.queued import Queued
from oasis.scheduling import PolicyJob, View


class FIFO(Queued):
    """Jobs start in order of arrival and run to their end.

    The OASiS paper fixes (section V-A): order of arrival, fixed counts of workers and parameter
    servers, placement round-robin on servers with room; the head of the line blocks. Chosen: the
    counts (`FixedCounts`); a job that lost a server returns to its place in the line; plain jobs go
    best fit, lowest index first. With ``line="fit"`` a job that does not fit is passed: first fit
    in order of arrival (Feitelson, "A survey of scheduling in multiprogrammed parallel systems",
    IBM RC 19790, 1994), which may keep wide jobs waiting for ever.

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
    The last job would fit beside the first, but waits behind the second:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> sizes = {"a": 4, "b": 8, "c": 4}
    >>> jobs = [PlainJob(name, 0.0, 60.0, gpus) for name, gpus in sizes.items()]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO())
    >>> [(job.start, job.end) for job in outcome.jobs]
    [(0.0, 60.0), (60.0, 120.0), (120.0, 180.0)]
    >>> outcome = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO(line="fit"))
    >>> [(job.start, job.end) for job in outcome.jobs]
    [(0.0, 60.0), (60.0, 120.0), (0.0, 60.0)]
    """

    name = "fifo"

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return 0.0
