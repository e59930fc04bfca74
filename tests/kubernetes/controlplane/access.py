"""Kubeconfigs, and what gives rights to service accounts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Account:
    """Someone who may talk to the API server: `username` is what the audit log calls them."""

    username: str
    token: str
    url: str
    authority: Path
    directory: Path

    def kubeconfig(self) -> Path:
        """Their kubeconfig, in the control plane's directory."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path = self.directory / f"{self.username.replace(':', '.')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path


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
