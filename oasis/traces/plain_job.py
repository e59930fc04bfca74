"""The job of a plain trace, and the facts about formats."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from oasis.model.utility import Constant, Deadline, Sigmoid

FACTS: Mapping[str, Any] = tomllib.loads(  # what is known of traces before one is read
    files("oasis.traces").joinpath("formats.toml").read_text("utf-8")
)
COMPLETED, FAILED, KILLED, *UNENDED = FACTS["states"]  # how a job ended, or that it has not
STATES: Mapping[str, str] = {  # words of schedulers, in capitals -> one of these
    word: state for state, words in FACTS["states"].items() for word in words
}


def state_of(text: str) -> str:
    """Translate a scheduler's word for how a job ended; return an empty text if it is unknown."""
    return STATES.get(next(iter(text.upper().split(maxsplit=1)), ""), "")


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job of a plain trace, which records how many GPUs it held and for how long.

    Parameters
    ----------
    id, owner : str
        Its name; its user, or the virtual cluster or organisation where the trace names no user.
    submitted, duration : float
        When it was submitted, and for how long it runs once started, in seconds.
    gpus : int
        GPUs it holds all that time.
    started, ended : float or None
        When it really ran, on the clock of `submitted`. With a pause, it ended later than
        ``started + duration``.
    state : {"", "completed", "failed", "killed"}
        How it ended; ``killed``: by a user, a limit or the scheduler.
    utility : Sigmoid, Constant, Deadline or None
        By the seconds from its submission to its end.
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
