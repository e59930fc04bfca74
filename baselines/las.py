"""Least attained service first, as in Tiresias."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from baselines.ordered import STRICT, Ordered
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import PolicyJob, Site, View


class LAS(Ordered):
    """Jobs that have had little service go first; how long they will run is not used.

    Tiresias (Gu et al., NSDI 2019) fixes: service is GPUs times time ("two-dimensional"); queues
    with thresholds on attained service, a job falls to the next queue when it passes one; in a
    queue, first come first served; running jobs of lower queues are preempted; a job that does not
    fit lets those behind it pass (``line="backfill"``). Chosen: the thresholds; order of arrival in
    a queue (Tiresias: of first start); no promotion of starving jobs; a job without GPUs counts its
    workers; a strict line, the rule by which the policies here are compared; the rest as in
    `Ordered`.

    A threshold must suit the workload. On a slotted instance nobody is preempted within a slot, so
    no job falls to the next queue with less than a slot of service. Where one slot already exceeds
    the threshold, each new job runs for one slot and then waits behind everybody who is new: while
    jobs keep arriving, none of them ends (docs: simulator).

    Parameters
    ----------
    seed : int
        Of the counts.
    thresholds : tuple of float
        Ends of all queues but the last, in GPU-hours, increasing.
    line : {"strict", "backfill"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        As for `Placing`.

    Examples
    --------
    The first job has had an hour of its 8 GPUs when the second, which has had nothing, comes:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("old", 0.0, 7200.0, 8), PlainJob("new", 3600.0, 60.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), LAS()).completions
    [7260.0, 60.0]
    """

    name = "las"

    def __init__(
        self,
        seed: int = 0,
        thresholds: tuple[float, ...] = (1.0,),
        *,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if list(thresholds) != sorted(set(thresholds)) or min(thresholds, default=1.0) <= 0:
            raise ValueError(f"thresholds: expected increasing numbers > 0, got {thresholds}")
        self.thresholds = tuple(thresholds)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {**super().parameters, "thresholds": list(self.thresholds)}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._ends = [hours * 3600.0 / site.unit_seconds for hours in self.thresholds]
        gpu = site.resources.index("gpu") if "gpu" in site.resources else None
        self._gpu, self._grid = gpu, site.grid

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return float(self._queue(self._service(job, workers, view)))

    def wake_at(self, view: View) -> float | None:
        """When the next running job passes a threshold, if anybody waits for it."""
        times = []
        if self._waiting:
            for job, workers in self.running():
                service = self._service(job, workers, view)
                queue = self._queue(service)
                if queue < len(self._ends):
                    left = (self._ends[queue] - service) / self._weight(job, workers)
                    times.append(view.now + left)
        return min(times, default=None)

    def _service(self, job: PolicyJob, workers: int, view: View) -> float:
        return view.attained(job) * self._weight(job, workers)

    def _queue(self, service: float) -> int:
        return bisect_right(self._ends, service * (1 + TOLERANCE))

    def _weight(self, job: PolicyJob, workers: int) -> float:
        each = dict(job.worker).get(self._gpu, 0) / self._grid if self._gpu is not None else 0.0
        return workers * (each or 1.0)
