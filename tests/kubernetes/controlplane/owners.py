"""Kueue and the controllers of JobSets and of TrainJobs beside a control plane, built from their
modules.

Their custom resources, roles and webhooks are read from Go's module cache at run time, so that what
runs and what is declared are of one version. Only the addresses are ours: webhooks are called on
127.0.0.1. Those of JobSet show the control plane's certificate, and Kueue keeps one that is made
here; of its webhooks there are those for Workloads, queues, Jobs and JobSets alone.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.kubernetes.controlplane.build import (
    JOBSET,
    KUEUE,
    TRAINER,
    GoProgram,
    ensure,
    module_directory,
)
from tests.kubernetes.controlplane.certificates import self_signed, write_key
from tests.kubernetes.controlplane.plane import ControlPlane, binding
from tests.kubernetes.controlplane.waiting import answers, free_ports

_OF_JOBSETS = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
_HERE = Path(__file__).parent


def start_trainer(plane: ControlPlane) -> None:
    manifests = define_train_jobs(plane, TRAINER)
    probe = f"127.0.0.1:{free_ports(1)[0]}"
    _start(plane, "trainer", manifests, [str(ensure(TRAINER))], probe, probe)


def define_train_jobs(plane: ControlPlane, program: GoProgram) -> Path:
    """Define TrainJobs as `program` knows them; return the directory of their manifests."""
    manifests = module_directory(program, "github.com/kubeflow/trainer/v2") / "manifests/base"
    plane.define(kinds_in(manifests / "crds"))
    return manifests


def start_jobset(plane: ControlPlane) -> None:
    port, probe = (f"127.0.0.1:{port}" for port in free_ports(2))
    components = module_directory(JOBSET, "sigs.k8s.io/jobset") / "config/components"
    plane.define(kinds_in(components / "crd/bases"))
    home, files = plane.directory / "jobset", plane.certificates
    home.mkdir()
    shutil.copy(files.serving, home / "tls.crt")
    shutil.copy(files.serving_key, home / "tls.key")
    config, text = home / "config.yaml", (_HERE / "jobset.yaml").read_text()
    given = {"PROBE": probe, "PORT": port.partition(":")[2], "HOME": str(home)}
    config.write_text(Template(text).substitute(given))
    _start(plane, "jobset", components, [str(ensure(JOBSET)), f"--config={config}"], probe)
    webhooks = webhooks_at("jobset", components, port, files.authority)
    for webhook in (each for body in webhooks for each in body["webhooks"]):
        if webhook["rules"][0]["resources"] == ["pods"]:  # those of JobSets alone
            webhook["objectSelector"] = {"matchExpressions": [_OF_JOBSETS]}
    plane.apply(webhooks)


def kinds_in(directory: Path) -> list[dict[str, Any]]:
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
    return {
        "url": f"https://{at}",
        "caBundle": base64.b64encode(authority.read_bytes()).decode(),
    }


NAMESPACE = "kueue-system"
# The rotator asks for the first as the name of the authority, for the second as that of the server.
_NAMES = ("kueue-ca", f"kueue-webhook-service.{NAMESPACE}.svc", "localhost")
# Nobody answers for the others.
_GROUPS = {"kueue.x-k8s.io", "batch", "jobset.x-k8s.io", "trainer.kubeflow.org"}
_CONVERTED = {"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}


@dataclass(frozen=True)
class Kueue:
    """Kueue's controller, which ends with the control plane."""

    plane: ControlPlane
    config: Path
    probe: str

    def start(self) -> None:
        """Start it, perhaps again after `kill`; return when it is ready."""
        admin = self.plane.admin.kubeconfig()
        command = [str(ensure(KUEUE)), f"--config={self.config}", f"--kubeconfig={admin}"]
        self.plane.run("kueue", command, partial(answers, f"http://{self.probe}/readyz"))

    def kill(self) -> None:
        self.plane.kill("kueue")

    @contextmanager
    def configured(self, **settings: Any) -> Iterator[None]:
        """Run it with other settings for a while."""
        before = self.config.read_text()
        self._start_with(yaml.safe_dump(yaml.safe_load(before) | settings))
        try:
            yield
        finally:
            self._start_with(before)

    def _start_with(self, config: str) -> None:
        self.kill()
        self.config.write_text(config)
        self.start()


def start_kueue(plane: ControlPlane) -> Kueue:
    port, probe = (f"127.0.0.1:{port}" for port in free_ports(2))
    components = module_directory(KUEUE, "sigs.k8s.io/kueue") / "config/components"
    home = plane.directory / "kueue"
    home.mkdir()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)  # it reads no other
    certificate = self_signed(key, _NAMES, timedelta(days=3650))
    for name in ("ca.crt", "tls.crt"):
        (home / name).write_bytes(certificate)
    for name in ("ca.key", "tls.key"):
        write_key(home / name, key)
    config, given = home / "config.yaml", {"PROBE": probe, "HOME": str(home)}
    given["PORT"] = port.partition(":")[2]
    config.write_text(Template((_HERE / "kueue.yaml").read_text()).substitute(given))
    plane.apply(_secret(home))
    plane.define(_kinds(components, port, home / "ca.crt"))
    define_train_jobs(plane, KUEUE)  # what is there when it starts is what it integrates
    plane.apply(_webhooks(components, port, home / "ca.crt"))
    kueue = Kueue(plane, config, probe)
    kueue.start()
    return kueue


def _secret(home: Path) -> Iterable[dict[str, Any]]:
    files = ("ca.crt", "ca.key", "tls.crt", "tls.key")
    data = {name: base64.b64encode((home / name).read_bytes()).decode() for name in files}
    meta = {"name": "kueue-webhook-server-cert", "namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def _kinds(components: Path, at: str, authority: Path) -> Iterable[dict[str, Any]]:
    for body in kinds_in(components / "crd/bases"):
        if body["spec"]["names"]["plural"] in _CONVERTED:
            client = client_config(f"{at}/convert", authority)
            webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield body


def _webhooks(components: Path, at: str, authority: Path) -> Iterable[dict[str, Any]]:
    for body in webhooks_at("kueue", components, at, authority):
        groups = (
            {group for rule in webhook["rules"] for group in rule["apiGroups"]}
            for webhook in body["webhooks"]
        )
        pairs = zip(body["webhooks"], groups, strict=True)
        yield {**body, "webhooks": [each for each, of in pairs if of <= _GROUPS]}
