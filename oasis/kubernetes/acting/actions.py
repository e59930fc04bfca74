"""What is written to the API server to make the pods those of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasis.kubernetes.names import NODE
from oasis.kubernetes.objects.existing_kinds import ExistingKind
from oasis.kubernetes.objects.oasis_job import job_id

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Create:
    """Make a pod."""

    job: str
    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Open:
    """Open the gate of a pod."""

    job: str
    pod: Pod
    patch: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Delete:
    """End a pod.

    Parameters
    ----------
    job : str
        Uid of its job.
    pod : mapping
        The pod.
    why : str
        ``Shrunk``, ``Ended``, ``Withdrawn``, ``Failed`` or ``Lost``.
    """

    job: str
    pod: Pod
    why: str


@dataclass(frozen=True, slots=True)
class Switch:
    """Suspend an object, so that its controller ends all its pods, or resume it.

    Parameters
    ----------
    job : str
        Uid of the object.
    found : mapping
        The object.
    kind : ExistingKind
        What it is.
    suspend : bool
        Whether it is suspended; otherwise its controller makes its pods again.
    workers : int or None
        Number of workers to set when it is resumed; None leaves the number that it has.
    """

    job: str
    found: Mapping[str, Any]
    kind: ExistingKind
    suspend: bool
    workers: int | None = None


Action = Create | Open | Delete | Switch


def action_word(action: Action) -> str:
    """What an action is called in metrics and messages.

    Examples
    --------
    >>> from oasis.kubernetes.objects.existing_kinds import JOB
    >>> action_word(Switch("u", {}, JOB, suspend=True)), action_word(Delete("u", {}, "Ended"))
    ('suspend', 'delete')
    """
    if isinstance(action, Switch):
        return "suspend" if action.suspend else "resume"
    return type(action).__name__.lower()


def described(action: Action) -> dict[str, Any]:
    """An action as plain data for people."""
    if isinstance(action, Switch):
        meta, word = action.found["metadata"], action_word(action)
        job = job_id(action.kind.name, meta["namespace"], meta["name"])
        return {"action": word, "job": job, "pod": None, "node": None}
    if isinstance(action, Create):
        notes = action.body["metadata"]["annotations"]
        node, meta, word = notes[NODE], action.body["metadata"], "create"
    else:
        meta = action.pod["metadata"]
        node = (meta.get("annotations") or {}).get(NODE)
        word = "open" if isinstance(action, Open) else f"delete ({action.why})"
    owner = meta["ownerReferences"][0]["name"]
    job = f"{meta['namespace']}/{owner}"
    return {"action": word, "job": job, "pod": meta["name"], "node": node}
