"""``oasis generate`` and ``describe``: an instance from a preset, and what one asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import oasis
from experiments.cli import console
from experiments.cli.options import Flags, InstanceFile, Output, naming_flags
from experiments.cli.results import Delivery, pages, read_instance, write_instance
from experiments.evaluation.description import Description, describe_instance, remarks
from experiments.evaluation.provenance import instance_reference
from experiments.options import GenerateOptions, options_of
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.summary import how_many
from oasis.traces.job_table import kept_line
from oasis.traces.table import notes_of

LOADS = console.headings("resource", "of", ">there is", ">wanted", ">most wanted", ">in slot")


def generate(
    *, output: Output, options: Annotated[dict[str, Any], Flags(options_of(GenerateOptions))]
) -> None:
    """Write a random instance with the settings of the paper's section V.

    Example: oasis generate --preset testbed --seed 7 -o testbed.json
    """
    with naming_flags(options_of(GenerateOptions)):
        instance = oasis.generate(**options)
    write_instance(instance, output)


def describe(*, file: InstanceFile, delivery: Delivery) -> None:
    """Describe an instance: its jobs, its servers, and how scarce each resource is.

    Wanted: demand / capacity, if every job started at its arrival with its maximum number of
    workers; over the whole horizon, and in the fullest slot. Above 1, some job has to wait. --plot
    draws it over time.

    Example: oasis describe instance.json --plot load.png
    """
    instance = read_instance(file)
    description = describe_instance(instance)
    document = {
        "instance": instance_reference(instance, str(file)),
        **description.to_dict(),
        "kept": kept_line(instance),
        "notes": notes_of(instance),
    }

    delivery(
        document,
        lambda: _show(description, file),
        lambda: pages().servers.plot_load(description).figure,
    )


def _show(description: Description, file: Path) -> None:
    data = description.to_dict()
    jobs, work = data["jobs"], data["work"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in data["utilities"].items())
    servers = [how_many(data["servers"][group], group.hosts.removesuffix("s")) for group in GROUPS]
    labels = data.get("labels", {})
    facts = [
        ("time", f"{how_many(data['horizon'], 'slot')} of {data['slot_seconds']:g} s"),
        ("servers", ", ".join(servers)),
        *(("labels", f"{name}: {_counted(values)}") for name, values in labels.items()),
        ("jobs", f"{jobs} ({kinds})" if jobs else "none"),
    ]
    if "forms" in data:
        several = ", ".join(f"{n} jobs of {count}" for count, n in data["forms"].items())
        facts.append(("forms", f"{several}; each is counted in the one that is best for it alone"))
    if "requiring" in data:
        facts.append(("requires", f"{data['requiring']} of {jobs} jobs ask for labels of servers"))
    if jobs:
        sizes = f"{work['least']} to {work['most']}, median {work['median']:g}"
        facts += [
            ("work", f"{work['total']} worker-slots; {sizes} a job"),
            ("can finish", f"{data['can_finish']} of {jobs}, each alone on the cluster"),
            ("utility", f"at most {console.number(data['most_utility'])}, if none had to wait"),
        ]
    selection = kept_line(description.instance)
    facts += [] if selection is None else [("trace", selection)]
    facts += [("", sentence) for sentence in notes_of(description.instance)]
    facts += [("note" if not k else "", remark) for k, remark in enumerate(remarks(description))]
    console.print_facts(str(file), facts)
    if description.loads:
        console.print_text("")
        console.print_rows(LOADS, [_row(load.to_dict()) for load in description.loads])


def _counted(values: dict[str, int]) -> str:
    return ", ".join(f"{count} {value}" for value, count in values.items())


def _row(load: dict[str, object]) -> tuple[str, ...]:
    mean, peak, capacity = load["mean"], load["peak"], load["capacity"]
    return (
        str(load["resource"]),
        TaskGroup(str(load["group"])).hosts,
        f"{capacity:g}",
        "-" if mean is None else f"{mean:.3g} x",
        "-" if peak is None else f"{peak:.3g} x",
        str(load["peak_slot"]),
    )
