"""``--verbose``: what the packages log of their work, on standard error."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from experiments.cli.console import note
from experiments.cli.files import guarded

LOGGERS = ("oasis", "offline", "baselines", "experiments")
Command = Callable[..., Any]


def with_verbose(command: Command) -> Command:
    """Decorate a command so that it has the flag ``--verbose``."""

    def wrapper(*, verbose: bool, **arguments: Any) -> Any:
        if not verbose:
            return command(**arguments)
        with logging_to_stderr():
            return command(**arguments)

    flag = inspect.Parameter(
        "verbose",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[
            bool,
            typer.Option(
                "--verbose",
                help="Log each step on standard error; show tracebacks of bugs and of errors in "
                "your own policy.",
            ),
        ],
    )
    signature = inspect.signature(command, eval_str=True)
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()
    ]
    wrapper.__signature__ = signature.replace(parameters=[*own, flag])  # type: ignore[attr-defined]
    wrapper.__doc__ = command.__doc__
    return wrapper


class CommandGroup(typer.Typer):
    """Commands that all have the flag ``--verbose``."""

    def command(  # type: ignore[override]
        self, name: str | None = None, **options: Any
    ) -> Callable[[Command], Command]:
        """Decorate a function: it becomes the command `name`."""
        add = super().command(name, **options)

        def decorate(command: Command) -> Command:
            add(with_verbose(guarded(command)))
            return command

        return decorate


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
