"""Where a picture goes: checked before the work, written whole, the same bytes every time."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from oasis.files import write_bytes

# What a format would write about the moment and the program.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_picture(path: str | os.PathLike[str]) -> Path:
    """`path`, if a picture can be written there.

    Raises
    ------
    ValueError
        If the suffix names no format.
    FileNotFoundError
        If the directory does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise ValueError(f"{target}: expected a picture ending in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(target.parent))
    return target


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write `figure` in the format that the suffix names; the file appears whole or not at all.

    The same figure gives the same bytes: no dates, and identifiers that do not change.

    Raises
    ------
    ValueError
        If the suffix names no format.
    """
    target = check_picture(path)
    suffix = target.suffix.lower()
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "oasis", "svg.fonttype": "path"}):
        figure.savefig(buffer, format=suffix[1:], metadata=FORMATS[suffix])
    write_bytes(target, buffer.getvalue())
