"""Command lines of the processes of a control plane, and the files that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.kubernetes.controlplane.certificates import Certificates

STAGES = Path(__file__).resolve().parent / "stages"
COMMANDS = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8"))
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

    @property
    def scheduler_burst(self) -> int:
        return max(100, self.scheduler_requests)


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

    def command(self, process: str, *flags: str, **more: object) -> list[str]:
        """The command line of a process."""
        found = {
            "etcd": self.etcd_url,
            "peer": f"http://127.0.0.1:{self.ports.etcd_peer}",
            **{"directory": self.directory, "files": self.certificates, "ports": self.ports},
            **{"timing": self.timing, "audit_log": self.audit_log, "audit_policy": AUDIT_POLICY},
            **more,
        }
        given = [flag.format(**found) for flag in COMMANDS[process]]
        return [str(self.binary), process, *given, *flags]

    def kwok(self, machines: str) -> list[str]:
        number = MACHINES.index(machines)
        own = {"annotation": MACHINES_ANNOTATION, "machines": machines, "network": 128 + number}
        return self.command("kwok", **own, port=self.ports.machines[number])
