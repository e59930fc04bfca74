"""The environment of a container: fields of its pod, and references to variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)")
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class UnsupportedError(Exception):
    """A pod that asks for what a process node does not give."""


def environment(
    pod: Mapping[str, Any], ip: str, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables of the first container of `pod`, after those `given`: as its ``env`` says."""
    found = dict(given or {})
    container = pod["spec"]["containers"][0]
    if container.get("envFrom"):
        raise UnsupportedError("envFrom: expected variables in env")
    for entry in container.get("env") or ():
        source = entry.get("valueFrom")
        if not source:
            found[entry["name"]] = expanded(entry.get("value") or "", found)
        elif "fieldRef" in source:
            found[entry["name"]] = _field(pod, ip, source["fieldRef"]["fieldPath"])
        else:
            raise UnsupportedError(f"env {entry['name']}: expected a fieldRef, got {source}")
    return found


def expanded(text: str, known: Mapping[str, str]) -> str:
    """`text` with each ``$(NAME)`` that is known; ``$$`` is a dollar sign."""

    def put(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else known.get(name, match[0])

    return _REFERENCE.sub(put, text)


def _field(pod: Mapping[str, Any], ip: str, path: str) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    entry = _MAP_ENTRY.fullmatch(path)
    if entry:
        return str((meta.get(entry[1]) or {}).get(entry[2], ""))
    plain = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec["nodeName"],
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": "127.0.0.1",
        "status.podIP": ip,
    }
    if path not in plain:
        raise UnsupportedError(f"fieldRef: expected one of {', '.join(plain)}, got {path}")
    return str(plain[path])
