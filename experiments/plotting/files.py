"""Where a picture goes: checked before the work, written whole, the same bytes every time."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from oasis.model.files import check_writable, write_bytes

# What a format would write about the moment and the program.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# Matplotlib names a clip path after the last digits of its place, which differ from run to run
# where a layout is solved for.
_CLIP_PATH = re.compile(r"(?<=[\"#])p[0-9a-f]{10}(?=[\")])")


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a picture can be written there.

    Raises
    ------
    ValueError
        If the suffix names no format.
    OSError
        If the file cannot be written, such as for want of its directory.
    """
    _suffix(path)
    check_writable(path)
    return Path(path)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write `figure` in the format that the suffix names; the file appears whole or not at all.

    The same figure gives the same bytes: no dates, and identifiers that do not change.

    Raises
    ------
    ValueError
        If the suffix names no format.

    Examples
    --------
    >>> import tempfile
    >>> from experiments.plotting.canvas import new_figure
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(new_figure(2.0, 2.0), f"{directory}/empty.svg")
    """
    suffix = _suffix(path)
    if suffix == ".svg":
        write_bytes(path, svg_text(figure).encode("utf-8"))
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=FORMATS[suffix])
    write_bytes(path, buffer.getvalue())


def svg_text(figure: Figure) -> str:
    """Draw `figure` as a document of SVG with letters as paths, the same text every time.

    Examples
    --------
    >>> from experiments.plotting.canvas import new_figure
    >>> svg_text(new_figure(2.0, 2.0)) == svg_text(new_figure(2.0, 2.0))
    True
    """
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "oasis", "svg.fonttype": "path", "svg.image_inline": True}):
        figure.savefig(buffer, format="svg", metadata=FORMATS[".svg"])
    names: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"clip{len(names) + 1}")

    return _CLIP_PATH.sub(number, buffer.getvalue().decode("utf-8"))


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{path}: expected a picture ending in {', '.join(FORMATS)}")
    return suffix
