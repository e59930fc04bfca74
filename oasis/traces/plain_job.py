"""The job of a plain trace, and what is known of formats."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from oasis.model.utility import Constant, Deadline, Sigmoid

FACTS: Mapping[str, Any] = tomllib.loads(  # what is known of traces before one is read
    files("oasis.traces").joinpath("formats.toml").read_text("utf-8")
)
COMPLETED, FAILED, KILLED = "completed", "failed", "killed"  # how a job ended
STATES: Mapping[str, str] = {  # words of schedulers, in capitals -> how a job ended
    word: ended for ended in (COMPLETED, FAILED, KILLED) for word in FACTS["states"][ended]
}
GO_ON: Sequence[str] = FACTS["states"]["goes_on"]  # words of jobs that have not ended


def ended_as(state: str) -> str:
    """Result of a job by the word of its scheduler; empty if the word is unknown."""
    return STATES.get(_word(state), "")


def goes_on(state: str) -> bool:
    """Return whether a job in this state has not ended."""
    return _word(state) in GO_ON


def _word(state: str) -> str:
    words = state.upper().split(maxsplit=1)
    return words[0] if words else ""


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
        The user that submitted it, or the virtual cluster or the organisation where the trace
        names no user; empty if it names none of them.
    started : float or None
        When it really began to run, on the clock of `submitted`; None if the trace does not say.
    ended : float or None
        When it really ended. With a pause in between, this is later than ``started + duration``.
    state : {"", "completed", "failed", "killed"}
        How it ended; ``killed`` if a user, a limit or the scheduler ended it, empty if the trace
        does not say.
    utility : Sigmoid, Constant, Deadline or None
        Utility by the seconds from its submission to its end; None if unknown.
    model : str
        The models of GPU that it may run on, with ``|`` between; empty: any.

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
    started: float | None = None
    ended: float | None = None
    state: str = ""
    utility: Sigmoid | Constant | Deadline | None = None
    model: str = ""
