"""Levels of attained service, at whose ends a policy thinks again about a job."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from baselines.gpu_time import Gpus
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import PolicyJob, Site, View

Workers = tuple[PolicyJob, int]


def check_levels(hours: tuple[float, ...], name: str) -> tuple[float, ...]:
    """`hours` if they increase and are positive.

    Raises
    ------
    ValueError
        If they do not; the message begins with `name`.
    """
    if list(hours) != sorted(set(hours)) or min(hours, default=1.0) <= 0:
        raise ValueError(f"{name}: expected increasing numbers > 0, got {hours}")
    return tuple(hours)


class Levels:
    """Service is GPUs times time that a job held them ("two-dimensional" in Tiresias).

    Parameters
    ----------
    hours : tuple of float
        Ends of all levels but the last, in GPU-hours.
    site : Site
        Its unit of time and its GPUs.

    Attributes
    ----------
    ends : list of float
        The same in GPUs times units of time.
    """

    def __init__(self, hours: tuple[float, ...], site: Site) -> None:
        self.ends = [end * 3600.0 / site.unit_seconds for end in hours]
        self.gpus = Gpus(site)

    def service(self, job: PolicyJob, workers: int, view: View) -> float:
        """What `job` has had so far."""
        return view.attained(job) * self.gpus.of(job, workers)

    def level(self, service: float) -> int:
        """The level of a job with so much service; one that has reached an end is beyond it."""
        return bisect_right(self.ends, service * (1 + TOLERANCE))

    def since_end(self, job: PolicyJob, workers: int, view: View) -> float:
        """For how long `job`, which runs and is beyond the first level, has been in its level."""
        service = self.service(job, workers, view)
        return (service - self.ends[self.level(service) - 1]) / self.gpus.of(job, workers)

    def next_end(self, running: Iterable[Workers], view: View) -> float | None:
        """When the first of the jobs that run reaches the end of its level; None if none will."""
        times = []
        for job, workers in running:
            service = self.service(job, workers, view)
            level = self.level(service)
            if level < len(self.ends):
                left = (self.ends[level] - service) / self.gpus.of(job, workers)
                times.append(view.now + left)
        return min(times, default=None)
