"""The API server's own 429: priority and fairness that leaves an account one request at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.kubernetes.controlplane.access import Account, apply
from tests.kubernetes.controlplane.plane import ControlPlane

_API = "flowcontrol.apiserver.k8s.io/v1"
_NAME = "oasis-starved"
_FIRST = 10  # before the API server's own schemas, which start at 500


@contextmanager
def throttled(plane: ControlPlane, account: Account) -> Iterator[None]:
    """Within the block, the API server rejects what `account` asks while another request of it is
    under way. It learns of the beginning and the end some tenths of a second later."""
    nothing = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    level = {"type": "Limited", "limited": {**nothing, "limitResponse": {"type": "Reject"}}}
    everything = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    rule = {
        "subjects": [{"kind": "User", "user": {"name": account.username}}],
        "resourceRules": [everything],
    }
    schema = {
        "priorityLevelConfiguration": {"name": _NAME},
        "matchingPrecedence": _FIRST,
        "rules": [rule],
    }
    kinds = {"PriorityLevelConfiguration": level, "FlowSchema": schema}
    apply(
        plane.client,
        [
            {"apiVersion": _API, "kind": kind, "metadata": {"name": _NAME}, "spec": spec}
            for kind, spec in kinds.items()
        ],
    )
    try:
        yield
    finally:
        for kind in reversed(kinds):
            plane.client.resources.get(api_version=_API, kind=kind).delete(name=_NAME)
