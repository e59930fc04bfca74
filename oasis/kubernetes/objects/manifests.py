"""The manifests of an installation, which are YAML files of the Helm chart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from oasis.kubernetes.names import FIELD_MANAGER
from oasis.version import __version__

Object = dict[str, Any]

SYSTEM = "oasis-system"
POD_SECURITY = "pod-security.kubernetes.io/enforce"
IMAGE = f"{FIELD_MANAGER}:{__version__}"
COMMON = "app.kubernetes.io/name"  # label on every object, whatever the name of the controller
SHARED = ("oasisjob", "utilityclass", "capacitywindow", "policies", "roles")


def shared() -> list[Object]:
    """The kinds, the admission policies and the roles, which all controllers of a cluster share."""
    return [body for name in SHARED for body in _read(f"shared/{name}.yaml")]


def own(
    namespace: str = SYSTEM,
    image: str = IMAGE,
    arguments: Sequence[str] = (),
    name: str = FIELD_MANAGER,
    spaces: Sequence[str] = (),
    monitored: bool = False,
) -> list[Object]:
    """The objects of one controller, in the order in which they can be made."""
    # It has rights in the namespaces `spaces` alone, if there are any; `monitored`: with a
    # ServiceMonitor, a kind of the Prometheus operator.
    objects = []
    names = {SYSTEM: namespace, FIELD_MANAGER: name}
    for body in [*_read("controller.yaml"), *(_read("monitor.yaml") if monitored else ())]:
        renamed = _renamed(body, names)
        if renamed["kind"] == "Deployment":
            (container,) = renamed["spec"]["template"]["spec"]["containers"]
            container["image"] = image
            container["args"] += arguments
            container["args"] += [f"--namespaced={','.join(spaces)}"] if spaces else []
        meta = renamed["metadata"]
        if renamed["kind"] == "Namespace" and namespace != SYSTEM:
            # It may be there, with pods of others that are not so restricted.
            meta["labels"] = {k: v for k, v in meta["labels"].items() if k != POD_SECURITY}
        if spaces and renamed["kind"] == "ClusterRoleBinding" and meta["name"].endswith(":jobs"):
            objects += [
                renamed | {"kind": "RoleBinding", "metadata": {**meta, "namespace": space}}
                for space in spaces
            ]
        else:
            objects.append(renamed)
    return objects


@cache
def schema_of(kind: str) -> Mapping[str, Any]:
    """The schemas of the fields of one of our kinds: ``spec`` and perhaps ``status``."""
    (definition,) = _read(f"shared/{kind.lower()}.yaml")
    (version,) = definition["spec"]["versions"]
    fields: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return fields


def _read(name: str) -> list[Object]:
    """The objects of one file."""
    import yaml  # noqa: PLC0415 (needs an extra)

    file = resources.files("oasis.kubernetes") / "chart" / name
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """An object with the names of a controller in place of those in the files."""
    if isinstance(value, dict):
        return {k: v if k == COMMON else _renamed(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, str):
        # The API group, which is oasis-scheduler.io, has no controller's name in it.
        return re.sub(rf"({'|'.join(names)})(?!\.io)", lambda match: names[match[0]], value)
    return value
