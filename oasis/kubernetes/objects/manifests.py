"""The manifests of an installation, which are YAML files of the Helm chart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oasis.kubernetes.names import FIELD_MANAGER
from oasis.kubernetes.objects.schema import read_yaml
from oasis.version import __version__

Object = dict[str, Any]

SYSTEM = "oasis-system"
POD_SECURITY = "pod-security.kubernetes.io/enforce"
IMAGE = f"{FIELD_MANAGER}:{__version__}"
COMMON = "app.kubernetes.io/name"  # label on every object, whatever the name of the controller
SHARED = ("oasisjob", "utilityclass", "capacitywindow", "policies", "roles")


def shared() -> list[Object]:
    """Return the kinds, admission policies and roles that all controllers of a cluster share."""
    return [body for name in SHARED for body in read_yaml(f"chart/shared/{name}.yaml")]


def own(
    namespace: str = SYSTEM,
    image: str = IMAGE,
    arguments: Sequence[str] = (),
    name: str = FIELD_MANAGER,
    spaces: Sequence[str] = (),
    monitored: bool = False,
) -> list[Object]:
    """Return the objects of one controller, in the order in which they can be made."""
    # It has rights in the namespaces `spaces` alone, if there are any; `monitored`: with a
    # ServiceMonitor, a kind of the Prometheus operator.
    objects = []
    names = {SYSTEM: namespace, FIELD_MANAGER: name}
    monitor = read_yaml("chart/monitor.yaml") if monitored else []
    for body in read_yaml("chart/controller.yaml") + monitor:
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


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return `value` with the keys of `names` replaced by their values in all its texts."""
    if isinstance(value, dict):
        return {k: v if k == COMMON else _renamed(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, str):
        # The API group, which is oasis-scheduler.io, has no controller's name in it.
        return re.sub(rf"({'|'.join(names)})(?!\.io)", lambda match: names[match[0]], value)
    return value
