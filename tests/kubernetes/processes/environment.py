"""What a container finds: its variables, and in /etc/hosts what DNS says of headless Services."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class UnsupportedError(Exception):
    """A pod that asks for what a process node does not give."""


def environment(pod: Object, given: Mapping[str, str]) -> dict[str, str]:
    """Variables of the first container of `pod`, after those `given`: as its ``env`` says."""
    found, container = dict(given), pod["spec"]["containers"][0]
    if container.get("envFrom"):
        raise UnsupportedError("envFrom: expected variables in env")
    for entry in container.get("env") or ():
        source, value = entry.get("valueFrom") or {}, entry.get("value") or ""
        if "$(" in value or not source.keys() <= {"fieldRef"}:
            raise UnsupportedError(f"env {entry['name']}: expected a value or a fieldRef")
        path = source.get("fieldRef", {}).get("fieldPath")
        found[entry["name"]] = value if path is None else _field(pod["metadata"], path)
    return found


def _field(meta: Object, path: str) -> str:
    if (entry := _MAP_ENTRY.fullmatch(path)) is not None:
        return str((meta.get(entry[1]) or {}).get(entry[2], ""))
    if path != "metadata.name":
        raise UnsupportedError(f"fieldRef: expected a label, an annotation or the name, got {path}")
    return str(meta["name"])


@dataclass(frozen=True, slots=True)
class Host:
    """A pod that others may find: where it is, and whether it is ready."""

    pod: Object
    ip: str
    ready: bool

    @property
    def name(self) -> str:
        """The host name that the process in the pod sees."""
        return str(self.pod["spec"].get("hostname") or self.pod["metadata"]["name"])


def hosts_file(own: Host, others: Iterable[Host], services: Iterable[Object]) -> str:
    """The file of the pod `own`: a kubelet writes the first two lines, DNS answers the rest."""
    # A pod has a name in the headless Service that is its subdomain: one that is ready, or any if
    # the Service publishes those that are not.
    space = own.pod["metadata"]["namespace"]
    near = [each for each in services if each["metadata"]["namespace"] == space]
    lines = ["127.0.0.1 localhost", " ".join([own.ip, own.name, *_names(own, near, is_own=True)])]
    for other in others:
        names = _names(other, near, is_own=False)
        if other.ip != own.ip and other.pod["metadata"]["namespace"] == space and names:
            lines.append(" ".join([other.ip, *names]))
    return "\n".join(lines) + "\n"


def _names(host: Host, services: Iterable[Object], *, is_own: bool) -> list[str]:
    labels, within = host.pod["metadata"].get("labels") or {}, host.pod["spec"].get("subdomain")
    return [
        f"{host.name}.{within}"
        for service in services
        if service["metadata"]["name"] == within and service["spec"].get("clusterIP") == "None"
        if (service["spec"].get("selector") or {"": ""}).items() <= labels.items()
        if host.ready or is_own or service["spec"].get("publishNotReadyAddresses")
    ]
