"""What is installed: the resource, the rights and the controller, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oasis.kubernetes.names import CLASS_PLURAL, FIELD_MANAGER, GROUP, PLURAL
from oasis.kubernetes.objects.admission_policies import admission_policies
from oasis.kubernetes.objects.existing import EXISTING
from oasis.kubernetes.objects.schema import custom_resource
from oasis.kubernetes.objects.utility_class import class_resource

Object = dict[str, Any]

# (API group, resource, verbs): everywhere, and in the controller's own namespace
# Events and Services may be read because `Objects.create` looks for its object after a lost answer,
# and config maps patched because the parts of a checkpoint are applied.
CLUSTER_RIGHTS = (
    ("", "nodes", ("list", "watch")),
    ("", "pods", ("get", "list", "watch", "create", "patch", "delete")),
    ("", "persistentvolumeclaims", ("list", "watch")),
    ("", "persistentvolumes", ("list", "watch")),
    ("", "services", ("get", "list", "watch", "create")),
    ("networking.k8s.io", "networkpolicies", ("get", "list", "watch", "create")),
    ("", "events", ("create", "get")),
    (GROUP, PLURAL, ("list", "watch")),
    (GROUP, f"{PLURAL}/status", ("patch",)),
    (GROUP, CLASS_PLURAL, ("list", "watch")),
    *(
        (kind.api_version.partition("/")[0], kind.where.plural, ("list", "watch", "patch"))
        for kind in EXISTING
    ),
)
OWN_RIGHTS = (
    ("", "configmaps", ("get", "create", "update", "patch")),
    ("coordination.k8s.io", "leases", ("get", "create", "update")),
)
READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
# What the cluster's own roles `view`, `edit` and `admin` may do with our objects. Nobody but the
# controller may write a status, and nobody but administrators a UtilityClass.
TENANT_RIGHTS = {
    "view": (
        (GROUP, PLURAL, READ),
        (GROUP, f"{PLURAL}/status", ("get",)),
        (GROUP, CLASS_PLURAL, READ),
    ),
    "edit": ((GROUP, PLURAL, WRITE),),
    "admin": ((GROUP, PLURAL, WRITE),),
}
IMAGE = "oasis-scheduler:latest"


def rights(namespace: str) -> list[Object]:
    """The service account of the controller and its rights.

    What is in no namespace has that of the controller in its name: a second controller elsewhere
    has rights of its own beside those of the first.
    """
    meta = {"name": f"{namespace}:{FIELD_MANAGER}"}
    own = {"name": FIELD_MANAGER, "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": FIELD_MANAGER, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"

    def reference(kind: str, name: str) -> Object:
        return {"apiGroup": rbac, "kind": kind, "name": name}

    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own},
        _object(f"{rbac}/v1", "ClusterRole", meta, rules=_rules(CLUSTER_RIGHTS)),
        _object(
            f"{rbac}/v1",
            "ClusterRoleBinding",
            meta,
            roleRef=reference("ClusterRole", meta["name"]),
            subjects=[subject],
        ),
        _object(f"{rbac}/v1", "Role", own, rules=_rules(OWN_RIGHTS)),
        _object(
            f"{rbac}/v1",
            "RoleBinding",
            own,
            roleRef=reference("Role", FIELD_MANAGER),
            subjects=[subject],
        ),
    ]


def tenant_roles() -> list[Object]:
    """What is added to the cluster's own roles ``view``, ``edit`` and ``admin``.

    Examples
    --------
    >>> [made["metadata"]["name"] for made in tenant_roles()]
    ['oasis-scheduler-view', 'oasis-scheduler-edit', 'oasis-scheduler-admin']
    """
    rbac = "rbac.authorization.k8s.io"
    return [
        _object(
            f"{rbac}/v1",
            "ClusterRole",
            {
                "name": f"{FIELD_MANAGER}-{role}",
                "labels": {f"{rbac}/aggregate-to-{role}": "true"},
            },
            rules=_rules(entries),
        )
        for role, entries in TENANT_RIGHTS.items()
    ]


def deployment(namespace: str, image: str, arguments: Sequence[str]) -> Object:
    """Two controllers, of which one acts."""
    labels, metrics = {"app": FIELD_MANAGER}, ("--metrics-port", "9090")
    container = {
        "name": "controller",
        "image": image,
        "args": ["kubernetes", "run", "--system-namespace", namespace, *metrics, *arguments],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "metrics", "containerPort": 9090}],
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": FIELD_MANAGER,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    meta = {"name": FIELD_MANAGER, "namespace": namespace, "labels": labels}
    return _object("apps/v1", "Deployment", meta, spec=spec)


def everything(
    namespace: str = "oasis-system", image: str = IMAGE, arguments: Sequence[str] = ()
) -> list[Object]:
    """All objects in the order in which they can be made.

    Parameters
    ----------
    namespace : str
        Of the controller.
    image : str
        Of its container.
    arguments : sequence of str
        For ``oasis kubernetes run``.

    Examples
    --------
    >>> [made["metadata"]["name"] for made in everything()][:2]
    ['oasisjobs.oasis-scheduler.io', 'utilityclasses.oasis-scheduler.io']
    """
    return [
        custom_resource(),
        class_resource(),
        *admission_policies(),
        *tenant_roles(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *rights(namespace),
        deployment(namespace, image, arguments),
    ]


def _rules(entries: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[Object]:
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for group, resource, verbs in entries
    ]


def _object(version: str, kind: str, meta: Object, **rest: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": meta, **rest}
