"""``oasis import``: turn a trace into an instance or a workload; every assumption is an option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli.command import CommandGroup
from experiments.cli.commands.replay import MACHINES, MACHINES_HELP, read_machines
from experiments.cli.console import note
from experiments.cli.options import Flags, Output, flag, naming_flags, trace_panel
from experiments.cli.results import write_document, write_instance
from experiments.options import options_of
from oasis.model.errors import InputError, located_at
from oasis.model.summary import how_many
from oasis.simulator import elastic_from_dict
from oasis.simulator.elastic import FORMAT, VERSION
from oasis.traces import OpenbOptions, malformed_sentences
from oasis.traces.job_table import LOOSE, MachineOptions, kept_line
from oasis.traces.plain import FORMATS
from oasis.traces.plain_instance import JobTrace
from oasis.traces.plain_job import FACTS
from oasis.traces.table import Frame, notes_of

CHOSEN = ("worker_servers", "gpus_per_server", "ps_servers", "max_node_gpus", "horizon")  # by --all
app = CommandGroup(
    no_args_is_help=True,
    help="Turn a trace into an instance, or into a workload of elastic jobs. The assumptions made "
    "are options, and are recorded in the instance. A file may be compressed (gzip, bzip2, xz, "
    "zstd); - is standard input. Standard error says which rule left out how many jobs; "
    "--all keeps all.",
)
Trace = Annotated[Path, typer.Argument(metavar="FILE", help="The trace; -: standard input.")]
AsWorkload = Annotated[
    bool,
    "Write a workload of elastic jobs, for oasis replay, not an instance.",
    {"flag": "--workload"},
]
All = Annotated[
    bool,
    "Keep every job with GPUs (--cpu-jobs: the others too): no rule of GPUs, duration, "
    "window, stride or max-jobs applies, unless it is given; machines and horizon are chosen "
    "so that all fit, and printed.",
    {"flag": "--all"},
]

Machines = Annotated[
    str | None,
    f"In place of --worker-servers and --gpus-per-server. {MACHINES_HELP.format('none')}",
    {"flag": "--machines", "metavar": MACHINES},
]


def _importer(trace: JobTrace, text: str) -> Callable[..., None]:
    """Return the command that imports `trace`, whose rows are jobs; `text` is its help."""

    def command(
        *,
        file: Trace,
        output: Output,
        workload: AsWorkload = False,
        all_jobs: All = False,
        machines: Machines = None,
        options: dict[str, Any],
    ) -> None:
        given = _with_machines(options, machines)
        _import(trace, file, output, given, workload=workload, all_jobs=all_jobs)

    command.__doc__ = text
    command.__annotations__["options"] = Annotated[
        Any, Flags(options_of(trace.options), trace_panel)
    ]
    return command


for _name, _facts in FACTS.items():  # traces whose rows are jobs
    if "help" in _facts:
        app.command(_name)(_importer(FORMATS[_name], _facts["help"]))


@app.command("openb")
def openb(
    *,
    pods: Annotated[Path, typer.Argument(metavar="PODS", help="openb_pod_list_default.csv")],
    nodes: Annotated[Path, typer.Argument(metavar="NODES", help="openb_node_list_gpu_node.csv")],
    output: Output,
    all_jobs: All = False,
    options: Annotated[dict[str, Any], Flags(options_of(OpenbOptions), trace_panel)],
) -> None:
    """Turn the Alibaba 2023 GPU cluster trace (openb) into an instance.

    Example: oasis import openb pods.csv nodes.csv -o openb.json
    """
    _import(FORMATS["openb"], pods, output, options, all_jobs=all_jobs, beside=nodes)


def _with_machines(arguments: dict[str, Any], machines: str | None) -> dict[str, Any]:
    """Return the options with the servers of ``--machines``; unchanged if `machines` is None."""
    if machines is None:
        return arguments
    for name in ("worker_servers", "gpus_per_server"):
        if name in arguments:
            raise InputError(flag(name), "expected no --machines beside it")
    sizes = read_machines(machines)
    if len(set(sizes)) > 1:
        raise InputError("--machines", "expected machines with equally many GPUs", machines)
    return arguments | {"worker_servers": len(sizes), "gpus_per_server": sizes[0]}


def _import(
    trace: JobTrace,
    file: Path,
    output: Path,
    arguments: dict[str, Any],
    *,
    workload: bool = False,
    all_jobs: bool = False,
    beside: Path | None = None,
) -> None:
    """Read a trace, and write it as an instance or as a workload of elastic jobs."""
    # What the user gave stays as it is also with --all: only the rest is chosen to fit.
    fixed = frozenset(arguments) if all_jobs else None
    with naming_flags(options_of(trace.options)):
        options = trace.options(**((LOOSE if all_jobs else {}) | arguments))
    with located_at(source=file), naming_flags(options_of(trace.options)):
        lacks = "worker_servers" in arguments  # jobs outside the trace hold some of the user's own
        instance, jobs, options = trace.imported(file, options, fixed, beside, lacks=lacks)
        elastic = elastic_from_window(jobs.frame, options, instance.cluster) if workload else None
        if elastic is not None:
            elastic_from_dict(elastic)  # what cannot be read again is not written
    _say_what_is_left_out(instance, fixed)
    if elastic is None:
        write_instance(instance, output)
        return
    what = how_many(len(elastic["jobs"]), "elastic job")
    where = how_many(len(instance.cluster.worker_ids), "machine")
    write_document(elastic, output, f"{what} on {where}")


def elastic_from_window(
    frame: Frame, options: MachineOptions, cluster: oasis.Cluster
) -> dict[str, Any]:
    """Return a document of elastic jobs: the work of each is its workers times its duration."""
    most, resources = options.elasticity, ("gpu", "cpu", "memory_gb")
    machines = [
        {
            "id": group.id.replace("w", "node"),
            "count": group.count,
            "capacity": {name: group.capacity[name] for name in resources},
        }
        for group in cluster.worker_servers
    ]
    jobs = [
        {
            "id": job["id"],
            "arrival": job["submitted"],
            "work": (n := job["workers"]) * job["duration"],
            "workers": {"min": 1, "initial": n, "max": max(n, round(most * n))},
            "worker": {name: job[name] for name in resources},
        }
        for job in frame.to_dict("records")
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "resources": list(resources),
        "machines": machines,
        "jobs": jobs,
    }


def _say_what_is_left_out(instance: oasis.Instance, fixed: frozenset[str] | None) -> None:
    for sentence in malformed_sentences(instance.metadata.get("malformed", {})):
        note(f"left out: {sentence}")
    for sentence in filter(None, (*notes_of(instance), kept_line(instance))):
        note(sentence)
    if fixed is not None:
        options = instance.metadata["options"]
        chosen = [
            f"{flag(name)} {options[name]}"
            for name in CHOSEN
            if name in options and name not in fixed
        ]
        note(f"chosen to fit: {' '.join(chosen) or 'nothing, all was given'}")
    late = instance.metadata["cannot_finish"]
    if late:
        note(f"{late} jobs cannot finish within the horizon, even alone")
