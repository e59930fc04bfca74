"""A job of a trace that records GPUs and durations, nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job of a plain trace: how many GPUs it held and for how long, nothing else.

    Parameters
    ----------
    id : str
        Its name.
    submitted : float
        Time of submission, seconds.
    duration : float
        Seconds it runs once started.
    gpus : int
        GPUs it holds all that time.

    Examples
    --------
    >>> from oasis.traces.plain_job import PlainJob
    >>> job = PlainJob("a", submitted=0.0, duration=60.0, gpus=4)
    >>> job.gpus * job.duration  # GPU-seconds
    240.0
    """

    id: str
    submitted: float
    duration: float
    gpus: int
