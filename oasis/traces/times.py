"""Times as traces write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from oasis.traces.table import MalformedError

ELAPSED = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")  # Slurm's [days-]hours:mm:ss


def submission_time(text: str) -> float:
    """Seconds since the epoch of a time that names no time zone, such as 2017-10-09 07:00:00."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedError("bad timestamp") from None
    if time.tzinfo is not None:
        raise MalformedError("bad timestamp")  # the trace states none: local times of one place
    return time.replace(tzinfo=UTC).timestamp()


def elapsed_seconds(text: str) -> float:
    """Seconds of an elapsed time such as 02:30:00 or 1-00:00:00.

    Examples
    --------
    >>> elapsed_seconds("1-00:00:10")
    86410.0
    """
    found = ELAPSED.fullmatch(text)
    if found is None:
        raise MalformedError("bad Elapsed")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((24 * days + hours) * 60 + minutes) * 60 + seconds)


def window_start(text: str, read: Callable[[str], float], example: str) -> float | None:
    """Where the window of a trace begins, seconds; None for ``busiest`` and ``first``.

    Parameters
    ----------
    text : str
        The option ``start``.
    read : callable
        Reads a time of the trace; raises `MalformedError`.
    example : str
        Such a time, for the message.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if text in ("busiest", "first"):
        return None
    try:
        return read(text)
    except MalformedError:
        expected = f"expected busiest, first or {example}"
        raise ValueError(f"start: {expected}, got {text!r}") from None
