"""Shared parts of the subcommands: connecting to the cluster, and reading its objects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli.options import naming_flags
from oasis.kubernetes.api.connection import ApiError, Connection
from oasis.kubernetes.api.resources import LEASES, OASIS_JOBS, Objects
from oasis.kubernetes.cluster.pods import seconds_of
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.control.settings import check_names
from oasis.kubernetes.names import FIELD_MANAGER, NAMESPACE
from oasis.kubernetes.objects.existing import (
    EXISTING,
    ExistingKind,
    controller_of,
    job_items,
    name_of,
)
from oasis.kubernetes.objects.manifests import SYSTEM
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.kubernetes.objects.workload import LOCAL_QUEUES

GPU = "nvidia.com/gpu"
Found = tuple[ExistingKind | None, Mapping[str, Any]]  # a job with its kind; None: an OasisJob

JobNamespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace of the jobs. [default: all]")
]
System = Annotated[str, typer.Option("--system-namespace", help="Namespace of the controller.")]
Namespaced = Annotated[
    str | None,
    typer.Option(
        "--namespaced",
        help="Rights in these namespaces alone, such as team-a,team-b. [default: in all]",
    ),
]
Gpu = Annotated[str, typer.Option("--gpu-resource", help="What the cluster calls GPUs.")]
StartupSeconds = Annotated[float, "Part of a slot that pods may take to start without being late."]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Command-line options that choose the cluster."""

    kubeconfig: Annotated[
        Path | None, "Cluster to talk to. [default: as kubectl; in a pod, its service account]"
    ] = None
    # Not `context`, which is what other records call the context of the command.
    of_kubeconfig: Annotated[str | None, {"flag": "--context"}, "Context of the kubeconfig."] = None

    def connect(self, *, dry_run: bool = False) -> Objects:
        """Connect to the cluster and return its objects; with `dry_run` nothing is written."""
        path = None if self.kubeconfig is None else str(self.kubeconfig)
        if path is not None and not Path(path).is_file():
            raise oasis.InputError("--kubeconfig", f"expected a file, got {path}")
        return Objects(Connection.open(path, self.of_kubeconfig), dry_run)


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Command-line options that choose the controller."""

    namespace: System = SYSTEM
    name: Annotated[
        str | None,
        typer.Option(
            "--controller-name",
            help="Name of its lease and of its checkpoint. [default: oasis-scheduler; if jobs are "
            "listed, of each]",
        ),
    ] = None

    def __post_init__(self) -> None:
        with naming_flags((), namespace="--system-namespace", name="--controller-name"):
            check_names(self.namespace, self.one)

    @property
    def one(self) -> str:
        """The name of the controller; the default name if the option is not given."""
        return FIELD_MANAGER if self.name is None else self.name


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Command-line options that say which nodes are planned with, and how."""

    ps_share: Annotated[
        str | None, "Part of nodes labelled `both` for parameter servers, such as 0.2."
    ] = None
    nodes: Annotated[
        str | None, "Only nodes with these labels, such as pool=a. [default: all with a role]"
    ] = None

    @property
    def share(self) -> Fraction | None:
        """``--ps-share`` as an exact number between 0 and 1; None if it is not given."""
        if self.ps_share is None:
            return None
        try:
            # Exact, so that the two parts of a node add up to the node.
            share = Fraction(self.ps_share)
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not 0 < share < 1:
            raise oasis.InputError("--ps-share", "expected a number between 0 and 1", self.ps_share)
        return share


def resources_of(gpu: str) -> ResourceMap:
    """Return the resource map in which GPUs are called `gpu`, such as nvidia.com/gpu."""
    with naming_flags((), gpu="--gpu-resource"):
        return ResourceMap.of(gpu)


def namespaces_of(text: str | None) -> tuple[str, ...]:
    """Return the names in ``--namespaced``; empty if it is not given: all namespaces."""
    if text is None:
        return ()
    namespaces = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(map(NAMESPACE.fullmatch, namespaces)):
        raise oasis.InputError("--namespaced", "expected names such as team-a,team-b", text)
    return namespaces


def seen_jobs(
    objects: Objects, namespaces: tuple[str | None, ...]
) -> dict[str, list[dict[str, Any]]]:
    """Return all jobs and queues in `namespaces`, by plural of their kind; None: in all."""
    kinds = (OASIS_JOBS, LOCAL_QUEUES, *(kind.where for kind in EXISTING))
    return objects.snapshot((kind, space) for space in namespaces for kind in kinds)


def jobs_of(objects: Objects, namespace: str | None) -> list[Found]:
    """Return the jobs scheduled here: OasisJobs by name, then jobs of other kinds."""
    jobs = job_items(seen_jobs(objects, (namespace,)))
    return sorted(
        jobs, key=lambda job: ("" if job[0] is None else job[0].name, name_of(job[1], job[0]))
    )


def of_controller(
    jobs: Iterable[Found], namespace: str, name: str | None
) -> tuple[list[Found], list[str]]:
    """Return the jobs of a controller, or of none yet, and its name; of all if `name` is None."""
    owners = [(job, controller_of(job[1], job[0])) for job in jobs]
    if name is not None:
        controller = f"{namespace}/{name}"
        return [job for job, its in owners if its in (None, controller)], [controller]
    names = {its for _, its in owners if its is not None}
    return [job for job, _ in owners], sorted(names) or [f"{namespace}/{FIELD_MANAGER}"]


def sign_of_life(objects: Objects, controller: str) -> dict[str, Any]:
    """Return whether `controller` runs, by its lease, as a document; ``alive`` None: unknown."""
    # Seconds are counted by the clock of this machine: a lease is called dead after twice its time.
    namespace, _, name = controller.partition("/")

    def told(alive: bool | None, what: str, silent: float | None = None) -> dict[str, Any]:
        document = {"controller": controller, "alive": alive, "silent_seconds": silent}
        return {**document, "message": f"{controller} {what}"}

    try:
        lease = objects.get(LEASES, name, namespace)
    except ApiError as error:
        if error.status != 403:
            raise
        return told(None, "may be at work: no right to read its lease")
    spec = (lease or {}).get("spec") or {}
    if not spec.get("renewTime"):
        return told(False, "has never run: see `oasis kubernetes run`")
    silent = max(0.0, time.time() - seconds_of(spec["renewTime"]))
    if not spec.get("holderIdentity"):
        return told(False, f"was ended {silent:.0f} s ago", silent)
    if silent > 2 * float(spec.get("leaseDurationSeconds") or 0):
        return told(False, f"has given no sign of life for {silent:.0f} s", silent)
    return told(True, "is at work", silent)


def memory_of(objects: Objects, system: str, name: str) -> tuple[dict[str, Any], SlotClock]:
    """Return the checkpoint of a controller and its slot clock; raise if there is none."""
    memory: dict[str, Any] | None = Checkpoint(objects, system, name).read()
    if memory is None:
        expected = f"expected the checkpoint of a controller in namespace {system}; found none"
        raise oasis.InputError(f"--controller-name {name}", expected)
    return memory, SlotClock(memory["slot_seconds"], memory["startup_seconds"], memory["epoch"])
