"""From functions to commands: records become flags, files are checked, ``--verbose`` is added."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import is_dataclass
from typing import Annotated, Any

import typer

from experiments.cli.console import logging_to_stderr
from experiments.cli.files import mark_of, reserved
from experiments.cli.options import Flags, flag
from oasis.model.errors import OasisError

Command = Callable[..., Any]
VERBOSE = inspect.Parameter(
    "verbose",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        "Log each step on standard error; show tracebacks of bugs and of errors in your "
        "own policy.",
    ],
)


class CommandGroup(typer.Typer):
    """A typer group that turns functions into commands with `as_command`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(rich_markup_mode="markdown", add_completion=False, **options)

    def command(  # type: ignore[override]
        self, name: str | None = None, **options: Any
    ) -> Callable[[Command], Command]:
        """Return a decorator that adds a function as command `name` and returns it unchanged."""
        add = super().command(name, **options)

        def decorate(command: Command) -> Command:
            add(as_command(command))
            return command

        return decorate


def as_command(command: Command) -> Command:
    """Return `command` as typer needs it: flags for records, ``--verbose``, files checked."""
    parameters: dict[str, inspect.Parameter] = {}
    makers: dict[str, tuple[Command, list[str]]] = {}  # by parameter, from which flags
    for own in inspect.signature(command, eval_str=True).parameters.values():
        if (marked := mark_of(own, Flags)) is not None:
            flags = [marked.parameter(option) for option in marked.options.values()]
            makers[own.name] = marked.given, [each.name for each in flags]
        elif isinstance(kind := own.annotation, type) and is_dataclass(kind):
            flags = list(inspect.signature(kind, eval_str=True).parameters.values())
            makers[own.name] = kind, [each.name for each in flags]
        else:
            flags = [own]
        parameters |= {each.name: _option(each) for each in flags}

    # typer looks up the kind of a flag here by its name: no command has one called `arguments`.
    def wrapper(*, verbose: bool = False, **arguments: Any) -> Any:
        with logging_to_stderr() if verbose else nullcontext(), reserved(parameters, arguments):
            for name, (make, fields) in makers.items():
                arguments[name] = make(**{field: arguments.pop(field) for field in fields})
            try:
                return command(**arguments)
            except OSError as error:
                if error.filename is None:
                    raise
                # typer would take the broken pipe of a file for that of standard output
                raise OasisError(f"{error.filename}: {error.strerror}") from None

    # typer makes the flags of the signature that it finds here.
    wrapper.__signature__ = inspect.Signature([*parameters.values(), _option(VERBOSE)])  # type: ignore[attr-defined]
    wrapper.__doc__ = command.__doc__
    return wrapper


def _option(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return `parameter` keyword-only; a text in its annotation makes it an option, as its help."""
    annotation = parameter.annotation
    if (text := mark_of(parameter, str)) is not None:
        marks = annotation.__metadata__
        more: dict[str, Any] = {"case_sensitive": False}  # one of a few values is read in any case
        for table in (mark for mark in marks if isinstance(mark, dict)):
            more |= table
        short = ["-o"] if parameter.name == "output" else []
        names = [*short, more.pop("flag", flag(parameter.name))]  # no --no-name beside it
        others = [mark for mark in marks if not isinstance(mark, str | dict)]
        annotation = Annotated[
            (annotation.__origin__, typer.Option(*names, help=text, **more), *others)
        ]
    # Only among keywords may one without a default follow one with a default.
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
