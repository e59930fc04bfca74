"""The first moments of the command ``oasis``, in which numpy and the command line are loaded.

Nothing has been done by then, so Ctrl-C and SIGTERM end the process at once: in the middle of an
import, Python would print a traceback. In any other program, this module does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

NAME = "oasis"


def is_command() -> bool:
    """Return whether this process is the command: the installed script or ``python -m oasis``."""
    script = sys.argv[0] if sys.argv else ""
    if script == "-m":  # while the package of the module is imported
        words = sys.orig_argv
        return any(words[k : k + 2] == ["-m", NAME] for k in range(1, len(words)))
    return os.path.basename(script).removesuffix(".exe") == NAME


def guard_command() -> None:
    """Begin what `quit_at_once` does, if this process is the command."""
    if is_command():
        quit_at_once()


def quit_at_once() -> None:
    """From now on, and until `work_begins`, Ctrl-C and SIGTERM are one line and exit code 130.

    A signal that the caller wants to be ignored, as ``nohup`` and job control do, stays ignored.
    """
    # A handler that somebody else has set is left alone.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quit)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _quit)


def work_begins() -> None:
    """Undo `quit_at_once`: from now on, an interruption may have results to finish or to keep."""
    if signal.getsignal(signal.SIGINT) is _quit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _quit:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _quit(_signal: int, _frame: FrameType | None) -> None:
    # Plain system calls: a signal may come in the middle of an import, where `print` and `sys.exit`
    # are not safe. 130 is 128 + SIGINT, as shells report it.
    os.write(2, b"oasis: interrupted\n")
    os._exit(130)
