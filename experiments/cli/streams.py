"""The standard streams: what they cannot encode is escaped. Imports no module that is slow."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.cli.exit_codes import ReaderGoneError
from oasis.version import __version__

STANDARD_OUTPUT = "standard output"
ESCAPED = "escaped"  # the name of what `_escape` does with what cannot be encoded


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Return the escaped form of what a stream cannot encode, and where to go on in the text."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].replace("\xa0", " ")
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(ESCAPED, _escape)


def open_streams() -> bool:
    """Let standard streams escape what they cannot encode; False if standard output is closed."""
    if sys.stderr is None:
        # Otherwise the next file that is opened would take its number, and get its messages.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)
    return sys.stdout is not None


def encodable(text: str) -> str:
    """Return `text` as standard output will show it, so that a table is laid out for that."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, ESCAPED).decode(encoding)


def print_version() -> None:
    """Print name and version of the package."""
    print(f"oasis-scheduler {__version__}")  # noqa: T201


@contextmanager
def naming_output(*, is_certain: bool = True) -> Iterator[None]:
    """Make errors of standard output name it; `is_certain`: nothing else is written inside."""
    try:
        yield
    except OSError as error:
        # Certain: nothing else is written inside. What the package writes to files has a name, so
        # a full disk without one is no file's.
        is_its_own = is_certain or error.errno == errno.ENOSPC or not _is_sound()
        if error.filename is not None or not is_its_own:
            raise
        # What is still in the buffer must not fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from None
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


def _is_sound() -> bool:
    """Return whether what was written to standard output has arrived: a second try fails again."""
    try:
        sys.stdout.write("")  # without a buffer, only this tries again
        sys.stdout.flush()
    except OSError:
        return False
    return True
