"""Kubeconfigs, and service accounts that have exactly the rights of given manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.config import new_client_from_config_dict
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError

from oasis.kubernetes.api.connection import Connection
from tests.kubernetes.controlplane.waiting import until

_TOKEN_SECONDS = 24 * 3600
_MANAGER = "oasis-tests"


@dataclass(frozen=True)
class Account:
    """Someone who may talk to the API server: `username` is what the audit log calls them."""

    username: str
    token: str
    url: str
    authority: Path
    directory: Path

    def config(self) -> dict[str, Any]:
        """Kubeconfig as a dictionary."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }

    def kubeconfig(self) -> Path:
        """The same as a file in the control plane's directory."""
        path = self.directory / f"{self.username.replace(':', '.')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.config()))
        return path

    def client(self) -> DynamicClient:
        """The dynamic client. What it learns of the API's kinds is kept in our directory."""
        cache = self.directory / f"discovery-{self.username.replace(':', '.')}.json"
        api = new_client_from_config_dict(self.config())
        return DynamicClient(api, cache_file=str(cache))


def binding(
    account: str, kind: str, role: str, space: str, *, everywhere: bool = True
) -> dict[str, Any]:
    """What gives the rights of a role to an account, in all namespaces or in its own."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding" if everywhere else "RoleBinding",
        "metadata": {"name": f"{account}-{role}"} | ({} if everywhere else {"namespace": space}),
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": space}],
    }


def apply(client: DynamicClient, manifests: Iterable[dict[str, Any]]) -> None:
    """Server-side apply of `manifests`, in their order; what others own is taken over."""
    for body in manifests:
        kind = client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        client.server_side_apply(
            kind,
            body=body,
            name=body["metadata"]["name"],
            namespace=body["metadata"].get("namespace"),
            field_manager=_MANAGER,
            force_conflicts=True,
        )


def define(client: DynamicClient, crds: Iterable[dict[str, Any]]) -> None:
    """Apply CustomResourceDefinitions and wait until the API server serves what they define."""
    crds = list(crds)
    apply(client, crds)
    for body in crds:
        group, kind = body["spec"]["group"], body["spec"]["names"]["kind"]
        for version in body["spec"]["versions"]:
            served = f"{group}/{version['name']}"
            until(lambda api=served, kind=kind: _served(client, api, kind), f"{served} is served")


def _served(client: DynamicClient, api_version: str, kind: str) -> bool:
    try:
        client.resources.get(api_version=api_version, kind=kind).get(limit=1)
    except (ResourceNotFoundError, NotFoundError):
        client.resources.invalidate_cache()  # it remembers that there was none
        return False
    return True


def service_account(
    admin: Account,
    name: str,
    namespace: str,
    manifests: Iterable[dict[str, Any]] = (),
) -> Account:
    """Account of ServiceAccount `name`, made if it is not there, with the rights of `manifests`."""
    client = admin.client()
    for api_version, kind, metadata in (
        ("v1", "Namespace", {"name": namespace}),
        ("v1", "ServiceAccount", {"name": name, "namespace": namespace}),
    ):
        resource = client.resources.get(api_version=api_version, kind=kind)
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        try:
            resource.create(body=body, namespace=metadata.get("namespace"))
        except ConflictError:
            continue  # it is there already
    apply(client, manifests)
    accounts = client.resources.get(api_version="v1", kind="ServiceAccount")
    answer = accounts.token.create(body=_token_request(), name=name, namespace=namespace)
    username = f"system:serviceaccount:{namespace}:{name}"
    return Account(username, answer.status.token, admin.url, admin.authority, admin.directory)


def pod_token(connection: Connection, meta: Mapping[str, Any], account: str = "default") -> str:
    """The token that a kubelet puts into a pod: it is good as long as the pod is there."""
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
    found = connection.request("POST", path, body=_token_request(boundObjectRef=bound))
    return str(found["status"]["token"])


def _token_request(**spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    return {**head, "spec": {"expirationSeconds": _TOKEN_SECONDS, **spec}}
