"""The controllers of JobSets and of TrainJobs beside a control plane, built from their modules.

Their custom resources, roles and webhooks are read from Go's module cache at run time, so that what
runs and what is declared are of one version. Only the addresses are ours: JobSet's webhooks are
called on 127.0.0.1 and show the control plane's certificate.
"""

from __future__ import annotations

import base64
import shutil
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import yaml

from tests.kubernetes.controlplane.access import apply, binding, define
from tests.kubernetes.controlplane.build import JOBSET, TRAINER
from tests.kubernetes.controlplane.gobuild import ensure, module_directory
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import answers, free_ports

_CONFIGURATION = Path(__file__).with_name("jobset.yaml")


def start_owners(plane: ControlPlane) -> None:
    """Start both controllers, which end with `plane`; builds them if need be."""
    port, *probes = (f"127.0.0.1:{port}" for port in free_ports(3))
    components = module_directory(JOBSET, "sigs.k8s.io/jobset") / "config/components"
    manifests = module_directory(TRAINER, "github.com/kubeflow/trainer/v2") / "manifests/base"
    for crds in (components / "crd/bases", manifests / "crds"):
        texts = [path.read_text() for path in crds.glob("*_*.yaml")]
        define(plane.client, [yaml.safe_load(text) for text in texts])
    home, files = plane.directory / "jobset", plane.components.certificates
    home.mkdir()
    shutil.copy(files.serving, home / "tls.crt")
    shutil.copy(files.serving_key, home / "tls.key")
    config, text = home / "config.yaml", _CONFIGURATION.read_text()
    given = {"PROBE": probes[0], "PORT": port.partition(":")[2], "HOME": str(home)}
    config.write_text(Template(text).substitute(given))
    _start(plane, "jobset", components, [str(ensure(JOBSET)), f"--config={config}"], probes[0])
    apply(plane.client, _webhooks(components, port, files.authority))
    _start(plane, "trainer", manifests, [str(ensure(TRAINER))], probes[1], probes[1])


def _start(
    plane: ControlPlane, name: str, manifests: Path, command: list[str], probe: str, *more: str
) -> None:
    """Start one of them with the rights of its own role alone."""
    role = yaml.safe_load((manifests / "rbac/role.yaml").read_text())
    role["metadata"]["name"] = name
    space = f"{name}-system"
    granted = binding(name, "ClusterRole", name, space)
    account = plane.service_account(name, space, [role, granted])
    command = [*command, f"--kubeconfig={account.kubeconfig()}", *more]
    plane.run(name, command, partial(answers, f"http://{probe}/readyz"))


def _webhooks(components: Path, at: str, authority: Path) -> list[dict[str, Any]]:
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
                "url": f"https://{at}{path}",
                "caBundle": base64.b64encode(authority.read_bytes()).decode(),
            }
            if webhook["rules"][0]["resources"] == ["pods"]:
                webhook["objectSelector"] = {"matchExpressions": [of_jobsets]}
    return found
