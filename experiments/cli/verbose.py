"""``--verbose``: what the packages log of their work, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.cli.console import note

LOGGERS = ("oasis", "offline", "baselines", "experiments")


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Inside, everything that the packages log is a line on standard error.

    A line has the seconds since the program began, the module, and what it says. On a terminal, a
    live line or a progress bar stays below the last of them.
    """
    handler = _Notes()
    handler.setFormatter(_Elapsed())
    # The levels come back at the end: a test, or a notebook, may run several commands.
    former = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name, level in former.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)


class _Notes(logging.Handler):
    """Hands lines to the console that live lines and progress bars are on."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            note(self.format(record))
        except Exception:  # noqa: BLE001 (as every handler: what is logged never ends the work)
            self.handleError(record)


class _Elapsed(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.relativeCreated / 1000:7.1f} s  {record.name}: {record.getMessage()}"
