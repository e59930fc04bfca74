"""Kueue beside a control plane, with JobSets, built from its module.

What differs from a cluster: its webhooks, those for Workloads, queues, Jobs and JobSets alone, are
called on 127.0.0.1, and its certificate, which it keeps, is made here.
"""

from __future__ import annotations

import base64
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

from tests.kubernetes.controlplane.build import KUEUE
from tests.kubernetes.controlplane.certificates import self_signed, write_key
from tests.kubernetes.controlplane.gobuild import ensure, module_directory
from tests.kubernetes.controlplane.owners import (
    client_config,
    define_train_jobs,
    kinds_in,
    webhooks_at,
)
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import answers, free_ports

NAMESPACE = "kueue-system"
_CONFIGURATION = Path(__file__).with_name("kueue.yaml")
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
        """End it as a crash would."""
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
    """Start Kueue beside the controller of JobSets; builds it if need be."""
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
    config.write_text(Template(_CONFIGURATION.read_text()).substitute(given))
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
