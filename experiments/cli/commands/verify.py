"""``oasis verify``: whether a result is what it says, on the instance that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oasis
from experiments.cli import console
from experiments.cli.options import AsJson, InstanceFile
from experiments.cli.results import read_document, read_instance
from experiments.evaluation.checking import check_document
from oasis.model.errors import located_at

Result = Annotated[
    Path,
    typer.Argument(metavar="RESULT", help="JSON document of a result."),
]


def command(file: InstanceFile, result: Result, as_json: AsJson = False) -> None:
    """Verify a result: its schedules against every constraint, its figures against its schedules.

    RESULT is what `oasis run`, `solve` or `ratio` wrote with -o. Or it is a JSON object that your
    own scheduler wrote: `{"schedules": [{"job_id": "j0", "workers": [[slot, server, count], ..],
    "ps": [..]}, ..]}`, with slots and servers counted from 0 in the order of FILE, and, if you
    wish, `total_utility`. If something is wrong, one line names constraint, job, slot and server,
    and the exit code is 2.

    Example: oasis verify instance.json result.json
    """
    instance = read_instance(file)
    data = read_document(result)
    with located_at(source=result):
        checked = check_document(instance, data)
    if as_json:
        document = {
            "verified": True,
            "result": checked.kind,
            "schedules": checked.schedules,
            **checked.totals,
            "version": oasis.__version__,
        }
        console.print_json(document)
        return
    facts = [("schedules", f"{checked.schedules}, every constraint (2)-(13) holds")]
    facts += [
        (name.replace("_", " "), f"{console.number(total)}, recomputed")
        for name, total in checked.totals.items()
    ]
    console.print_facts(f"{result}: verified", facts)
