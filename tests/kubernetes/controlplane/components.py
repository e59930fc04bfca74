"""Command lines of the processes of a control plane, and the files that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.controlplane.certificates import Certificates

STAGES = Path(__file__).resolve().parent / "stages"
AUDIT_POLICY = Path(__file__).resolve().with_name("audit-policy.yaml")
MACHINES = ("machines", "losable-machines")  # one kwok each: stop one, and its nodes are lost
MACHINES_ANNOTATION = "oasis.test/machines"
ADMIN = "admin"

# What the processes call themselves, and whose rights they have: the first two get theirs from the
# roles that the API server makes by itself, kwok stands in for the kubelets of all nodes.
USERS = {
    ADMIN: ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
}


@dataclass(frozen=True)
class Timing:
    """Seconds until the control plane gives up on a node: `grace` without a sign of life make it
    Unknown, pods leave it `toleration` later; kwok renews a node's lease within `lease`. And the
    requests a second that the scheduler makes at most, which makes two or three for a pod.

    A healthy node must not be given up because kwok had no processor for a few seconds: once all
    nodes are silent, the control plane evicts nothing any more."""

    grace: int = 20
    toleration: int = 5
    lease: int = 8
    scheduler_requests: int = 1000  # 50 as it comes, which makes tests slow


@dataclass(frozen=True)
class Ports:
    """One free port on 127.0.0.1 for each server; `machines` in the order of `MACHINES`."""

    etcd: int
    etcd_peer: int
    api_server: int
    manager: int
    scheduler: int
    machines: tuple[int, ...]


@dataclass(frozen=True)
class Components:
    """All that the command lines depend on."""

    binary: Path
    directory: Path
    certificates: Certificates
    ports: Ports
    timing: Timing

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.api_server}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.etcd}"

    @property
    def audit_log(self) -> Path:
        return self.directory / "audit.log"

    def kubeconfig(self, name: str) -> Path:
        return self.directory / f"{name}.kubeconfig"

    def write_files(self, tokens: dict[str, str]) -> None:
        """Tokens of the fixed users, and kwok's stages in one file."""
        rows = [
            f'{tokens[process]},{user},{user},"{groups}"'
            for process, (user, groups) in USERS.items()
        ]
        token_file = self.directory / "tokens.csv"
        token_file.touch(mode=0o600)
        token_file.write_text("\n".join(rows) + "\n")
        stages = [file.read_text() for file in sorted(STAGES.glob("*.yaml"))]
        (self.directory / "stages.yaml").write_text("---\n".join(stages))

    def etcd(self) -> list[str]:
        peer = f"http://127.0.0.1:{self.ports.etcd_peer}"
        return [
            *(str(self.binary), "etcd", "--unsafe-no-fsync", "--log-level=warn"),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        ]

    def api_server(self, *flags: str) -> list[str]:
        files = self.certificates
        return [
            *(str(self.binary), "kube-apiserver", f"--etcd-servers={self.etcd_url}"),
            *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"),
            f"--secure-port={self.ports.api_server}",
            *("--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24"),
            f"--tls-cert-file={files.serving}",
            f"--tls-private-key-file={files.serving_key}",
            f"--cert-dir={self.directory / 'api-server'}",
            f"--client-ca-file={files.authority}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            *("--authorization-mode=RBAC", "--anonymous-auth=false"),
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.token_key}",
            f"--service-account-signing-key-file={files.token_key}",
            f"--default-not-ready-toleration-seconds={self.timing.toleration}",
            f"--default-unreachable-toleration-seconds={self.timing.toleration}",
            f"--audit-policy-file={AUDIT_POLICY}",
            f"--audit-log-path={self.audit_log}",
            *("--allow-privileged=true", "--profiling=false", *flags),
        ]

    def controller_manager(self) -> list[str]:
        return [
            *self._follower("kube-controller-manager", self.ports.manager),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.certificates.token_key}",
            f"--root-ca-file={self.certificates.authority}",
            f"--flex-volume-plugin-dir={self.directory / 'flexvolume'}",
            "--node-monitor-period=2s",
            f"--node-monitor-grace-period={self.timing.grace}s",
        ]

    def scheduler(self) -> list[str]:
        most = self.timing.scheduler_requests
        return self._follower("kube-scheduler", self.ports.scheduler, most)

    def kwok(self, machines: str) -> list[str]:
        number = MACHINES.index(machines)
        return [
            *(str(self.binary), "kwok", f"--kubeconfig={self.kubeconfig('kwok')}"),
            f"--config={self.directory / 'stages.yaml'}",
            f"--manage-nodes-with-annotation-selector={MACHINES_ANNOTATION}={machines}",
            *("--node-ip=127.0.0.1", f"--cidr=10.{128 + number}.0.0/16"),
            f"--node-lease-duration-seconds={self.timing.lease}",
            f"--server-address=127.0.0.1:{self.ports.machines[number]}",
        ]

    def _follower(self, process: str, port: int, requests: int = 1000) -> list[str]:
        return [
            *(str(self.binary), process, f"--kubeconfig={self.kubeconfig(process)}"),
            *("--bind-address=127.0.0.1", f"--secure-port={port}"),
            f"--cert-dir={self.directory / process}",
            *("--leader-elect=false", "--profiling=false"),
            *(f"--kube-api-qps={requests}", f"--kube-api-burst={max(100, requests)}"),
        ]
