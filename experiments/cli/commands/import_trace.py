"""``oasis import``: turn a trace into an instance or a workload; every assumption is an option."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oasis
from experiments.cli.commands.generate import describe
from experiments.cli.console import note
from experiments.cli.flags import naming_flags, with_options
from experiments.cli.options import Output, is_stdout
from experiments.cli.reading import errors_name
from experiments.cli.results import write_document, write_instance
from experiments.evaluation.options import options_of
from oasis.simulator.elastic_trace import elastic_from_window
from oasis.traces import (
    MachineOptions,
    OpenbOptions,
    PhillyOptions,
    PlainOptions,
    SlurmOptions,
    SwfOptions,
    malformed_lines,
    malformed_sentences,
    read_openb,
)
from oasis.traces.job_table import JobTrace
from oasis.traces.philly import PHILLY
from oasis.traces.plain_instance import PLAIN
from oasis.traces.slurm import SLURM
from oasis.traces.swf import SWF

app = typer.Typer(
    no_args_is_help=True,
    help="Turn a trace into an instance, or into a workload of elastic jobs. The assumptions made "
    "are options, and are recorded in the instance. A file may be packed with gzip; - is standard "
    "input.",
)
Trace = Annotated[Path, typer.Argument(metavar="FILE", help="The trace; -: standard input.")]
AsWorkload = Annotated[
    bool,
    typer.Option(
        "--workload", help="Write a workload of elastic jobs, for oasis replay, not an instance."
    ),
]


@app.command("plain")
@with_options(PlainOptions)
def plain(
    *, file: Trace, output: Output, workload: AsWorkload = False, options: PlainOptions
) -> None:
    """Turn a CSV of jobs, id,submitted,duration,gpus (times in seconds), into an instance.

    Example: oasis import plain jobs.csv --min-gpus 1 -o mine.json
    """
    _import(PLAIN, file, output, options, workload)


@app.command("slurm")
@with_options(SlurmOptions)
def slurm(
    *, file: Trace, output: Output, workload: AsWorkload = False, options: SlurmOptions
) -> None:
    """Turn what sacct --parsable2 prints into an instance.

    Needed are the columns JobID, Submit, ElapsedRaw (or Elapsed) and AllocTRES (or ReqTRES); State,
    User, Partition and QOS are used where they are there.

    Example: sacct -a -X -P -o JobID,User,Submit,ElapsedRaw,State,AllocTRES | oasis import slurm -
    -o mine.json
    """
    _import(SLURM, file, output, options, workload)


@app.command("swf")
@with_options(SwfOptions)
def swf(*, file: Trace, output: Output, workload: AsWorkload = False, options: SwfOptions) -> None:
    """Turn a log in the Standard Workload Format into an instance.

    Example: oasis import swf log.swf.gz --processors-per-gpu 16 -o mine.json
    """
    _import(SWF, file, output, options, workload)


@app.command("philly")
@with_options(PhillyOptions)
def philly(
    *, file: Trace, output: Output, workload: AsWorkload = False, options: PhillyOptions
) -> None:
    """Turn the Microsoft Philly trace, philly_sia.csv, into an instance.

    Example: oasis import philly philly_sia.csv -o philly.json
    """
    _import(PHILLY, file, output, options, workload)


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
    with naming_flags(options_of(OpenbOptions)):
        instance = read_openb(pods, nodes, options)
    _write(instance, output)


def _import(
    trace: JobTrace, file: Path, output: Path, options: MachineOptions, workload: bool
) -> None:
    with errors_name(file), naming_flags(options_of(type(options))):
        if not workload:
            instance = trace.instance(file, options)
        else:
            window, found = trace.window(file, options)
            made = elastic_from_window(window, options)
    if not workload:
        _write(instance, output)
        return
    write_document(dict(made.document), output)
    for line in malformed_sentences(found["malformed"]):
        note(f"left out: {line}")
    machines = len(made.workload.site.machines)
    where = "standard output" if is_stdout(output) else output
    note(f"wrote {where}: {len(made.workload.jobs)} elastic jobs on {machines} machines")


def _write(instance: oasis.Instance, output: Path) -> None:
    write_instance(instance, output)
    for line in malformed_lines(instance):
        note(f"left out: {line}")
    note(describe(instance, output))
