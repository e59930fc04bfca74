"""``oasis kubernetes install``: what a controller needs on a cluster, as YAML for kubectl."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes import cluster
from experiments.cli.commands.kubernetes.running import chosen_policy, policy_maker, run
from experiments.cli.usage import usage_error
from oasis.kubernetes.objects import manifests
from oasis.model.errors import located_at

# What a Deployment says itself, because its probes and its rights stand on it.
TAKEN = ("--system-namespace", "--controller-name", "--metrics-port", "--namespaced")


@cluster.spread
def install(
    *,
    of: cluster.ControllerOptions,
    image: Annotated[
        str, typer.Option(help="Container image of the controller.")
    ] = manifests.IMAGE,
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
        bool,
        typer.Option(
            "--own", help="Without what all controllers of a cluster share, such as the kinds."
        ),
    ] = False,
) -> None:
    """Print the kinds, the rights and the Deployment of a controller, as YAML for kubectl.

    The controller gets exactly these rights: it sees nodes, pods and jobs, makes, opens and
    deletes pods, makes Services, suspends and resumes Jobs, JobSets, TrainJobs and TFJobs, and
    writes the status of OasisJobs and CapacityWindows, events, its lease and its checkpoint.

    With --namespaced it has them in these namespaces alone, which must exist, and sees nodes,
    utility classes and capacity windows of the cluster.

    Example: oasis kubernetes install --argument=--horizon=90 | kubectl apply -f -
    """
    import yaml  # noqa: PLC0415 (needs an extra)

    if not re.fullmatch(r"\S+", image):
        raise oasis.InputError("--image", "expected a name without blanks", image)
    _check_arguments(arguments or [])
    within = cluster.namespaces_of(spaces)
    made = [] if own else manifests.shared()
    made += manifests.own(of.namespace, image, arguments or (), of.name, within, monitored)
    console.print_text(yaml.safe_dump_all(made, sort_keys=False, width=100).rstrip("\n"))


def _check_arguments(arguments: list[str]) -> None:
    """Refuse what `oasis kubernetes run` would refuse, except files, which its container has."""
    for argument in arguments:
        name = argument.partition("=")[0]
        if re.search(r"^--.*\s", name):
            raise oasis.InputError("--argument", "expected --name=value", argument)
        if name in TAKEN:
            raise oasis.InputError("--argument", f"expected none of {', '.join(TAKEN)}", argument)
    app = typer.Typer(add_completion=False)
    app.command()(run)
    with located_at(source="--argument"):
        try:
            given = get_command(app).make_context("oasis kubernetes run", list(arguments)).params
        except TyperException as error:
            raise usage_error(error, arguments) from None
        policy, options = given["policy"], given["assignments"]
        if given["bounds"] is None:
            policy_maker(policy, options, None, given["lookahead"], given["horizon"])
        else:
            chosen_policy(policy, options, has_bounds=True)
