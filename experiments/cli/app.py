"""The ``oasis`` command: its subcommands in four groups, and what becomes of usage errors."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from experiments.cli.exit_codes import BAD_INPUT, INTERRUPTED, ReaderGoneError
from experiments.cli.streams import print_version
from oasis.model.errors import InputError

# By name: the group of the help, the module of `commands`, and the line of the help.
COMMANDS = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))

# What typer says of a value -> how the errors of the commands themselves say it.
EXPECTED = {
    "Input should be a valid integer.*": "expected an integer",
    "Input should be a valid number.*": "expected a number",
    "Input should be greater than or equal to": "expected at least",
    "Input should be less than or equal to": "expected at most",
}


class LazyGroup(TyperGroup):
    """A group that imports the module of a command only when the command is named, for speed."""

    def load(self, name: str) -> None:
        """Import the module of command `name` and replace its line of the help by the command."""
        from experiments.cli.command import CommandGroup  # noqa: PLC0415 (slow, not for the help)

        function = name.replace("-", "_")
        module = import_module(f"experiments.cli.commands.{COMMANDS[name]['file']}")
        group = getattr(module, "app", None)
        if group is None:
            group = CommandGroup()
            group.command(name)(getattr(module, "command", None) or getattr(module, function))
        self.commands[name] = get_command(group)
        self.commands[name].name = name

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that `args` names, then resolve it as typer does."""
        if type(self.commands.get(args[0])) is _Line:
            self.load(args[0])
        return super().resolve_command(ctx, args)


class _Line(TyperCommand):
    """A command that is not imported yet: only its name and its line of the help are known."""


def oasis_command(*names: str) -> LazyGroup:
    """Return the `oasis` command group; of its commands only those in `names` are imported."""
    app = typer.Typer(
        name="oasis",
        cls=LazyGroup,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        help="Schedule distributed training jobs online, and know how far from optimal it was.",
        epilog="Exit codes: 0 done; 1 a bug; 2 bad usage, bad input, or a file that cannot be "
        "written; 3 incomplete: a limit or Ctrl-C came first; 4 cells of a sweep or policies of "
        "whatif failed; 130 interrupted without a result.",
    )
    app.callback()(_options)
    app.command("help", rich_help_panel="Try")(_help)
    group = get_command(app)
    assert isinstance(group, LazyGroup)
    listed = {
        name: _Line(name, help=one["line"], rich_help_panel=one["panel"])
        for name, one in COMMANDS.items()
    }
    group.commands = {**listed, **group.commands}
    for name in names:
        if type(group.commands.get(name)) is _Line:
            group.load(name)
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def _next_words(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of commands that may follow the words typed so far, for completion."""
    words: list[str] = context.params.get("words") or []
    group: Any = oasis_command(*words[:1])
    for word in words:
        group = getattr(group, "commands", {}).get(word)
    return [name for name in getattr(group, "commands", ()) if name.startswith(incomplete)]


def _help(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND...]", autocompletion=_next_words, show_default=False),
    ] = None,
) -> None:
    """Show the help of a command.

    Example: `oasis help import plain`
    """
    run_app([*(words or ()), "--help"])


def run_app(words: list[str], app: LazyGroup | None = None) -> int:
    """Run `words` as a command line and return the exit code; a usage error is an `InputError`."""
    try:
        # Not standalone, or typer would print its own errors and leave.
        code = (app or oasis_command())(words, prog_name="oasis", standalone_mode=False)
    except SystemExit as error:  # what rich makes of it when the reader of the help has gone
        if isinstance(error.__context__, BrokenPipeError):
            raise ReaderGoneError from None
        raise
    except TyperException as error:
        if not (message := error.format_message().strip()):
            return BAD_INPUT  # called without a command: the help is printed already
        context = getattr(error, "ctx", None)
        see = f" (see '{context.command_path} --help')" if context else ""
        # A flag comes first, as in the errors of the commands themselves.
        message = re.sub(r"^Invalid value for '([\w-]+)': (Value error, )?", r"\1: ", message)
        for theirs, ours in EXPECTED.items():
            message = re.sub(theirs, ours, message)
        if context and re.fullmatch(r"No such command '.*'\.", message):
            message += f" Expected one of {', '.join(context.command.commands)}."
        raise InputError("", f"{message}{see}") from None
    if code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
