"""/etc/hosts of a pod: itself, and what DNS would say of the pods of headless Services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """A pod that others may find: where it is, and whether it is ready."""

    pod: Object
    ip: str
    ready: bool

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """What the process in it takes for the name of its machine."""
        return str(self.pod["spec"].get("hostname") or self.pod["metadata"]["name"])


def hosts_file(own: Host, others: Iterable[Host], services: Iterable[Object]) -> str:
    """The file of the pod `own`: a kubelet writes the first two lines, DNS answers the rest.

    A pod has a name for others if its subdomain is a headless Service that selects it, and if it is
    ready, or its Service publishes those that are not.
    """
    there = {(s["metadata"]["namespace"], s["metadata"]["name"]): s["spec"] for s in services}
    lines = ["127.0.0.1 localhost", f"{own.ip} {' '.join(_names(own, own, there) or [own.name])}"]
    for other in others:
        names = _names(other, own, there)
        if other.ip != own.ip and names:
            lines.append(f"{other.ip} {' '.join(names)}")
    return "\n".join(lines) + "\n"


def _names(host: Host, seen_by: Host, services: Mapping[tuple[str, str], Object]) -> list[str]:
    spec, labels = host.pod["spec"], host.pod["metadata"].get("labels") or {}
    subdomain = spec.get("subdomain")
    service = services.get((host.namespace, subdomain)) if spec.get("hostname") else None
    found = [host.name] if host is seen_by else []
    if service is None or service.get("clusterIP") != "None":
        return found
    selector = service.get("selector")
    if not selector or not selector.items() <= labels.items():
        return found
    if not host.ready and not service.get("publishNotReadyAddresses") and host is not seen_by:
        return found
    short = f"{host.name}.{subdomain}"
    full = f"{short}.{host.namespace}"
    # resolv.conf of a pod has the domain of its own namespace first.
    near = [short] if host.namespace == seen_by.namespace else []
    return [*found, *near, full, f"{full}.svc", f"{full}.svc.cluster.local"]
