"""Arguments and options that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.evaluation.limits import Duration, read_seconds, read_share
from oasis.model.choices import choice
from oasis.model.errors import OasisError
from oasis.model.files import check_writable, is_standard_output
from oasis.model.validation import LARGEST_SEED


def _limit(name: str, read: Callable[[str], float], metavar: str, text: str) -> Any:
    """The flag of a limit that `read` reads, `text` being its help."""

    def parse(given: str) -> float:
        try:
            return read(given)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return typer.Option(name, parser=parse, metavar=metavar, help=text)


def time_limit_option(default: str) -> Any:
    """The flag ``--time-limit``, which every command has in the same words."""
    return _limit(
        "--time-limit",
        read_seconds,
        "TIME",
        "Time for each offline solve: 60, 90s, 5m, 1h; inf: no limit. OASiS's run before it does "
        f"not count. [default: {default}]",
    )


def no_improvement_option() -> Any:
    """The flag ``--no-improvement``, which every command has in the same words."""
    return _limit(
        "--no-improvement",
        partial(read_seconds, what="an amount"),
        "TIME",
        "End a solve after this time (units of work with --work-limit) in which bound and "
        "schedules came closer by less than a thousandth. [default: inf]",
    )


def limits_of(
    time_limit: float | None,
    work_limit: float | None,
    gap: float | None = None,
    no_improvement: float | None = None,
) -> dict[str, Any]:
    """What ends an offline solve: one kind of limit at a time, and criteria beside it."""
    if work_limit is not None and isinstance(no_improvement, Duration):
        raise ValueError("--no-improvement: expected units of work with --work-limit, got a time")
    criteria = {"gap": gap, "no_improvement": no_improvement}
    given = {name: value for name, value in criteria.items() if value is not None}
    if work_limit is None:
        return {"time_limit": 60.0 if time_limit is None else time_limit, **given}
    if time_limit is not None:
        raise ValueError("--work-limit: expected no --time-limit beside it")
    return {"work_limit": work_limit, **given}


def known_method(name: str) -> str:
    """`name` if it is an offline method: said before the work, not after it."""
    from offline import METHODS  # noqa: PLC0415 (needs an extra)

    return known(name, METHODS, "--method")


def known(name: str, among: Iterable[str], option: str) -> str:
    """The entry of `among` that `name` stands for.

    Raises
    ------
    OasisError
        If it is none; the message begins with the flag, and suggests what may be meant.
    """
    entries = list(among)
    try:
        return choice(name, entries, " or ".join(entries) if len(entries) == 2 else "")
    except ValueError as error:
        raise OasisError(f"{option}: {error}") from None


def is_stdout(path: Path | None) -> bool:
    """Whether ``-o`` asks for standard output: by ``-``, or by naming the file that it is."""
    return path is not None and (str(path) == "-" or is_standard_output(path))


def output_file(path: Path | None) -> Path | None:
    """`path` if it can be written: said before the work, not after it."""
    if path is not None and not is_stdout(path):
        check_writable(path)
    return path


def not_stdout(path: Path | None) -> Path | None:
    """`path` if it is not standard output: for results of several files, or of binary ones."""
    if is_stdout(path):
        raise typer.BadParameter(
            f"expected a name for what is written, got standard output, {path}"
        )
    return path


def check_plot(path: Path | None) -> Path | None:
    """`path` if it can be drawn to: said before the work, not after it."""
    if path is not None:
        from experiments.plotting import check_picture  # noqa: PLC0415 (needs an extra)

        check_picture(path)
    return path


def check_style(name: str | None) -> str | None:
    """`name` if it is a style: said before the work, not after it."""
    if name is not None:
        from experiments.cli.flags import naming_flags  # noqa: PLC0415 (imports no extra itself)
        from experiments.plotting.style import read_style  # noqa: PLC0415 (needs an extra)

        with naming_flags(("style",)):
            read_style(name)
    return name


InstanceFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Instance file (JSON).", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
TimeLimit = Annotated[float | None, time_limit_option("60 seconds")]
WorkLimit = Annotated[
    float | None,
    _limit(
        "--work-limit",
        partial(read_seconds, what="units of work", is_time=False),
        "UNITS",
        "Units of work, about a second each, instead of seconds: the result then repeats on "
        "every machine. [default: a time limit]",
    ),
]
Gap = Annotated[
    float | None,
    _limit(
        "--gap",
        read_share,
        "SHARE",
        "End when bound and schedules are this close, as a share of the latter: 0.01 or 1%. inf "
        "stops immediately; the bound is then very weak. [default: 0, a proof]",
    ),
]
NoImprovement = Annotated[float | None, no_improvement_option()]
SolverSeed = Annotated[
    int,
    typer.Option(
        "--solver-seed", min=0, max=LARGEST_SEED, help="Seed of what the offline solve draws."
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="Offline. milp, benders: exact; both: the two at once. colgen: mostly an interval. "
        "bruteforce: exact, tiny instances, ignores limits. auto: milp if small, colgen if very "
        "large, else both or benders.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        callback=output_file,
        help="File to write; -: standard output.",
        show_default=False,
    ),
]
ResultFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        callback=output_file,
        help="Also write the JSON result to this file; -: print it instead, as --json does.",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--plot", callback=check_plot, help="Draw it to this file (.png, .svg or .pdf)."),
]
Style = Annotated[
    str | None,
    typer.Option(
        "--style",
        callback=check_style,
        metavar="STYLE",
        help="Style of the picture: a file that ends in .mplstyle, or a style that matplotlib has, "
        "such as grayscale.",
    ),
]
