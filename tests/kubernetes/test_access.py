"""An account has the rights of its manifests alone, and the audit log tells what it used."""

from __future__ import annotations

import pytest
from kubernetes.dynamic.exceptions import ForbiddenError

from tests.kubernetes.cluster import pod
from tests.kubernetes.controlplane.access import binding
from tests.kubernetes.controlplane.audit import denied, granted, read_audit, verbs


def rights(namespace: str) -> list[dict]:
    """May list pods of `namespace`, and patch their status."""
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules}
    role["metadata"] = {"name": "reader", "namespace": namespace}
    return [role, binding("reader", "Role", "reader", namespace, everywhere=False)]


def test_account_may_do_what_its_manifests_say_and_the_audit_log_shows_it(cluster):
    plane, namespace = cluster.plane, cluster.namespace
    account = plane.service_account("reader", namespace, rights(namespace))
    cluster.create(pod("one", 1))
    start = plane.audit_position()
    client = account.client()
    pods = client.resources.get(api_version="v1", kind="Pod")
    assert [found.metadata.name for found in pods.get(namespace=namespace).items] == ["one"]
    pods.status.patch(
        body={"metadata": {"annotations": {}}, "status": {"message": "seen"}},
        name="one",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    with pytest.raises(ForbiddenError):
        pods.delete(name="one", namespace=namespace)
    with pytest.raises(ForbiddenError):
        pods.get(namespace="kube-system")
    seen = plane.requests(account, start)
    assert verbs(seen) == {("", "pods", "list"), ("", "pods/status", "patch")}
    assert verbs(seen) == granted(rights(namespace))
    refused = [(r.verb, r.resource, r.namespace, r.code) for r in denied(seen) if r.resource]
    assert refused == [("delete", "pods", namespace, 403), ("list", "pods", "kube-system", 403)]
    assert all(request.user == account.username for request in seen)


def test_line_that_a_killed_server_left_unfinished_is_left_out(tmp_path):
    whole = (
        '{"kind":"Event","user":{"username":"u"},"verb":"get","requestURI":"/api?x=1",'
        '"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}\n'
    )
    log = tmp_path / "audit.log"
    log.write_text(whole + whole[:30] + whole + whole[:50])
    assert [(r.path, r.code) for r in read_audit(log, "u")] == [("/api", 200)] * 2
    log.write_text("{broken\n")
    with pytest.raises(ValueError, match="Expecting"):
        read_audit(log, "u")
