"""Shortest remaining service first."""

from __future__ import annotations

from baselines.gpu_time import Gpus
from baselines.ordered import Ordered
from oasis.scheduling import PolicyJob, Site, View


class SRSF(Ordered):
    """The job with the least remaining time times GPUs goes first and may preempt.

    Tiresias (Gu et al., NSDI 2019) names the rule as what one would do if durations were known:
    remaining service is the remaining run time multiplied by the number of GPUs. Chosen: the
    remaining time is the remaining work over the fixed number of workers, known at arrival; a job
    without GPUs counts its workers; the rest as in `Ordered`.

    Examples
    --------
    The wide job is the shorter one, but has more to be served:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("wide", 0.0, 30.0, 8), PlainJob("narrow", 0.0, 60.0, 2)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), SRSF()).completions
    [90.0, 60.0]
    """

    name = "srsf"
    told_remaining = True

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._gpus = Gpus(site)

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return view.remaining(job) / workers * self._gpus.of(job, workers)
