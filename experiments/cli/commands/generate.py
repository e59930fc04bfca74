"""``oasis generate``: write an instance drawn from a preset."""

from __future__ import annotations

from typing import Annotated, Any

import oasis
from experiments.cli.options import Flags, Output, naming_flags
from experiments.cli.results import say_written, write_instance
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
    say_written(output, describe(instance))


def describe(instance: oasis.Instance) -> str:
    """One line about an instance."""
    cluster = instance.cluster
    return (
        f"{len(instance.jobs)} jobs, {len(cluster.worker_ids)} worker servers, "
        f"{len(cluster.ps_ids)} parameter-server hosts, {instance.horizon} slots "
        f"of {instance.slot_seconds:g} s"
    )
