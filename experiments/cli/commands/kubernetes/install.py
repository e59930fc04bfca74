"""``oasis kubernetes install``: what has to be on the cluster."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    DRY,
    SYSTEM,
    Context,
    Kubeconfig,
    System,
    connect,
)
from experiments.cli.options import AsJson
from oasis.kubernetes.objects.manifests import IMAGE, everything


def command(
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply them to the cluster instead of printing them.")
    ] = False,
    namespace: System = SYSTEM,
    image: Annotated[str, typer.Option(help="Container image of the controller.")] = IMAGE,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--argument", help="For `oasis kubernetes run`, such as --policy=recourse; repeatable."
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY)] = False,
    as_json: AsJson = False,
) -> None:
    """Print the OasisJob resource, the rights and the Deployment, as YAML.

    The controller gets exactly these rights: it sees nodes, pods and jobs, makes, opens and
    deletes pods, suspends and resumes Jobs, JobSets and TrainJobs, and writes the status of
    OasisJobs, events, its lease and its checkpoint.

    Example: oasis kubernetes install --argument --policy=recourse | kubectl apply -f -
    """
    made = everything(namespace, image, arguments or ())
    if not (apply or dry_run):
        if as_json:
            console.print_json(made)
        else:
            console.print_text(yaml_text(made).rstrip("\n"))
        return
    from oasis.kubernetes.api.apply import apply_object  # noqa: PLC0415 (needs an extra)

    objects = connect(kubeconfig, context, dry_run=dry_run)
    done = []
    for body in made:
        apply_object(objects, body)
        done.append(f"{body['kind']} {body['metadata']['name']}")
        console.note(f"{'would apply' if dry_run else 'applied'} {done[-1]}")
    if as_json:
        console.print_json({"applied": [] if dry_run else done, "dry_run": dry_run})


def yaml_text(objects: list[dict[str, Any]]) -> str:
    """Objects as one YAML stream."""
    import yaml  # noqa: PLC0415 (needs an extra)

    text: str = yaml.safe_dump_all(objects, sort_keys=False, width=100)
    return text
