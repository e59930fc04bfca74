"""``oasis generate``: write an instance drawn from a preset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oasis
from experiments.cli.console import note
from experiments.cli.options import Output, is_stdout
from experiments.cli.results import write_instance
from oasis.workloads import PRESETS

_FROM_PRESET = "[default: the preset's]"


def command(
    output: Output,
    preset: Annotated[
        str, typer.Option(help=f"Settings to draw from: {', '.join(PRESETS)}.")
    ] = "calibrated",
    jobs: Annotated[int | None, typer.Option(help=f"Number of jobs I. {_FROM_PRESET}")] = None,
    worker_servers: Annotated[
        int | None, typer.Option(help=f"Machines for workers H. {_FROM_PRESET}")
    ] = None,
    ps_servers: Annotated[
        int | None, typer.Option(help=f"Machines for parameter servers K. {_FROM_PRESET}")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help=f"Slots T. {_FROM_PRESET}")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    arrivals: Annotated[
        str | None,
        typer.Option(help="uniform, poisson or google (shaped by --counts). [default: uniform]"),
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="CSV hour,job_submits that shapes the arrivals.")
    ] = None,
    slot_seconds: Annotated[
        float | None, typer.Option(help=f"Length of a slot. {_FROM_PRESET}")
    ] = None,
    machines: Annotated[
        str, typer.Option(help="gpu_workers, or as_printed: the paper's swapped machines.")
    ] = "gpu_workers",
    priority: Annotated[
        tuple[float, float], typer.Option(help="Range of gamma1, the jobs' values.")
    ] = (1.0, 100.0),
    mix: Annotated[
        tuple[float, float, float],
        typer.Option(help="Shares of time-insensitive, -sensitive and -critical jobs."),
    ] = (0.10, 0.55, 0.35),
) -> None:
    """Write a random instance with the settings of the paper's section V.

    Example: oasis generate --preset testbed --seed 7 -o testbed.json
    """
    instance = oasis.generate(
        preset,
        jobs=jobs,
        worker_servers=worker_servers,
        ps_servers=ps_servers,
        horizon=horizon,
        seed=seed,
        arrivals=arrivals,
        counts=counts,
        slot_seconds=slot_seconds,
        machines=machines,
        priority=priority,
        mix=mix,
    )
    write_instance(instance, output)
    note(describe(instance, output))


def describe(instance: oasis.Instance, path: Path) -> str:
    """One line about an instance that was written."""
    cluster = instance.cluster
    where = "standard output" if is_stdout(path) else path
    return (
        f"wrote {where}: {len(instance.jobs)} jobs, {len(cluster.worker_ids)} worker servers, "
        f"{len(cluster.ps_ids)} parameter-server hosts, {instance.horizon} slots "
        f"of {instance.slot_seconds:g} s"
    )
