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
        """The host name that the process in the pod sees."""
        return str(self.pod["spec"].get("hostname") or self.pod["metadata"]["name"])


def hosts_file(own: Host, others: Iterable[Host], services: Iterable[Object]) -> str:
    """The file of the pod `own`: a kubelet writes the first two lines, DNS answers the rest."""
    # A headless Service has a name, that of its pods, and so has each of these whose subdomain it
    # is: those that are ready, or all of them if the Service publishes those that are not.
    there = {(s["metadata"]["namespace"], s["metadata"]["name"]): s["spec"] for s in services}
    lines = ["127.0.0.1 localhost", f"{own.ip} {' '.join(_names(own, own, there) or [own.name])}"]
    for other in others:
        names = _names(other, own, there)
        if other.ip != own.ip and names:
            lines.append(f"{other.ip} {' '.join(names)}")
    return "\n".join(lines) + "\n"


def _names(host: Host, seen_by: Host, services: Mapping[tuple[str, str], Object]) -> list[str]:
    spec = host.pod["spec"]
    found = [host.name] if host is seen_by else []
    for (namespace, name), service in services.items():
        if namespace == host.namespace and _leads_to(service, host, seen_by):
            named = spec.get("hostname") and spec.get("subdomain") == name
            for short in (*([f"{host.name}.{name}"] if named else ()), name):
                full = f"{short}.{namespace}"
                # resolv.conf of a pod has the domain of its own namespace first.
                near = [short] if namespace == seen_by.namespace else []
                found += [*near, full, f"{full}.svc", f"{full}.svc.cluster.local"]
    return found


def _leads_to(service: Object, host: Host, seen_by: Host) -> bool:
    """Return whether DNS answers with this pod for a headless Service."""
    selector = service.get("selector")
    labels = host.pod["metadata"].get("labels") or {}
    if service.get("clusterIP") != "None" or not selector or not selector.items() <= labels.items():
        return False
    return bool(host.ready or service.get("publishNotReadyAddresses") or host is seen_by)
