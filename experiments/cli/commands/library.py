"""``oasis library``: instances with the best schedules and bounds that are known of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.command import CommandGroup
from experiments.cli.options import AsJson, Output
from experiments.cli.progress import counter
from experiments.cli.results import deliver, read_document, write_instance
from experiments.library import Library, LibraryEntry
from experiments.library.families import problem_named, problems_like
from experiments.library.store import SHIPPED
from oasis.model.errors import InputError, located_at
from oasis.model.summary import how_many
from oasis.version import __version__

if TYPE_CHECKING:
    from experiments.library.handed_in import HandedIn

app = CommandGroup(
    no_args_is_help=True,
    help="200 instances, each with its best known schedules and bound.",
)


Directory = Annotated[
    Path,
    "Directory of another table and its schedules. [default: the shipped one]",
    {"flag": "--library", "show_default": False},
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Instance.")]
Patterns = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", help="Instances or families, with * and ?. [default: all]"),
]
Result = Annotated[Path, typer.Argument(metavar="FILE", help="JSON document with schedules.")]
Instance = Annotated[
    str | None, "The instance. [default: the one that FILE says it is of]", {"flag": "--name"}
]
COLUMNS = console.headings("instance", ">value", ">bound", ">gap", "proof", "value by")


@app.command("list")
def list_all(
    patterns: Patterns = None, directory: Directory = SHIPPED, as_json: AsJson = False
) -> None:
    """List the instances: best known value, bound and gap, and who has found them.

    Example: `oasis library list testbed '*-t300-*'`
    """
    records = _like(patterns, Library(directory))
    proven = sum(record.proof == "optimal" for record in records)
    title = f"{how_many(len(records), 'instance')}, {proven} of them proven optimal"
    deliver(
        {"instances": [_plain(record) for record in records], "version": __version__},
        lambda: console.print_rows(COLUMNS, map(_row, records), title=title),
        as_json=as_json,
    )


@app.command("get")
def get(name: Name, output: Output = Path("-"), directory: Directory = SHIPPED) -> None:
    """Write an instance of the library, generated from its name, to a file.

    Its fingerprint is checked, so that the stored value and bound belong to it.

    Example: oasis library get testbed-t10-w7-p2-j12-mixed-s4 -o instance.json
    """
    library, problem = Library(directory), problem_named(name)
    record = library.find(name)
    instance = problem.instance() if record is None else library.instance(record)
    write_instance(instance, output)


@app.command("schedules")
def schedules(name: Name, directory: Directory = SHIPPED) -> None:
    """Print the best known schedules of an instance, as `oasis verify` reads them.

    Example: oasis library schedules testbed-t10-w7-p2-j12-mixed-s4 > best.json
    """
    library = Library(directory)
    if (record := library.find(problem_named(name).name)) is None:
        raise InputError("NAME", f"nothing is known of {name!r} yet")
    plain = [schedule.to_dict() for schedule in library.schedules(record).values()]
    console.print_json({"schedules": plain, "total_utility": library.verify(record)})


@app.command("check")
def check(
    file: Result, name: Instance = None, directory: Directory = SHIPPED, as_json: AsJson = False
) -> None:
    """Verify your own schedules of an instance, and compare them with the best known ones.

    FILE is what `oasis run`, `solve` or `ratio` wrote with -o for the instance, or an object
    `{"schedules": [..]}` as `oasis verify` reads it, with --name. If a constraint is broken or a
    figure is wrong, one line says which, and the exit code is 2.

    Example: oasis library check mine.json --name testbed-t10-w7-p2-j12-mixed-s4
    """
    from experiments.library.handed_in import handed_in  # noqa: PLC0415 (needs an extra)

    data = read_document(file)
    with located_at(source=file):
        result = handed_in(Library(directory), data, name)
    record = result.known
    document = {
        "name": result.problem.name,
        "verified": True,
        "value": result.value,
        "verdict": result.verdict,
        "bound": result.bound,
        "is_tighter": result.is_tighter,
        "refutes_bound": result.refutes,
        "best_known": None if record is None else _plain(record),
        "version": __version__,
    }
    deliver(document, lambda: _show(result), as_json=as_json)


@app.command("verify")
def verify(
    patterns: Patterns = None, directory: Directory = SHIPPED, as_json: AsJson = False
) -> None:
    """Generate instances again, and verify their stored schedules, values and bounds.

    Example: oasis library verify testbed
    """
    library = Library(directory)
    records = _like(patterns, library)
    with counter("verifying", len(records)) as advance:
        for record in records:
            library.verify(record)
            advance(record.name)
    said = f"{how_many(len(records), 'instance')}: every schedule is worth what the table says"
    document = {"verified": len(records), "version": __version__}
    deliver(document, lambda: console.print_text(said), as_json=as_json)


def _like(patterns: list[str] | None, library: Library) -> list[LibraryEntry]:
    table = library.records()
    return [table[one.name] for one in problems_like(patterns or ()) if one.name in table]


def _plain(record: LibraryEntry) -> dict[str, Any]:
    row = {**record.to_row(), "value": record.value, "bound": record.bound, "gap": record.gap}
    del row["gap_percent"], row["check"]
    return row


def _row(record: LibraryEntry) -> tuple[str, ...]:
    numbers = (f"{record.value:.3f}", f"{record.bound:.3f}", console.percent(record.gap))
    return (record.name, *numbers, record.proof, record.value_by)


def _show(result: HandedIn) -> None:
    record = result.known
    facts = [("your value", f"{console.number(result.value)}, verified: {result.verdict}")]
    if record is not None:
        by = f"{record.value_by}, {record.value_date}"
        facts.append(("best known", f"{console.number(record.value)} by {by}"))
        wrong = "; your schedules refute it" if result.refutes else ""
        facts.append(("bound", f"{console.number(record.bound)} by {record.bound_by}{wrong}"))
    if result.bound is not None:
        verdict = "tighter" if result.is_tighter else "not tighter"
        facts.append(("your bound", f"{console.number(result.bound)}: {verdict}"))
    console.print_facts(result.problem.name, facts)
