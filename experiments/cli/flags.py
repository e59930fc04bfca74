"""From options to flags: a dataclass as options of a command, and errors in the user's words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, get_origin

import typer

from experiments.evaluation.options import Option, options_of
from oasis.model.errors import OasisError

Command = Callable[..., Any]


def with_options(
    source: type[Any],
    parameter: str = "options",
    *,
    only_given: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Command], Command]:
    """Decorate a command so that it has a flag for each option of a dataclass.

    Parameters
    ----------
    source : type
        Dataclass of options, as `options_of` reads it.
    parameter : str
        Parameter of the command that the flags replace. It gets an instance of `source`.
    only_given : bool
        Whether it gets a dictionary of the options that the user gave instead.
    defaults : mapping, optional
        Which options, with the defaults that they have in this command; all, with their own, if
        not given.
    """
    options = options_of(source)
    if defaults is not None:
        options = {
            name: replace(options[name], default=default) for name, default in defaults.items()
        }

    def decorate(command: Command) -> Command:
        def wrapper(**arguments: Any) -> Any:
            chosen = {name: arguments.pop(name) for name in options}
            for name, option in options.items():
                if option.denial and chosen[name] is not None:
                    chosen[name] = not chosen[name]
            if only_given:
                given: Any = {name: v for name, v in chosen.items() if v is not None}
            else:
                with naming_flags(options):
                    given = source(**chosen)
            return command(**arguments, **{parameter: given})

        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for own in signature.parameters.values():
            if own.name == parameter:
                parameters += [_flag_of(option, only_given) for option in options.values()]
            else:
                parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__doc__ = command.__doc__
        return wrapper

    return decorate


def _flag_of(option: Option, only_given: bool) -> inspect.Parameter:
    """The parameter from which typer makes the flag of an option."""
    kind = str if get_origin(option.kind) is Literal else option.kind
    name, text, default = flag(option.name), option.help, option.default
    if option.denial:
        name, _, text = option.denial.partition(": ")
        default = not default
    text = f"{text[:1].upper()}{text[1:]}{'' if text.endswith(']') else '.'}"
    reader: dict[str, Any] = {}
    if option.is_row:
        reader = {"parser": _row_parser(option), "metavar": "NUMBER,..."}
        kind = str
        default = ",".join(f"{part:g}" for part in option.default)
    if only_given:
        shown = "" if kind is bool or default in (None, "") else f" [default: {default}]"
        kind, text, default = kind | None, text + shown, None
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, typer.Option(name, help=text, **reader)],
    )


def _row_parser(option: Option) -> Callable[[str], Any]:
    """Read numbers with commas between, as the help of a flag shows them."""

    def parse(text: str) -> Any:
        try:
            return option.parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def flag(name: str) -> str:
    """Spelling of a Python name on the command line.

    Examples
    --------
    >>> flag("min_utility_fraction")
    '--min-utility-fraction'
    """
    return f"--{name.replace('_', '-')}"


@contextmanager
def naming_flags(names: Mapping[str, Any] | tuple[str, ...], **other: str) -> Iterator[None]:
    """Turn ``name: what is wrong`` into ``--name: what is wrong``.

    Functions for Python callers name their parameters, or an entry of one, ``name[1]``; whoever
    sits at the command line knows flags.

    Parameters
    ----------
    names : mapping or tuple of str
        Parameters whose flags have the same name.
    **other
        Flags by parameter where the names differ.

    Raises
    ------
    OasisError
        In place of an error whose message begins with such names.
    """
    flags = {name: flag(name) for name in names} | other
    try:
        yield
    except (OasisError, ValueError) as error:
        head, colon, rest = str(error).partition(": ")
        named = head.split(", ")
        bases = [name.partition("[")[0] for name in named]  # mix[1] is given by --mix
        if colon and all(base in flags for base in bases):
            raise OasisError(f"{', '.join(flags[base] for base in bases)}: {rest}") from None
        raise


def comma_list(text: str, name: str) -> list[str]:
    """Split a list with commas between; each entry comes once.

    Parameters
    ----------
    text : str
        What the user gave.
    name : str
        The flag, for messages.

    Raises
    ------
    OasisError
        For an empty entry or a repeated one.

    Examples
    --------
    >>> comma_list("oasis, fifo", "--policies")
    ['oasis', 'fifo']
    """
    entries = [entry.strip() for entry in text.split(",")]
    if "" in entries:
        raise OasisError(f"{name}: expected entries with commas between, got {text!r}")
    for k, entry in enumerate(entries):
        if entry in entries[:k]:
            raise OasisError(f"{name}: expected each entry once, got {entry} again")
    return entries


def comma_counts(text: str, name: str) -> tuple[int, ...]:
    """Split a list of whole numbers with commas between.

    Raises
    ------
    OasisError
        For what is no whole number, and for a repeated one.

    Examples
    --------
    >>> comma_counts("100,200", "--jobs")
    (100, 200)
    """
    try:
        return tuple(int(entry) for entry in comma_list(text, name))
    except ValueError:
        raise OasisError(f"{name}: expected counts with commas between, got {text!r}") from None
