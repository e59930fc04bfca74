"""``oasis kubernetes install``: what a controller needs on a cluster, as YAML for kubectl."""

from __future__ import annotations

import re
from typing import Annotated

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes import cluster
from oasis.kubernetes.objects import manifests

# What a Deployment says itself, because its probes and its rights stand on it.
TAKEN = ("--system-namespace", "--controller-name", "--metrics-port", "--namespaced")


def install(
    *,
    of: cluster.ControllerOptions,
    image: Annotated[
        str | None, "Container image of the controller, as `make image` pushes it."
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--argument",
            help="For `oasis kubernetes run`, such as --policy=fifo; repeatable.",
        ),
    ] = None,
    spaces: cluster.Namespaced = None,
    monitored: Annotated[
        bool,
        typer.Option(
            "--service-monitor", help="With a ServiceMonitor, which the Prometheus operator reads."
        ),
    ] = False,
    own: Annotated[
        bool, "Without what all controllers of a cluster share, such as the kinds."
    ] = False,
) -> None:
    """Print the kinds, the rights and the Deployment of a controller, as YAML for kubectl.

    The controller gets exactly these rights: it sees nodes, pods and jobs, makes, opens and
    deletes pods, makes Services, suspends and resumes Jobs, JobSets and TrainJobs, and
    writes the status of OasisJobs and CapacityWindows, events, its lease and its checkpoint.

    With --namespaced it has them in these namespaces alone, which must exist, and sees nodes,
    utility classes and capacity windows of the cluster.

    Example: oasis kubernetes install --image=oasis:1 | kubectl apply -f -
    """
    import yaml  # noqa: PLC0415 (needs an extra)

    if image is None:
        expected = "expected the controller's image, which `make image` builds: none is published"
        raise oasis.InputError("--image", expected)
    if not re.fullmatch(r"\S+", image):
        raise oasis.InputError("--image", "expected a name without blanks", image)
    for argument in arguments or ():
        if re.match(r"--\S+\s", argument):
            raise oasis.InputError("--argument", "expected --name=value", argument)
        if argument.partition("=")[0] in TAKEN:
            raise oasis.InputError("--argument", f"expected none of {', '.join(TAKEN)}", argument)
    within = cluster.namespaces_of(spaces)
    objects = [] if own else manifests.shared()
    objects += manifests.own(of.namespace, image, arguments or (), of.one, within, monitored)
    console.print_text(yaml.safe_dump_all(objects, sort_keys=False, width=100).rstrip("\n"))
