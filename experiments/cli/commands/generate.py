"""``oasis generate``: write an instance drawn from a preset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import oasis
from experiments.cli.console import note
from experiments.cli.files import is_stdout
from experiments.cli.options import Flags, Output, naming_flags
from experiments.cli.results import write_instance
from experiments.evaluation.options import GenerateOptions, options_of


def command(
    *, output: Output, options: Annotated[dict[str, Any], Flags(options_of(GenerateOptions))]
) -> None:
    """Write a random instance with the settings of the paper's section V.

    Example: oasis generate --preset testbed --seed 7 -o testbed.json
    """
    with naming_flags(options_of(GenerateOptions)):
        instance = oasis.generate(**options)
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
