"""``oasis import``: turn a real trace into an instance; every assumption is an option."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oasis
from experiments.cli.commands.generate import describe
from experiments.cli.console import note
from experiments.cli.flags import with_options
from experiments.cli.options import Output
from experiments.cli.reading import errors_name
from experiments.cli.results import write_instance
from oasis.traces import (
    OpenbOptions,
    PhillyOptions,
    malformed_lines,
    read_openb,
    read_philly,
)

app = typer.Typer(
    no_args_is_help=True,
    help="Turn a real trace into an instance; the assumptions made are recorded in it.",
)


@app.command("philly")
@with_options(PhillyOptions)
def philly(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="philly_sia.csv")],
    output: Output,
    options: PhillyOptions,
) -> None:
    """Turn the Microsoft Philly trace into an instance.

    Example: oasis import philly philly_sia.csv -o philly.json
    """
    with errors_name(file):
        instance = read_philly(file, options)
    _write(instance, output)


@app.command("openb")
@with_options(OpenbOptions)
def openb(
    *,
    pods: Annotated[Path, typer.Argument(metavar="PODS", help="openb_pod_list_default.csv")],
    nodes: Annotated[Path, typer.Argument(metavar="NODES", help="openb_node_list_gpu_node.csv")],
    output: Output,
    options: OpenbOptions,
) -> None:
    """Turn the Alibaba 2023 GPU cluster trace (openb) into an instance.

    Example: oasis import openb pods.csv nodes.csv -o openb.json
    """
    _write(read_openb(pods, nodes, options), output)


def _write(instance: oasis.Instance, output: Path) -> None:
    write_instance(instance, output)
    for line in malformed_lines(instance):
        note(f"left out: {line}")
    note(describe(instance, output))
