"""``oasis generate``: write an instance drawn from a preset."""

from __future__ import annotations

from typing import Annotated, Any

import oasis
from experiments.cli.options import Flags, Output, naming_flags
from experiments.cli.results import say_written, write_instance
from experiments.evaluation.options import GenerateOptions, options_of
from oasis.model.summary import how_many


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
    parts = {
        "job": len(instance.jobs),
        "worker server": len(cluster.worker_ids),
        "parameter-server host": len(cluster.ps_ids),
        "slot": instance.horizon,
    }
    counts = ", ".join(how_many(count, unit) for unit, count in parts.items())
    return f"{counts} of {instance.slot_seconds:g} s"
