"""Exit codes of the commands."""

DONE = 0
BUG = 1  # anything but an `OasisError`, or a file that cannot be read or written
BAD_INPUT = 2
LIMIT = 3  # the result is printed, but a limit was hit before its proof
FAILED_CELLS = 4  # the result of a sweep is written, but some of its cells failed
INTERRUPTED = 130  # Ctrl-C, without a result


class ReaderGoneError(Exception):
    """The reader of standard output has closed it; no `OSError`, which typer would handle."""


class InterruptedWorkError(Exception):
    """Ctrl-C ended a command, as the message says; typer would swallow KeyboardInterrupt."""
