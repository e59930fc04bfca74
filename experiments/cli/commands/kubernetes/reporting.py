"""A cluster as an instance: ``import`` writes it, ``report`` says what was earned on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.compare import BestRun, run_policies, solve_from
from experiments.cli.commands.generate import describe
from experiments.cli.commands.kubernetes.cluster import (
    GPU,
    NAME,
    STORAGE,
    SYSTEM,
    BandwidthResource,
    Context,
    Gpu,
    JobNamespace,
    Kubeconfig,
    Name,
    Namespaced,
    Nodes,
    PsShare,
    StartupSeconds,
    Storage,
    System,
    clock_of,
    connect,
    jobs_of,
    memory_of,
    namespaces_of,
    of_controller,
    resource_map,
    share,
)
from experiments.cli.commands.kubernetes.reading import summary
from experiments.cli.console import note
from experiments.cli.exit_codes import LIMIT
from experiments.cli.files import HTML
from experiments.cli.options import (
    AsJson,
    Gap,
    NoImprovement,
    Output,
    ResultFile,
    SolverSeed,
    TimeLimit,
    WorkLimit,
    known_policies,
    limits_of,
    naming_flags,
)
from experiments.cli.results import deliver, write_instance, write_page
from experiments.evaluation.comparison import Comparison, with_optimum
from experiments.evaluation.limits import Duration, read_seconds
from experiments.evaluation.on_cluster import (
    ACTUAL,
    NAMESPACES,
    actual_figures,
    by_namespace,
    namespace_rows,
    with_actual,
)
from experiments.evaluation.policies import RIVALS
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import comparison_notes, comparison_table
from oasis.kubernetes.cluster.nodes import foreign_use, instance_of, places_of, site_of
from oasis.kubernetes.cluster.pods import by_job, claims_of, uids_of
from oasis.kubernetes.control.admission import Admission
from oasis.kubernetes.names import BANDWIDTH, KIND
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.existing import EXISTING, SELECTOR, job_items, parse_existing
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, job_id, parse_job
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.kubernetes.objects.utility_class import with_defaults
from oasis.solvers import TRUST

if TYPE_CHECKING:
    from oasis.kubernetes.api.resources import Objects


@dataclass(frozen=True, slots=True)
class Reach:
    """The part of a cluster that is read, and the names that it uses.

    Parameters
    ----------
    clock : SlotClock
        The slots.
    resources : ResourceMap
        Names of resources.
    ps_share : Fraction or None
        Part of a machine of both groups that is for parameter servers.
    namespaces : tuple of str or None
        Of the jobs; None: all.
    spaces : tuple of str or None
        Where pods can be seen; None: everywhere.
    nodes : str or None
        Labels that nodes must have; None: all nodes.
    """

    clock: SlotClock
    resources: ResourceMap
    ps_share: Fraction | None
    namespaces: tuple[str | None, ...]
    spaces: tuple[str | None, ...]
    nodes: str | None


def import_cluster(
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
    nodes: Nodes = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Write the nodes and the jobs of a cluster as an instance file.

    Jobs are OasisJobs, and those of other kinds that are scheduled here. For oasis ratio and
    oasis compare: how good were the decisions, and would another policy have earned more? Jobs
    arrive in the slots in which the controller took them in, counted from the first; those that it
    has not read yet arrive last.

    Example: oasis kubernetes import -o now.json && oasis compare now.json
    """
    with naming_flags(("slot_seconds", "startup_seconds")):
        clock = SlotClock(slot_seconds, startup_seconds)
    resources = resource_map(gpu, bandwidth, storage)
    reach = Reach(clock, resources, share(ps_share), (jobs,), (None,), nodes)
    objects = connect(kubeconfig, context)
    there = _jobs_there(_jobs_seen(objects, reach.namespaces), reach)
    known = [slot for slot, _, _ in there if slot is not None]
    last = max(known, default=0)
    arrived = [(last if slot is None else slot, age, spec) for slot, age, spec in there]
    with naming_flags(("horizon",)):
        instance = _instance(objects, reach, arrived, min(known, default=0), horizon)
    write_instance(instance, output)
    note(describe(instance, output))


def report(
    *,
    since: Annotated[
        float,
        typer.Option(
            parser=partial(read_seconds, what="a time"),
            metavar="TIME",
            help="Jobs that were submitted within this time, such as 12h. [default: 7d]",
            show_default=False,
        ),
    ] = Duration(7 * 86400.0),
    policies: Annotated[
        str,
        typer.Option(
            help="Which to simulate on the same jobs, with commas between; none: only the bound."
        ),
    ] = ",".join(RIVALS),
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = None,
    gap: Gap = None,
    no_improvement: NoImprovement = None,
    solver_seed: SolverSeed = 0,
    ps_share: PsShare = None,
    gpu: Gpu = GPU,
    bandwidth: BandwidthResource = BANDWIDTH,
    storage: Storage = STORAGE,
    jobs: JobNamespace = None,
    spaces: Namespaced = None,
    nodes: Nodes = None,
    namespace: System = SYSTEM,
    name: Name = NAME,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write a page of HTML with pictures."),
        HTML,
    ] = None,
    output: ResultFile = None,
    as_json: AsJson = False,
) -> int:
    """Say what a cluster earned, by namespace, and how far from the optimum that was.

    The same jobs, with the work that they declare, are given to other policies in simulation and to
    the offline solver, on the nodes as they are now. All of them end with the present slot: a job
    that is not complete by then earns nothing, for the cluster as for the policies. Jobs that were
    deleted are not counted. If jobs needed less work than they declared, the cluster may earn more
    than the bound; a line says so.

    Without a proof by the limits, the share of the optimum is an interval, and the exit code is 3.

    Example: oasis kubernetes report --since 24h --page report.html
    """
    chosen = [] if policies == "none" else known_policies(policies, "--policies")
    limits = limits_of(time_limit, work_limit, gap, no_improvement)
    objects = connect(kubeconfig, context)
    clock = clock_of(memory_of(objects, namespace, name))
    resources = resource_map(gpu, bandwidth, storage)
    within = namespaces_of(spaces)
    reach = Reach(clock, resources, share(ps_share), within or (jobs,), within or (None,), nodes)
    now = time.time()
    seen, summaries = _submitted(objects, reach.namespaces, now - since, (namespace, name))
    last = clock.slot(now)
    arrived = [
        (at, age, spec)
        for slot, age, spec in _jobs_there(seen, reach)
        if (at := slot_of(clock, age) if slot is None else slot) <= last
    ]
    said: dict[str, Any] = {"since": time_text(now - since), "until": time_text(now)}
    said["namespaces"] = by_namespace(summaries)
    if not arrived:
        raise oasis.InputError(
            "--since", f"no job that makes sense has arrived since {said['since']}"
        )
    first = min(slot for slot, _, _ in arrived)
    instance = _instance(objects, reach, arrived, first, last - first + 1)
    ids = {spec.id: slot for slot, _, spec in arrived}
    figures = actual_figures([job for job in summaries if job["job"] in ids], ids)
    comparison, notes = measured(instance, chosen, figures, limits, solver_seed)
    document = comparison.to_dict() | {"cluster": said}
    document["instance"] = instance_reference(instance, None)

    def show() -> None:
        rows = namespace_rows(said["namespaces"])
        console.print_rows(NAMESPACES, rows, title=f"submitted since {said['since']}")
        columns, lines = comparison_table(comparison)
        title = f"\n{len(instance.jobs)} jobs, {instance.horizon} slots up to now"
        console.print_rows(columns, lines, title=title)
        console.print_notes([*notes, *comparison_notes(comparison)])

    deliver(document, show, as_json=as_json, output=output)
    if page is not None:
        write_page(_page(document, instance, notes), page)
        note(f"wrote {page}")
    code = console.note_missing(comparison.missing)
    return code if comparison.about.get("optimum", {"proven": False})["proven"] else LIMIT


def _submitted(
    objects: Objects,
    namespaces: tuple[str | None, ...],
    begin: float,
    controller: tuple[str, str],
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The jobs of a controller that were made after `begin`, as objects and as `status` says."""

    def is_recent(item: Mapping[str, Any]) -> bool:
        made = item["metadata"].get("creationTimestamp")
        return made is not None and datetime.fromisoformat(made).timestamp() >= begin

    there = [item for namespace in namespaces for item in jobs_of(objects, namespace)]
    items, _ = of_controller(there, *controller)
    recent = [item for item in items if is_recent(item)]
    uids = {item["metadata"]["uid"] for item in recent}
    seen = {
        plural: [item for item in found if item["metadata"]["uid"] in uids]
        for plural, found in _jobs_seen(objects, namespaces).items()
    }
    return seen, [summary(item) for item in recent]


def slot_of(clock: SlotClock, created: str) -> int:
    """The slot in which a job that was made then is first decided on."""
    return clock.slot(datetime.fromisoformat(created).timestamp()) + 1


def measured(
    instance: oasis.Instance,
    policies: list[str],
    actual: Mapping[str, Any],
    limits: Mapping[str, Any],
    seed: int,
) -> tuple[Comparison, list[str]]:
    """Measured cluster run beside the policies and the optimum, with notes."""
    best = BestRun()
    comparison = run_policies(instance, {name: {} for name in policies}, {}, best)
    comparison = with_actual(comparison, actual)
    if comparison.missing:
        return comparison, []
    offline = solve_from(instance, best.run, "auto", seed, limits)
    earned = actual["total_utility"]
    if earned > offline.upper_bound * (1 + TRUST):
        more = f"{ACTUAL} earned {console.number(earned)}, more than the bound: "
        return with_optimum(comparison, offline), [more + "jobs needed less work than they declare"]
    # What was really earned is a schedule too, perhaps better than the best that was found.
    known = max(offline.objective, min(earned, offline.upper_bound))
    return with_optimum(comparison, replace(offline, objective=known)), []


def _page(document: dict[str, Any], instance: oasis.Instance, notes: list[str]) -> str:
    """The report as a page of HTML."""
    from experiments.report import report_page, section_of  # noqa: PLC0415 (needs an extra)
    from experiments.report.section import table  # noqa: PLC0415

    said = document["cluster"]
    made = section_of("cluster", document, instance)
    earned = table("By namespace", NAMESPACES, namespace_rows(said["namespaces"]))
    command = "oasis kubernetes report --since TIME --page FILE"
    section = replace(
        made,
        title=f"What the cluster earned from {said['since']} to {said['until']}",
        tables=(earned, *made.tables),
        notes=(*notes, *made.notes),
        again=(command,),
    )
    return report_page([section], "OASiS: what the cluster earned")


def _instance(
    objects: Objects,
    reach: Reach,
    arrived: Sequence[tuple[int, str, JobSpec]],
    first: int,
    horizon: int,
) -> oasis.Instance:
    """The nodes as they are now, and jobs by slot of arrival, of which `first` becomes slot 0."""
    from oasis.kubernetes.api.resources import NODES, PODS  # noqa: PLC0415 (needs an extra)

    listed, _ = objects.list_all(NODES, selector=reach.nodes)
    nodes = {node["metadata"]["name"]: node for node in listed}
    pods = [pod for space in reach.spaces for pod in objects.list_all(PODS, space)[0]]
    places = places_of(nodes.values(), reach.ps_share)
    ours = uids_of(by_job(pods, claims_of(_jobs_seen(objects, reach.namespaces))))
    site = site_of(
        places, nodes, foreign_use(pods, ours), reach.resources, reach.clock.work_seconds
    )
    admission = Admission(places, nodes.values())
    # By slot, then in order of creation, as the controller takes jobs in.
    rows = sorted(
        (slot - first, age, k, admission.required(spec, ()))
        for k, (slot, age, spec) in enumerate(arrived)
    )
    metadata = {"imported": "kubernetes", "server": objects.connection.host}
    return instance_of(((spec, at) for at, _, _, spec in rows), site, horizon, metadata)


def _jobs_seen(
    objects: Objects, namespaces: tuple[str | None, ...]
) -> dict[str, list[dict[str, Any]]]:
    """The jobs of all kinds, by plural of their kind, and the utility classes."""
    from oasis.kubernetes.api.resources import CLASSES, OASIS_JOBS  # noqa: PLC0415 (an extra)

    seen = {CLASSES.plural: objects.list_if_served(CLASSES)}
    for namespace in namespaces:
        seen.setdefault(OASIS_JOBS.plural, []).extend(objects.list_all(OASIS_JOBS, namespace)[0])
        for existing in EXISTING:
            found = objects.list_if_served(existing.where, namespace, SELECTOR)
            seen.setdefault(existing.where.plural, []).extend(found)
    return with_defaults(seen)


def _jobs_there(
    seen: Mapping[str, list[dict[str, Any]]], reach: Reach
) -> list[tuple[int | None, str, JobSpec]]:
    """Slot of arrival, if a controller has read it, time of creation, and what the owner wants."""
    from oasis.kubernetes.control.statuses import status_of  # noqa: PLC0415 (needs an extra)

    clock, resources = reach.clock, reach.resources
    found: list[tuple[int | None, str, JobSpec]] = []
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
        slot = status_of(item, kind).get("arrivalSlot")
        found.append((slot, meta.get("creationTimestamp", ""), spec))
    return found
