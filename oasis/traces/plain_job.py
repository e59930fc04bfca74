"""The job of a plain trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job of a plain trace, which records how many GPUs it held and for how long.

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
    owner : str
        The virtual cluster or the user that submitted it; empty if the trace does not say.

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
    owner: str = ""
