"""``oasis kubernetes import``: what is on a cluster, as an instance file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

import oasis
from experiments.cli.commands.generate import describe
from experiments.cli.commands.kubernetes.cluster import (
    GPU,
    STORAGE,
    BandwidthResource,
    Context,
    Gpu,
    JobNamespace,
    Kubeconfig,
    PsShare,
    StartupSeconds,
    Storage,
    connect,
    resource_map,
    share,
)
from experiments.cli.console import note
from experiments.cli.options import Output, naming_flags
from experiments.cli.results import write_instance
from oasis.kubernetes.cluster.nodes import foreign_use, instance_of, places_of, site_of
from oasis.kubernetes.names import KIND
from oasis.kubernetes.objects.existing import EXISTING, SELECTOR, job_items, parse_existing
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, job_id, parse_job
from oasis.kubernetes.objects.quantities import ResourceMap

if TYPE_CHECKING:
    from oasis.kubernetes.api.resources import Objects


def command(
    *,
    output: Output,
    slot_seconds: Annotated[float, typer.Option(help="Length of a slot.")] = 60.0,
    startup_seconds: StartupSeconds = 0.0,
    horizon: Annotated[int, typer.Option(help="Number of slots.", min=1)] = 100,
    ps_share: PsShare = None,
    gpu: Gpu = GPU,
    bandwidth: BandwidthResource = "oasis-scheduler.io/bandwidth",
    storage: Storage = STORAGE,
    jobs: JobNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Write the nodes and the jobs of a cluster as an instance file.

    Jobs are OasisJobs, and the Jobs, JobSets and TrainJobs that are scheduled here. For oasis ratio
    and oasis compare: how good were the decisions, and would another policy have earned more? Jobs
    arrive in the slots in which the controller took them in, counted from the first; those that it
    has not read yet arrive last.

    Example: oasis kubernetes import -o now.json && oasis compare now.json
    """
    with naming_flags(("slot_seconds", "startup_seconds")):
        clock = SlotClock(slot_seconds, startup_seconds)
    resources = resource_map(gpu, bandwidth, storage)
    objects = connect(kubeconfig, context)
    from oasis.kubernetes.api.resources import NODES, PODS  # noqa: PLC0415 (needs an extra)

    nodes = {node["metadata"]["name"]: node for node in objects.list_all(NODES)[0]}
    pods, _ = objects.list_all(PODS)
    places = places_of(nodes.values(), share(ps_share))
    site = site_of(places, nodes, foreign_use(pods), resources, clock.work_seconds)
    specs = list(_jobs_there(objects, jobs, clock, resources))
    known = [slot for slot, _, _ in specs if slot is not None]
    first, last = min(known, default=0), max(known, default=0)
    rows = sorted(
        ((last if slot is None else slot) - first, age, k, spec)
        for k, (slot, age, spec) in enumerate(specs)
    )
    metadata = {"imported": "kubernetes", "server": objects.connection.host}
    with naming_flags(("horizon",)):
        instance = instance_of(((spec, at) for at, _, _, spec in rows), site, horizon, metadata)
    write_instance(instance, output)
    note(describe(instance, output))


def _jobs_there(
    objects: Objects, namespace: str | None, clock: SlotClock, resources: ResourceMap
) -> Iterator[tuple[int | None, str, JobSpec]]:
    """Slot of arrival, if a controller has read it, time of creation, and what the owner wants."""
    from oasis.kubernetes.api.resources import OASIS_JOBS  # noqa: PLC0415 (needs an extra)
    from oasis.kubernetes.control.statuses import status_of  # noqa: PLC0415 (needs an extra)

    seen = {OASIS_JOBS.plural: objects.list_all(OASIS_JOBS, namespace)[0]}
    for existing in EXISTING:
        seen[existing.where.plural] = objects.list_if_served(existing.where, namespace, SELECTOR)
    for kind, item in job_items(seen):
        meta = item["metadata"]
        try:
            if kind is None:
                spec = parse_job(item, clock, resources)
            else:
                spec = parse_existing(item, kind, clock, resources)
        except oasis.InstanceError as error:
            name = job_id(KIND if kind is None else kind.name, meta["namespace"], meta["name"])
            note(f"left out: {name}: {error}")
            continue
        yield status_of(item, kind).get("arrivalSlot"), meta.get("creationTimestamp", ""), spec
