"""``oasis kubernetes explain``: why a job is where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    Context,
    Kubeconfig,
    connect,
    jobs_of,
)
from experiments.cli.commands.kubernetes.status import summary
from experiments.cli.options import AsJson, known

if TYPE_CHECKING:
    from oasis.kubernetes.api.resources import Objects

# What a reason means, and what its owner can do about it.
ADVICE = {
    "PayoffNonPositive": "what it would displace is worth more: raise its utility above the "
    "stated one, ask for less, or submit it when the cluster is emptier",
    "DeadlineUnreachable": "it cannot be done in time even alone: allow more workers, a later "
    "target, or less work",
    "NoRoom": "there is not enough of the named resource before its completions become "
    "worthless: ask for less of it, or allow a later target",
    "Waiting": "its turn comes when what goes before it is done",
    "Starving": "it has waited longer than its policy allows: it goes before all others now",
    "Displaced": "others are worth more now: it goes on when there is room, and keeps its work",
    "Withdrawn": "something that is not planned here took its room: see `kubectl describe pod` "
    "of its pods; it is tried again in the next slot",
    "Refused": "the API server did not take a pod: quota or a webhook, as the message says",
    "PromiseBroken": "a lost node, slow pods or a fault cost more time than there was",
    "GivenUp": "it can earn nothing any more; submit it again with a later target",
    "Error": "a fault of the scheduler that this job causes: report it with the log of the "
    "controller; an edit of the job has it tried again",
    "PolicyError": "the policy fails, and every job keeps what it holds: see the log of the "
    "controller",
    "Invalid": "correct the named field; it is read again at once",
}


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of a job.")],
    *,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the jobs.")
    ] = "default",
    kind: Annotated[
        str, typer.Option(help="Its kind: oasisjob, job, jobset or trainjob.")
    ] = "oasisjob",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: AsJson = False,
) -> None:
    """Say why a job waits, runs, was rejected or displaced, and what would change that.

    Example: oasis kubernetes explain training -n research
    """
    found = _found(name, namespace, kind, connect(kubeconfig, context))
    said = explained(found)
    if as_json:
        console.print_json(summary(found) | {"explanation": said})
        return
    facts = [(entry["reason"], entry["message"]) for entry in said]
    facts += [("what to do", entry["advice"]) for entry in said if entry["advice"]]
    if not said:
        facts = [("nothing yet", "no controller has read it: is `oasis kubernetes run` at work?")]
    status = found.get("status") or {}
    console.print_facts(f"{namespace}/{name} is {status.get('phase', 'Pending')}", facts)


def _found(name: str, namespace: str, kind: str, objects: Objects) -> dict[str, Any]:
    """The job of that kind and name, as `jobs_of` gives it."""
    kinds = ("oasisjob", "job", "jobset", "trainjob")
    kind = known(kind, kinds, "--kind")
    wanted = name if kind == kinds[0] else f"{kind}/{name}"
    for item in jobs_of(objects, namespace):
        if item["metadata"]["name"] == wanted:
            return item
    expected = f"expected a job of kind {kind} in namespace {namespace}"
    raise oasis.InputError("NAME", expected, name)


def explained(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conditions of an object with advice; those that matter now come first."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    return [
        {
            "type": entry["type"],
            "reason": entry["reason"],
            "message": entry["message"],
            "since": entry["lastTransitionTime"],
            "advice": ADVICE.get(entry["reason"]),
        }
        for entry in sorted(conditions, key=lambda c: c["lastTransitionTime"], reverse=True)
    ]
