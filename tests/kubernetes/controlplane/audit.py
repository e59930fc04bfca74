"""The audit log of the API server: requests of the accounts of tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """One finished request, received `at` that time. `resource` carries the subresource
    ("pods/status"), and is empty for what is none; `allowed` is what RBAC said."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    uri: str
    at: float
    allowed: bool
    done: bool


def read_audit(log: Path, user: str, start: int = 0) -> list[Request]:
    """Requests of `user` in the order in which they ended, from byte `start` of the log on."""
    # Left out is the line that an API server was writing when it was killed: the last of the file,
    # or the one into which the next server's first line runs. Another broken line is a ValueError.
    if not log.exists():
        return []
    with log.open("rb") as lines:
        lines.seek(start)
        events = [event for line in lines if (event := _event(line))]
    return [_request(event) for event in events if event["user"]["username"] == user]


def verbs(requests: list[Request]) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of the requests that RBAC allowed: what the rights were used for."""
    return {
        (request.group, request.resource, request.verb)
        for request in requests
        if request.resource and request.allowed
    }


def granted(manifests: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of all rules in the Roles and ClusterRoles of `manifests`, to be
    compared with `verbs`. A wildcard is an error: it cannot be compared."""
    rights = {
        (group, resource, verb)
        for body in manifests
        if body["kind"] in {"Role", "ClusterRole"}
        for rule in body["rules"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }
    if wide := [right for right in rights if "*" in right]:
        raise ValueError(f"expected rights that are named, not {wide[0]}")
    return rights


def denied(requests: list[Request]) -> list[Request]:
    return [request for request in requests if not request.allowed]


def _event(line: bytes) -> dict | None:
    try:
        return json.loads(line)
    except ValueError:
        whole = line.rfind(b'{"kind":"Event"')  # the next server writes behind what was cut off
        if whole > 0:
            return json.loads(line[whole:])
        if not line.endswith(b"\n"):
            return None
        raise


def _request(event: dict) -> Request:
    target = event.get("objectRef", {})
    resource = target.get("resource", "")
    if resource and "subresource" in target:
        resource += "/" + target["subresource"]
    return Request(
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        uri=event["requestURI"],
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        allowed=event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow",
        done=event.get("responseStatus", {}).get("code", 0) < 300,
    )
