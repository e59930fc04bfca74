"""What is written to the API server to make the pods those of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasis.kubernetes.existing_kinds import ExistingKind
from oasis.kubernetes.names import NODE
from oasis.kubernetes.objects import job_id

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
class Suspend:
    """Let the controller of an object end all its pods.

    Parameters
    ----------
    job : str
        Uid of the object.
    found : mapping
        The object.
    kind : ExistingKind
        What it is.
    """

    job: str
    found: Mapping[str, Any]
    kind: ExistingKind


@dataclass(frozen=True, slots=True)
class Resume:
    """Let the controller of an object make its pods.

    Parameters
    ----------
    job : str
        Uid of the object.
    found : mapping
        The object.
    kind : ExistingKind
        What it is.
    workers : int or None
        So many; None: as many as it says.
    """

    job: str
    found: Mapping[str, Any]
    kind: ExistingKind
    workers: int | None


Action = Create | Open | Delete | Suspend | Resume


def described(action: Action) -> dict[str, Any]:
    """An action as plain data for people."""
    if isinstance(action, Suspend | Resume):
        meta, word = action.found["metadata"], type(action).__name__.lower()
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
