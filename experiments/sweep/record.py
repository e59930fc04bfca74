"""The result of one cell of a sweep, as it is kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DONE, FAILED = "done", "failed"


@dataclass(frozen=True, slots=True)
class Record:
    """The figures of a cell that was run, or the error that ended it.

    Parameters
    ----------
    status : {"done", "failed"}
        Whether there are figures.
    figures : mapping
        Flat plain data; measured times start with ``measured.``.
    error : str or None
        Why it failed, in one line.
    traceback : str or None
        Where it failed.
    """

    status: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    traceback: str | None = None
