"""The first moments of the command ``oasis``, in which numpy and the command line are loaded.

Nothing has been done by then, so Ctrl-C and SIGTERM end the process at once: in the middle of an
import, Python would print a traceback. In any other program, this module does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

NAME = "oasis"
DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


def is_command() -> bool:
    """Return whether this process is the command: the installed script or ``python -m oasis``."""
    script = sys.argv[0] if sys.argv else ""
    if script == "-m":  # while the package of the module is imported
        words = sys.orig_argv
        return any(words[k : k + 2] == ["-m", NAME] for k in range(1, len(words)))
    return os.path.basename(script).removesuffix(".exe") == NAME


def guard_command() -> None:
    """Let signals end the command with one line and exit code 130, until `work_begins`."""
    # One that the caller wants to be ignored, as ``nohup`` and job control do, stays ignored.
    for number, default in DEFAULTS.items() if is_command() else ():
        if signal.getsignal(number) is default:
            signal.signal(number, _quit)


def work_begins() -> None:
    """Undo `guard_command`: from now on Ctrl-C raises, so that results can be saved."""
    for number, default in DEFAULTS.items():
        if signal.getsignal(number) is _quit:
            signal.signal(number, default)


def _quit(_signal: int, _frame: FrameType | None) -> None:
    # Plain system calls: a signal may come in the middle of an import, where `print` and `sys.exit`
    # are not safe. 130 is 128 + SIGINT, as shells report it.
    os.write(2, b"oasis: interrupted\n")
    os._exit(130)
