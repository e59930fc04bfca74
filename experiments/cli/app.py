"""The ``oasis`` command: its subcommands, and what becomes of usage errors."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from experiments.cli.exit_codes import BAD_INPUT, INTERRUPTED
from experiments.cli.help import with_help
from experiments.cli.usage import usage_error
from experiments.cli.verbose import CommandGroup
from experiments.cli.version import print_version

COMMANDS = (  # in the order of the help; each is `command` of the module of its name
    *(
        "generate",
        "example",
        "describe",
        "run",
        "compare",
        "replay",
        "whatif",
        "solve",
        "ratio",
        "quote",
    ),
    *("verify", "plot", "report", "policies", "schema", "curve", "learn", "sweep", "figure"),
    "show-versions",
)
GROUPS = {"import": "import_trace", "library": "library", "kubernetes": "kubernetes"}  # its modules


def app_of(names: Iterable[str]) -> typer.Typer:
    """The command line with these subcommands alone; the modules of no others are loaded."""
    app = CommandGroup(
        name="oasis",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Schedule distributed training jobs online, and know how far from optimal it was.",
        epilog="Exit codes: 0 done; 1 a bug; 2 bad usage, bad input, or a file that cannot be "
        "written; 3 incomplete: a limit or Ctrl-C came first; 4 cells of a sweep or policies of "
        "whatif failed; 130 interrupted without a result.",
    )
    app.callback()(_options)
    for name in names:
        file = GROUPS.get(name, name).replace("-", "_")
        module = import_module(f"experiments.cli.commands.{file}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def whole_app() -> typer.Typer:
    """The command line with all of its subcommands."""
    return app_of((*COMMANDS, *GROUPS))


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


def app_for(words: list[str]) -> typer.Typer:
    """The command line with what these words need.

    Where the first is a subcommand, no other is loaded: all together take longer to load than most
    of them take to do their work.
    """
    is_known = words[:1] and (words[0] in COMMANDS or words[0] in GROUPS)
    return app_of(words[:1]) if is_known else whole_app()


def run_app(words: list[str], app: typer.Typer | None = None) -> int:
    """Run the command line; usage errors become `OasisError`, exits become their code."""
    app = app_for(words) if app is None else app
    try:
        command = with_help(get_command(app))
        # Not standalone, or typer would print its own errors and leave.
        code = command(words, prog_name="oasis", standalone_mode=False)
    except TyperException as error:
        message = error.format_message().strip()
        if message.startswith("Usage: "):  # called without a command: the message is the help
            typer.echo(message, err=True)
            return BAD_INPUT
        raise usage_error(error, words) from None
    if code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
