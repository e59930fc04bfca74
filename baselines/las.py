"""Least attained service first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baselines.levels import Levels, check_levels
from baselines.line import STRICT
from baselines.ordered import Ordered, Rank
from oasis.scheduling import PolicyJob, Site, View

ARRIVAL, RUNNING_FIRST = "arrival", "running-first"
RUNS, WAITS = 0, 1


class LAS(Ordered):
    """Jobs that have had little service go first; how long they will run is not used.

    Tiresias (Gu et al., NSDI 2019) fixes: service is GPUs times time ("two-dimensional"); queues
    with thresholds on attained service, a job falls to the next queue when it passes one; in a
    queue, first come first served; running jobs of lower queues are preempted; a job that does not
    fit lets those behind it pass (``line="fit"``). Chosen: the thresholds; no promotion of starving
    jobs; a job without GPUs counts its workers; a strict line, the rule by which the policies here
    are compared; the rest as in `Ordered`.

    Who came first in a queue is read in two ways. ``order="arrival"``: who was submitted first, as
    in the simulator of Lucid (Hu et al., ASPLOS 2023). ``order="running-first"``, as in the
    simulator of Tiresias: a job enters its queue at the end, and after each decision those that run
    stand before those that wait; wide jobs may then wait for very long.

    A threshold must suit the workload. On a slotted instance nobody is preempted within a slot, so
    no job falls to the next queue with less than a slot of service. Where one slot already exceeds
    the threshold, each new job runs for one slot and then waits behind everybody who is new: while
    jobs keep arriving, none of them ends (docs: simulator).

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    thresholds : tuple of float
        Ends of all queues but the last, in GPU-hours, increasing.
    order : {"arrival", "running-first"}
        Who goes first in a queue.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

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
        seed: int | None = 0,
        thresholds: tuple[float, ...] = (1.0,),
        *,
        order: str = ARRIVAL,
        line: str = STRICT,
        placement: str | None = None,
    ) -> None:
        super().__init__(seed, line=line, placement=placement)
        if order not in (ARRIVAL, RUNNING_FIRST):
            raise ValueError(f"order: expected {ARRIVAL} or {RUNNING_FIRST}, got {order!r}")
        self.thresholds, self.order = check_levels(thresholds, "thresholds"), order

    @property
    def parameters(self) -> Mapping[str, Any]:
        own = {"thresholds": list(self.thresholds), "order": self.order}
        return {**super().parameters, **own}

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._levels = Levels(self.thresholds, site)
        # of each job its queue, whether it stands there among those that run, and its place
        self._stands: dict[int, tuple[int, int, int]] = {}
        self._last, self._front = 0, 0  # places given at the end and at the front of queues

    def _behind(self) -> int:
        """A place behind all that were given."""
        self._last += 1
        return self._last

    def _before(self) -> int:
        """A place before all that were given."""
        self._front -= 1
        return self._front

    def key(self, job: PolicyJob, workers: int, view: View) -> Rank:
        if self.order == ARRIVAL:
            return float(self._levels.level(self._levels.service(job, workers, view)))
        if job.index not in self._stands:
            self._stands[job.index] = 0, WAITS, self._behind()
        return self._stands[job.index]

    def before_serving(self, view: View) -> None:
        """Put those that passed a threshold at the end of their next queue, in order of time."""
        if self.order == ARRIVAL:
            return
        for job in view.finished:
            self._stands.pop(job.index, None)
        fallen = []
        for job, workers in self.running():
            queue = self._levels.level(self._levels.service(job, workers, view))
            if queue != self._stands[job.index][0]:
                fallen.append((-self._levels.since_end(job, workers, view), job.index, queue))
        for _, index, queue in sorted(fallen):
            self._stands[index] = queue, WAITS, self._behind()

    def after_serving(self) -> None:
        """Put those of each queue that run before those that wait, in the order that they had."""
        if self.order == ARRIVAL:
            return
        for index in self._running:
            queue, stand, _ = self._stands[index]
            if stand == WAITS:
                self._stands[index] = queue, RUNS, self._behind()
        for place in reversed(range(len(self._waiting))):
            _, index = self._waiting[place]
            queue, stand, _ = self._stands[index]
            if stand == RUNS:
                self._stands[index] = queue, WAITS, self._before()
                self._waiting[place] = self._stands[index], index

    def wake_at(self, view: View) -> float | None:
        """When the next running job passes a threshold, if anybody waits for it."""
        return self._levels.next_end(self.running(), view) if self._waiting else None
