"""``oasis learn``: what past days teach, for OASiS and recourse in days to come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oasis
from experiments.cli import console
from experiments.cli.files import is_stdout
from experiments.cli.options import Limits, Output
from experiments.cli.results import read_instance, write_document
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION


def command(
    *,
    files: Annotated[
        list[Path], typer.Argument(metavar="PAST.json...", help="Instances of past days.")
    ],
    output: Output,
    slots_per_day: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Slots after which prices repeat; each file begins a day. [default: the longest "
            "horizon]",
        ),
    ] = None,
    min_utility_fraction: Annotated[
        float,
        typer.Option(
            help="For U and L, a completion worth less than this fraction of the job's best counts "
            "as worthless.",
        ),
    ] = DEFAULT_MIN_UTILITY_FRACTION,
    limits: Limits,
) -> None:
    """Learn prices from past days: the dual values of their configuration LPs, by slot of the day.

    The file also holds U and L, estimated from the past jobs, and the jobs, from which futures are
    sampled. Limits are for each past day; its prices are less exact where a limit ends the LP. The
    gap is between the LP's bound and OASiS's schedules.

    Example: oasis learn monday.json tuesday.json -o prices.json
    """
    from offline import learn_prices  # noqa: PLC0415 (needs an extra)

    criteria = limits.given()
    if not 0 <= min_utility_fraction < 1:
        expected = f"expected 0 <= fraction < 1, got {min_utility_fraction:g}"
        raise oasis.InputError("--min-utility-fraction", expected)
    past = [read_instance(file) for file in files]
    try:
        learned = learn_prices(
            past,
            slots_per_day=slots_per_day,
            min_utility_fraction=min_utility_fraction,
            **criteria,
        )
    except oasis.InstanceError as error:
        for k, file in enumerate(files):
            # The error names a place in a list, which the user knows as a file.
            inner = error.field.removeprefix(f"past[{k}].")
            if inner != error.field:
                error.field, error.sources = inner, (str(file),)
        raise
    write_document(learned.to_dict(), output)
    jobs, slots = len(learned.jobs), learned.slots_per_day
    where_to = "standard output" if is_stdout(output) else output
    console.note(f"wrote {where_to}: prices of {slots} slots of the day from {jobs} jobs")
