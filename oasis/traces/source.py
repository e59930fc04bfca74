"""The lines of a trace: from a file, packed or not, or from standard input."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from oasis.model.errors import InstanceError

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """A trace that has been read.

    Parameters
    ----------
    name : str
        Name of the file, without its directory; ``standard input`` for ``-``.
    lines : tuple of str
        Its lines without their ends; blank ones at its end are left out.
    """

    name: str
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        """The first line, empty if there is none."""
        return self.lines[0] if self.lines else ""


def read_source(path: str | os.PathLike[str]) -> Source:
    r"""Read a trace.

    Packed with gzip or not, with Unix's or Windows's line ends, with or without a byte order mark;
    a byte that is no UTF-8 becomes a replacement character, and spoils only its own row.

    Parameters
    ----------
    path : path
        The file; ``-`` stands for standard input.

    Raises
    ------
    InstanceError
        If a packed file is damaged.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from oasis.traces.source import read_source
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv.gz")
    ...     _ = path.write_bytes(gzip.compress(b"id,gpus\r\na,4\r\n\r\n"))
    ...     read_source(path)
    Source(name='jobs.csv.gz', lines=('id,gpus', 'a,4'))
    """
    if str(path) == STANDARD_INPUT:
        name, content = "standard input", sys.stdin.buffer.read()
    else:
        name, content = Path(path).name, Path(path).read_bytes()
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InstanceError("", f"expected a whole gzip file: {error}") from None
    lines = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return Source(name, tuple(lines))
