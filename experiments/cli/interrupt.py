"""Ctrl-C or SIGTERM: the first ends a solve with what it has proved, the second the program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from experiments.cli.exit_codes import INTERRUPTED
from oasis.model.files import remove_unfinished

STOPPING = b"oasis: stopping with what is known so far; Ctrl-C again quits at once\n"
ERASE_LINE = b"\r\x1b[2K"  # of a live display, which may stand there
SHOW_CURSOR = b"\x1b[?25h"  # a live display hides it


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CtrlC:
    """Handles Ctrl-C and SIGTERM; it raises KeyboardInterrupt only where `raising` allows it."""

    def __init__(self) -> None:
        self.heard = False  # whether there was one
        self._raises = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> CtrlC:
        # Python allows handlers in the main thread alone;
        # a command may also run in a test's thread.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let the first Ctrl-C inside raise KeyboardInterrupt."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C came where it could not raise."""
        if self.heard:
            raise KeyboardInterrupt

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        # no buffered output here: the signal may have come in the middle of some
        is_terminal = sys.stderr.isatty()
        if self.heard:
            if is_terminal:
                os.write(2, ERASE_LINE + SHOW_CURSOR)
            try:
                # The second Ctrl-C runs no `finally`, so temporary files are removed here.
                remove_unfinished()
            finally:
                os._exit(INTERRUPTED)
        self.heard = True
        os.write(2, ERASE_LINE + STOPPING if is_terminal else STOPPING)
        # Outside of `raising`, a result is being made of what is known: that is let finish.
        if self._raises:
            raise KeyboardInterrupt
