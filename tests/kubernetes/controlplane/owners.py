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

from tests.kubernetes.controlplane.access import binding
from tests.kubernetes.controlplane.build import JOBSET, TRAINER
from tests.kubernetes.controlplane.gobuild import GoProgram, ensure, module_directory
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import answers, free_ports

_OF_JOBSETS = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
_CONFIGURATION = Path(__file__).with_name("jobset.yaml")


def start_trainer(plane: ControlPlane) -> None:
    """Start the controller of TrainJobs, which ends with `plane`; builds it if need be."""
    manifests = define_train_jobs(plane, TRAINER)
    probe = f"127.0.0.1:{free_ports(1)[0]}"
    _start(plane, "trainer", manifests, [str(ensure(TRAINER))], probe, probe)


def define_train_jobs(plane: ControlPlane, program: GoProgram) -> Path:
    """Define TrainJobs as `program` knows them; return the directory of their manifests."""
    manifests = module_directory(program, "github.com/kubeflow/trainer/v2") / "manifests/base"
    plane.define(kinds_in(manifests / "crds"))
    return manifests


def start_jobset(plane: ControlPlane) -> None:
    """Start the controller of JobSets."""
    port, probe = (f"127.0.0.1:{port}" for port in free_ports(2))
    components = module_directory(JOBSET, "sigs.k8s.io/jobset") / "config/components"
    plane.define(kinds_in(components / "crd/bases"))
    home, files = plane.directory / "jobset", plane.certificates
    home.mkdir()
    shutil.copy(files.serving, home / "tls.crt")
    shutil.copy(files.serving_key, home / "tls.key")
    config, text = home / "config.yaml", _CONFIGURATION.read_text()
    given = {"PROBE": probe, "PORT": port.partition(":")[2], "HOME": str(home)}
    config.write_text(Template(text).substitute(given))
    _start(plane, "jobset", components, [str(ensure(JOBSET)), f"--config={config}"], probe)
    webhooks = webhooks_at("jobset", components, port, files.authority)
    for webhook in (each for body in webhooks for each in body["webhooks"]):
        if webhook["rules"][0]["resources"] == ["pods"]:  # those of JobSets alone
            webhook["objectSelector"] = {"matchExpressions": [_OF_JOBSETS]}
    plane.apply(webhooks)


def kinds_in(directory: Path) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions in a directory of a module."""
    texts = (path.read_text() for path in sorted(directory.glob("*_*.yaml")))
    return [yaml.load(text, yaml.CSafeLoader) for text in texts]


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


def webhooks_at(prefix: str, components: Path, at: str, authority: Path) -> list[dict[str, Any]]:
    """The webhook configurations of a module, called on this address."""
    found = list(yaml.safe_load_all((components / "webhook" / "manifests.yaml").read_text()))
    for body in found:
        body["metadata"]["name"] = f"{prefix}-{body['metadata']['name']}"
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = client_config(f"{at}{path}", authority)
    return found


def client_config(at: str, authority: Path) -> dict[str, str]:
    """How the API server calls a webhook."""
    return {
        "url": f"https://{at}",
        "caBundle": base64.b64encode(authority.read_bytes()).decode(),
    }
