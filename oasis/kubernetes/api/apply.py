"""Installing: server-side apply of the objects that `oasis.kubernetes.objects.manifests` makes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import Objects, ResourceKind

_PREFIX = {"v1": "/api/v1"}
_CLUSTER_WIDE = ("CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterRoleBinding")
PATIENCE = 30.0


def kind_of(body: Mapping[str, Any]) -> ResourceKind:
    """The kind of an object that is installed."""
    version, kind = body["apiVersion"], body["kind"]
    prefix = _PREFIX.get(version, f"/apis/{version}")
    # All kinds that are installed have regular plurals, so no discovery request is needed.
    return ResourceKind(prefix, f"{kind.lower()}s", kind not in _CLUSTER_WIDE)


def apply_object(objects: Objects, body: Mapping[str, Any]) -> None:
    """Apply one object; a namespace that is only just being made is waited for."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            objects.apply(kind_of(body), body)
        except ApiError as error:
            # The namespace was applied just before; until it is served, its objects answer 404.
            if error.status != 404 or time.monotonic() > deadline or objects.is_dry:
                raise
            time.sleep(0.2)
        else:
            return
