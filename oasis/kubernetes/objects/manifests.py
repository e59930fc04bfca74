"""The manifests of an installation: CRDs, rights and Deployment, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oasis.kubernetes.names import CLASS_PLURAL, FIELD_MANAGER, GROUP, PLURAL, WINDOW_PLURAL
from oasis.kubernetes.objects.admission_policies import admission_policies
from oasis.kubernetes.objects.capacity_window import window_resource
from oasis.kubernetes.objects.existing import EXISTING
from oasis.kubernetes.objects.schema import custom_resource
from oasis.kubernetes.objects.utility_class import class_resource
from oasis.version import __version__

Object = dict[str, Any]

# (API group, resource, verbs): everywhere, and in the controller's own namespace
# Events and Services may be read because `Objects.create` looks for its object after a lost answer,
# and config maps patched because the parts of a checkpoint are applied.
CLUSTER_RIGHTS = (
    ("", "nodes", ("list", "watch")),
    ("", "pods", ("get", "list", "watch", "create", "patch", "delete")),
    ("", "services", ("get", "list", "watch", "create")),
    ("networking.k8s.io", "networkpolicies", ("get", "list", "watch", "create")),
    ("", "events", ("create", "get")),
    (GROUP, PLURAL, ("list", "watch")),
    (GROUP, f"{PLURAL}/status", ("patch",)),
    (GROUP, CLASS_PLURAL, ("list", "watch")),
    (GROUP, WINDOW_PLURAL, ("list", "watch")),
    (GROUP, f"{WINDOW_PLURAL}/status", ("patch",)),
    *(
        (kind.api_version.partition("/")[0], kind.where.plural, ("list", "watch", "patch"))
        for kind in EXISTING
    ),
)
OWN_RIGHTS = (
    ("", "configmaps", ("get", "create", "update", "patch")),
    ("coordination.k8s.io", "leases", ("get", "create", "update")),
)
IMAGE = f"oasis-scheduler:{__version__}"
METRICS_PORT = 9090
MONITORING = "monitoring.coreos.com/v1"  # of the Prometheus operator
# On every object that is installed, whatever the name of the controller.
LABELS = {"app.kubernetes.io/name": FIELD_MANAGER}
READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
# What the cluster's own roles `view`, `edit` and `admin` may do with our objects. Nobody but the
# controller may write a status, and nobody but administrators a UtilityClass or CapacityWindow.
TENANT_RIGHTS = {
    "view": (
        (GROUP, PLURAL, READ),
        (GROUP, f"{PLURAL}/status", ("get",)),
        (GROUP, CLASS_PLURAL, READ),
        (GROUP, WINDOW_PLURAL, READ),
    ),
    "edit": ((GROUP, PLURAL, WRITE),),
    "admin": ((GROUP, PLURAL, WRITE),),
}


def rights(namespace: str, name: str = FIELD_MANAGER) -> list[Object]:
    """The service account of the controller and its rights.

    What is in no namespace has that of the controller in its name: a second controller elsewhere
    has rights of its own beside those of the first.
    """
    meta = {"name": f"{namespace}:{name}"}
    own = {"name": name, "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
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
            roleRef=reference("Role", name),
            subjects=[subject],
        ),
    ]


def tenant_roles() -> list[Object]:
    """Return the rights that are aggregated to the roles ``view``, ``edit`` and ``admin``.

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


def deployment(
    namespace: str, image: str, arguments: Sequence[str], name: str = FIELD_MANAGER
) -> Object:
    """Two controllers, of which one acts.

    A ConfigMap ``NAME-bounds``, where there is one, is mounted at ``/etc/oasis``.
    """
    own = ["--system-namespace=$(POD_NAMESPACE)", f"--controller-name={name}"]
    own.append(f"--metrics-port={METRICS_PORT}")
    container = {
        "name": "controller",
        "image": image,
        "args": ["kubernetes", "run", *own, *arguments],
        "env": [
            {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
            for variable, field in (("POD_NAME", "name"), ("POD_NAMESPACE", "namespace"))
        ],
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "livenessProbe": _probe("/healthz", 30),
        "readinessProbe": _probe("/readyz", 10),
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "bounds", "mountPath": "/etc/oasis", "readOnly": True},
        ],
    }
    pod = {
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "bounds", "configMap": {"name": f"{name}-bounds", "optional": True}},
        ],
    }
    spec = {
        "replicas": 2,
        # What a Deployment selects by can never change: an upgrade would be refused.
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name, **LABELS}}, "spec": pod},
    }
    meta = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return _object("apps/v1", "Deployment", meta, spec=spec)


def disruption_budget(namespace: str, name: str = FIELD_MANAGER) -> Object:
    """The PodDisruptionBudget: a drain of nodes evicts one controller at a time."""
    return _object(
        "policy/v1",
        "PodDisruptionBudget",
        {"name": name, "namespace": namespace},
        spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    )


def service_monitor(namespace: str, name: str = FIELD_MANAGER) -> list[Object]:
    """The Service of the metrics, and the ServiceMonitor from which Prometheus knows it."""
    meta = {"name": name, "namespace": namespace}
    return [
        _object(
            "v1",
            "Service",
            {**meta, "labels": {"app": name}},
            spec={
                "clusterIP": "None",
                "selector": {"app": name},
                "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
            },
        ),
        _object(
            MONITORING,
            "ServiceMonitor",
            meta,
            spec={
                "selector": {"matchLabels": {"app": name}},
                "endpoints": [{"port": "metrics", "interval": "30s"}],
            },
        ),
    ]


def everything(
    namespace: str = "oasis-system",
    image: str = IMAGE,
    arguments: Sequence[str] = (),
    name: str = FIELD_MANAGER,
    monitored: bool = False,
) -> list[Object]:
    """All objects in the order in which they can be made.

    Parameters
    ----------
    namespace : str
        Namespace of the controller.
    image : str
        Image of its container.
    arguments : sequence of str
        For ``oasis kubernetes run``.
    name : str
        Name of the controller, and of its objects.
    monitored : bool
        With a ServiceMonitor, a kind of the Prometheus operator.

    Examples
    --------
    >>> [made["metadata"]["name"] for made in everything()][:2]
    ['oasisjobs.oasis-scheduler.io', 'utilityclasses.oasis-scheduler.io']
    """
    made = [
        custom_resource(),
        class_resource(),
        window_resource(),
        *admission_policies(),
        *tenant_roles(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *rights(namespace, name),
        disruption_budget(namespace, name),
        *(service_monitor(namespace, name) if monitored else ()),
        deployment(namespace, image, arguments, name),
    ]
    for body in made:
        meta = body["metadata"]
        body["metadata"] = {**meta, "labels": {**meta.get("labels", {}), **LABELS}}
    return made


def _probe(path: str, period: int) -> Object:
    return {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": period}


def _rules(entries: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[Object]:
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for group, resource, verbs in entries
    ]


def _object(version: str, kind: str, meta: Object, **rest: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": meta, **rest}
