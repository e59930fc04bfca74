"""The ``oasis`` command: its subcommands, and what becomes of usage errors."""

from __future__ import annotations

import typer
from typer.exceptions import TyperException

from experiments.cli.commands import (
    compare,
    describe,
    example,
    figure,
    generate,
    import_trace,
    kubernetes,
    learn,
    library,
    plot,
    policies,
    quote,
    ratio,
    replay,
    report,
    run,
    schema,
    solve,
    sweep,
    verify,
)
from experiments.cli.exit_codes import BAD_INPUT, INTERRUPTED
from experiments.cli.verbose import with_verbose
from experiments.cli.version import print_version
from oasis.model.errors import OasisError

app = typer.Typer(
    name="oasis",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Schedule distributed training jobs online, and know how far from optimal it was.",
    epilog="Exit codes: 0 done; 2 bad usage, bad input, or a file that cannot be written; 3 a "
    "limit was hit before a proof; 4 cells of a sweep failed; 130 interrupted.",
)
app.command("generate")(generate.command)
app.add_typer(import_trace.app, name="import")
app.command("example")(example.command)
app.command("describe")(describe.command)
app.command("run")(with_verbose(run.command))
app.command("compare")(with_verbose(compare.command))
app.command("replay")(with_verbose(replay.command))
app.command("solve")(with_verbose(solve.command))
app.command("ratio")(with_verbose(ratio.command))
app.command("quote")(quote.command)
app.command("verify")(verify.command)
app.command("plot")(plot.command)
app.command("report")(report.command)
app.command("policies")(policies.command)
app.command("schema")(schema.command)
app.command("learn")(learn.command)
app.command("sweep")(with_verbose(sweep.command))
app.command("figure")(figure.command)
app.add_typer(library.app, name="library")
app.add_typer(kubernetes.app, name="kubernetes")


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def run_app(arguments: list[str] | None) -> int:
    """Run the command line; usage errors become `OasisError`, exits become their code."""
    try:
        code = app(arguments, prog_name="oasis", standalone_mode=False)
    except TyperException as error:
        message = error.format_message().strip()
        if not message:  # called without a command: the help has been printed
            return BAD_INPUT
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context else ""
        raise OasisError(f"{message}{hint}") from None
    if code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
