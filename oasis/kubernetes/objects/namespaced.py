"""Rights in some namespaces alone, for a controller that is not to see the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from oasis.kubernetes.names import CLASS_PLURAL, WINDOW_PLURAL

Object = dict[str, Any]

IN_NO_NAMESPACE = frozenset({"nodes", CLASS_PLURAL, WINDOW_PLURAL, f"{WINDOW_PLURAL}/status"})


def namespaced(installed: Iterable[Object], namespaces: Sequence[str]) -> list[Object]:
    """Return the manifests with the rights of the ClusterRole limited to the given namespaces.

    What is in no namespace, such as nodes, stays as it is. Roles for tenants, which have no
    binding here, stay, too.

    Examples
    --------
    >>> from oasis.kubernetes.objects.manifests import rights
    >>> made = namespaced(rights("oasis-system"), ["team-a"])
    >>> [(one["kind"], one["metadata"].get("namespace")) for one in made if "rules" in one]
    [('ClusterRole', None), ('Role', 'team-a'), ('Role', 'oasis-system')]
    """
    installed, found = list(installed), []
    bindings = (body for body in installed if body["kind"] == "ClusterRoleBinding")
    bound = {body["roleRef"]["name"]: body for body in bindings}
    for body in installed:
        if body["kind"] != "ClusterRole" or body["metadata"]["name"] not in bound:
            found.append(body)
            continue
        inside, outside = deepcopy(body), deepcopy(body)
        for part, is_in in ((inside, True), (outside, False)):
            part["rules"] = [
                rule
                for rule in body["rules"]
                if IN_NO_NAMESPACE.isdisjoint(rule["resources"]) is is_in
            ]
        found.append(outside)
        for namespace in namespaces:
            found += _in(namespace, inside, bound[body["metadata"]["name"]])
    return found


def _in(namespace: str, role: Object, binding: Object) -> list[Object]:
    """A Role of one namespace with the rules of a ClusterRole, bound to the same accounts."""
    reference = {**binding["roleRef"], "kind": "Role"}
    return [
        {**deepcopy(role), "kind": "Role", "metadata": _moved(role, namespace)},
        {
            **deepcopy(binding),
            "kind": "RoleBinding",
            "metadata": _moved(binding, namespace),
            "roleRef": reference,
        },
    ]


def _moved(body: Object, namespace: str) -> Object:
    return {**body["metadata"], "namespace": namespace}
