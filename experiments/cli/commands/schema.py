"""``oasis schema``: the JSON Schema of the files that the commands read."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli.console import note
from experiments.cli.options import ResultFile, among, known
from experiments.cli.results import deliver
from oasis.model.instance_file import instance_schema
from oasis.simulator.elastic import elastic_schema

SCHEMAS = {"instance": instance_schema, "workload": elastic_schema}


def command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            autocompletion=among(SCHEMAS),
            help=f"Kind of file: {' or '.join(SCHEMAS)}.",
        ),
    ] = "instance",
    output: ResultFile = None,
) -> None:
    """Print the JSON Schema of an instance file, or of a workload of elastic jobs.

    With the schema, an editor checks and completes such a file as you write it.

    Example: oasis schema workload -o workload.schema.json
    """
    kind = known(kind, SCHEMAS, "KIND")
    deliver(
        SCHEMAS[kind](),
        lambda: note(f"wrote {output}: the schema of files of kind {kind}"),
        as_json=output is None,
        output=output,
    )
