"""The style of pictures, which users can change: a style of matplotlib by name, or a file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context, rc_params_from_file, style

SUFFIX = ".mplstyle"


def read_style(name: str | os.PathLike[str]) -> dict[str, Any]:
    """Settings of a style: one that matplotlib has, by its name, or a file of matplotlib settings.

    Parameters
    ----------
    name : str or path
        Such as ``grayscale``; or a file that ends in ``.mplstyle``.

    Returns
    -------
    dict
        Settings of matplotlib that the style changes.

    Raises
    ------
    ValueError
        If there is no such style, or matplotlib does not know what the file says.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> read_style("grayscale")["image.cmap"]
    'gray'
    """
    if Path(name).suffix == SUFFIX:
        return _read_file(Path(name))
    if str(name) not in style.library:
        known = f"a file that ends in {SUFFIX}, or one of {', '.join(style.available)}"
        raise ValueError(f"style: expected {known}, got {os.fspath(name)!r}")
    found: Any = style.library[str(name)]  # matplotlib types every key of its own
    return dict(found)


@contextmanager
def drawing_style(name: str | os.PathLike[str] | None) -> Iterator[None]:
    """Draw and save in a style inside; nothing changes for None, and nothing remains afterwards.

    The figures of this package take their fonts, line widths and colours from the style that is in
    force when they are drawn.

    Raises
    ------
    ValueError, OSError
        As `read_style`.

    Examples
    --------
    >>> import matplotlib
    >>> with drawing_style("grayscale"):
    ...     print(matplotlib.rcParams["image.cmap"])
    gray
    >>> matplotlib.rcParams["image.cmap"]
    'viridis'
    """
    settings: Any = {} if name is None else read_style(name)
    with rc_context(settings):
        yield


def _read_file(path: Path) -> dict[str, Any]:
    """Read a style file; what matplotlib would only warn of is an error."""
    path.open("rb").close()
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("matplotlib")
    was_propagating = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    found: Any = {}
    try:
        found = rc_params_from_file(path, fail_on_error=True, use_default_template=False)
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        said.append(str(error))
    finally:
        logger.removeHandler(handler)
        logger.propagate = was_propagating
    if said:
        raise ValueError(f"style: {path}: {' '.join(said[0].split())}")
    return dict(found)
