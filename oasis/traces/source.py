"""The lines of a trace: from a file, compressed or not, or from standard input."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from oasis.model.content import STANDARD_INPUT, read_content
from oasis.model.file_kinds import FileKind, kind_of


@dataclass(frozen=True, slots=True)
class Source:
    """A trace that has been read.

    Parameters
    ----------
    name : str
        Name of the file, without its directory; ``standard input`` for ``-``.
    lines : tuple of str
        Its lines without their ends; blank ones at its end are left out.
    path : str
        As the caller named it.
    """

    name: str
    lines: tuple[str, ...]
    path: str = field(default="FILE", compare=False, repr=False)

    @property
    def header(self) -> str:
        """The first line, empty if there is none."""
        return self.lines[0] if self.lines else ""

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def kind(self) -> FileKind | None:
        """What it looks like, as `oasis.model.file_kinds.kind_of` says."""
        return kind_of(self.text)


def read_source(path: str | os.PathLike[str]) -> Source:
    r"""Read a trace.

    Compressed with gzip, bzip2, xz or zstd or not, with Unix's or Windows's line ends, with or
    without a byte order mark. A byte that is not UTF-8 becomes ``\xNN``, so that names which differ
    still do; in a number it spoils its own row alone.

    Parameters
    ----------
    path : path
        The file; ``-`` stands for standard input.

    Raises
    ------
    InstanceError
        If a compressed file is damaged or incomplete, or the file is not text.
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
    return source_of(path, read_content(path))


def source_of(path: str | os.PathLike[str], content: bytes) -> Source:
    r"""The lines of `content`, which was read from `path`.

    Examples
    --------
    >>> source_of("jobs.csv", b"id,gpus\r\na,4\n")
    Source(name='jobs.csv', lines=('id,gpus', 'a,4'))
    """
    name = "standard input" if str(path) == STANDARD_INPUT else Path(path).name
    text = content.decode("utf-8-sig", errors="backslashreplace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return Source(name, tuple(lines), str(path))
