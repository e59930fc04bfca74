"""JobSet's own controller beside a control plane: built from its module, with its own manifests.

Its custom resource, roles and webhooks are read from Go's module cache at run time, so that what
runs and what is declared are of one version. Only the addresses are ours: the webhooks are called
on 127.0.0.1 and show the control plane's certificate.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.controlplane.access import apply, define
from tests.kubernetes.controlplane.gobuild import GoProgram, ensure, module_directory
from tests.kubernetes.controlplane.guardian import Guardian
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import answers, free_ports, until

_MODULE = "sigs.k8s.io/jobset"
JOBSET = GoProgram("jobset", Path(__file__).resolve().parent / "controller", package=_MODULE)
_NAMESPACE = "jobset-system"
_ACCOUNT = "jobset-controller"
_GROUP = "rbac.authorization.k8s.io"


@contextmanager
def running_jobset(plane: ControlPlane) -> Iterator[None]:
    """JobSet's controller on `plane` until the end of the block; builds it if need be."""
    binary = ensure(JOBSET)
    components = module_directory(JOBSET, _MODULE) / "config" / "components"
    webhook_port, health_port = free_ports(2)
    crd = components / "crd" / "bases" / "jobset.x-k8s.io_jobsets.yaml"
    define(plane.client, yaml.safe_load_all(crd.read_text()))
    account = plane.service_account(_ACCOUNT, _NAMESPACE, _rights(components))
    home = plane.directory / "jobset"
    home.mkdir()
    with Guardian(home) as guardian:
        files = plane.components.certificates
        shutil.copy(files.serving, home / "tls.crt")
        shutil.copy(files.serving_key, home / "tls.key")
        config = home / "config.json"
        config.write_text(json.dumps(_configuration(home, webhook_port, health_port)))
        command = [str(binary), f"--config={config}", f"--kubeconfig={account.kubeconfig()}"]
        process = guardian.start(command, plane.directory / "jobset.log")
        ready = f"http://127.0.0.1:{health_port}/readyz"
        until(lambda: process.poll() is not None or answers(ready), "JobSet is ready", 120)
        if process.poll() is not None:
            raise RuntimeError((plane.directory / "jobset.log").read_text())
        webhooks = _webhooks(components, webhook_port, files.authority)
        apply(plane.client, webhooks)
        try:
            yield
        finally:
            for body in webhooks:
                kind = plane.client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
                kind.delete(name=body["metadata"]["name"])


def _rights(components: Path) -> list[dict[str, Any]]:
    role = yaml.safe_load((components / "rbac" / "role.yaml").read_text())
    role["metadata"]["name"] = _ACCOUNT
    binding = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _ACCOUNT},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": _ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": _NAMESPACE}],
    }
    return [role, binding]


def _configuration(home: Path, webhook_port: int, health_port: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(home)},
    }


def _webhooks(components: Path, port: int, authority: Path) -> list[dict[str, Any]]:
    """JobSet's webhook configurations, called on our port; those for pods, as its own patches
    say, only for the pods of JobSets."""
    text = (components / "webhook" / "manifests.yaml").read_text()
    of_jobsets = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
    found = list(yaml.safe_load_all(text))
    for body in found:
        body["metadata"]["name"] = f"jobset-{body['metadata']['name']}"
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {
                "url": f"https://127.0.0.1:{port}{path}",
                "caBundle": base64.b64encode(authority.read_bytes()).decode(),
            }
            if webhook["rules"][0]["resources"] == ["pods"]:
                webhook["objectSelector"] = {"matchExpressions": [of_jobsets]}
    return found
