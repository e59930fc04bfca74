"""A cluster as an instance: ``import`` writes it, ``report`` says what was earned on it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console, options
from experiments.cli.commands.compare import run_policies, solve_from
from experiments.cli.commands.kubernetes import cluster
from experiments.cli.commands.kubernetes.reading import summary
from experiments.cli.console import note
from experiments.cli.exit_codes import LIMIT
from experiments.cli.results import deliver, write_instance
from experiments.evaluation import live
from experiments.evaluation.comparison import Comparison, with_optimum
from experiments.evaluation.policies import RIVALS
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import comparison_notes, comparison_table
from experiments.options import Duration, read_seconds
from oasis.kubernetes.api.resources import CLASSES, NODES, PODS, Objects
from oasis.kubernetes.cluster.nodes import Machines, instance_of
from oasis.kubernetes.cluster.pods import seconds_of
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.admission import Admission
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.existing import name_of, parse, status_of
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.solvers import TRUST


@dataclass(frozen=True, slots=True)
class Reach:
    """The part of a cluster to read, and the slots and names of resources to read it with."""

    objects: Objects
    clock: SlotClock
    resources: ResourceMap
    machines: cluster.NodeOptions
    namespaces: tuple[str | None, ...]  # of the jobs; (None,): all
    spaces: tuple[str | None, ...] = (None,)  # where pods can be seen; (None,): everywhere

    def seen(self) -> Seen:
        """Return the jobs and the utility classes of these namespaces."""
        classes = self.objects.snapshot([(CLASSES, None)])
        return Seen(cluster.seen_jobs(self.objects, self.namespaces) | classes)

    def submitted(
        self, items: Iterable[cluster.Found]
    ) -> Iterator[tuple[int | None, str, JobSpec]]:
        """Yield for each valid job its slot of arrival or None, time of creation and spec."""
        for kind, item in items:
            try:
                spec = parse(item, kind, self.clock, self.resources)
            except oasis.InstanceError as error:
                note(f"left out: {name_of(item, kind)}: {error}")
                continue
            slot = status_of(item, kind).get("arrivalSlot")
            yield slot, item["metadata"].get("creationTimestamp", ""), spec

    def instance(
        self, seen: Seen, arrived: list[tuple[int, str, JobSpec]], last: int
    ) -> oasis.Instance:
        """Return present nodes and the jobs as an instance, from the first arrival to `last`."""
        first = min((slot for slot, _, _ in arrived), default=0)
        nodes, _ = self.objects.list_all(NODES, selector=self.machines.nodes)
        pods = [pod for space in self.spaces for pod in self.objects.list_all(PODS, space)[0]]
        seen = Seen({**seen.objects, NODES.plural: nodes, PODS.plural: pods})
        share, seconds = self.machines.share, self.clock.work_seconds
        machines = Machines.of(seen, self.resources, share, seconds)
        admission = Admission(machines.places, nodes)
        # By slot, then in order of creation, as the controller takes jobs in.
        rows = sorted(
            (slot - first, age, k, admission.on_admitting(spec, ()))
            for k, (slot, age, spec) in enumerate(arrived)
        )
        about = {"imported": "kubernetes", "server": self.objects.connection.host}
        submitted = ((spec, at) for at, _, _, spec in rows)
        return instance_of(submitted, machines.site, last - first + 1, about)


def import_cluster(
    *,
    output: options.Output,
    slot_seconds: Annotated[float, "Length of a slot."] = 60.0,
    startup_seconds: cluster.StartupSeconds = 0.0,
    horizon: Annotated[int, typer.Option(metavar="N", help="Number of slots.", min=1)] = 100,
    machines: cluster.NodeOptions,
    gpu: cluster.Gpu = cluster.GPU,
    jobs: cluster.JobNamespace = None,
    place: cluster.ClusterOptions,
) -> None:
    """Write the nodes and the jobs of a cluster as an instance file.

    Jobs are OasisJobs, and those of other kinds that are scheduled here. For oasis ratio and
    oasis compare: how good were the decisions, and would another policy have earned more? Jobs
    arrive in the slots in which the controller took them in, counted from the first; those that it
    has not read yet arrive last.

    Example: oasis kubernetes import -o now.json && oasis compare now.json
    """
    with options.naming_flags(("slot_seconds", "startup_seconds")):
        clock = SlotClock(slot_seconds, startup_seconds)
    resources = cluster.resources_of(gpu)
    reach = Reach(place.connect(), clock, resources, machines, (jobs,))
    seen = reach.seen()
    submitted = list(reach.submitted(seen.jobs))
    slots = [slot for slot, _, _ in submitted if slot is not None]
    last = max(slots, default=0)
    arrived = [(last if slot is None else slot, age, spec) for slot, age, spec in submitted]
    with options.naming_flags(("horizon",)):
        instance = reach.instance(seen, arrived, min(slots, default=0) + horizon - 1)
    write_instance(instance, output)


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
            autocompletion=options.POLICY_LIST,
            help="Which to simulate on the same jobs, with commas between; none: only the bound. "
            f"[default: {', '.join(RIVALS)}]",
            show_default=False,
        ),
    ] = ",".join(RIVALS),
    limits: options.Limits,
    solver_seed: options.SolverSeed = 0,
    machines: cluster.NodeOptions,
    gpu: cluster.Gpu = cluster.GPU,
    jobs: cluster.JobNamespace = None,
    spaces: cluster.Namespaced = None,
    of: cluster.ControllerOptions,
    place: cluster.ClusterOptions,
    output: options.ResultFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Say what a cluster earned, by namespace, and how far from the optimum that was.

    The same jobs, with the work that they declare, are given to other policies in simulation and to
    the offline solver, on the nodes as they are now. All of them end with the present slot: a job
    that is not complete by then earns nothing, for the cluster as for the policies. Jobs that were
    deleted are not counted. If jobs needed less work than they declared, the cluster may earn more
    than the bound; a line says so.

    Without a proof by the limits, the share of the optimum is an interval, and the exit code is 3.

    `oasis report day.json -o day.html` makes a page of it.

    Example: oasis kubernetes report --since 24h -o day.json
    """
    chosen = [] if policies == "none" else options.known_policies(policies, "--policies")
    criteria = limits.given()
    objects = place.connect()
    _, clock = cluster.memory_of(objects, of.namespace, of.one)
    within = cluster.namespaces_of(spaces)
    resources, seeing = cluster.resources_of(gpu), within or (None,)
    spaces_read = seeing if jobs is None else (jobs,)
    reach = Reach(objects, clock, resources, machines, spaces_read, seeing)
    now, seen = time.time(), reach.seen()
    mine, _ = cluster.of_controller(seen.jobs, of.namespace, of.one)
    begin = time_text(now - since)  # as the API server writes it
    recent = [job for job in mine if job[1]["metadata"].get("creationTimestamp", "") >= begin]
    summaries = [summary(job) for job in recent]
    last, arrived = clock.slot(now), []
    for slot, age, spec in reach.submitted(recent):
        at = slot_of(clock, age) if slot is None else slot
        if at <= last:
            arrived.append((at, age, spec))
    spaces_told = live.by_namespace(summaries)
    about = {"since": begin, "until": time_text(now), "namespaces": spaces_told}
    if not arrived:
        raise oasis.InputError("--since", f"no job that makes sense has arrived since {begin}")
    instance = reach.instance(seen, arrived, last)
    ids = {spec.id: slot for slot, _, spec in arrived}
    figures = live.actual_figures([job for job in summaries if job["job"] in ids], ids)
    comparison, notes = measured(instance, chosen, figures, criteria, solver_seed)
    document = comparison.to_dict() | {"cluster": about}
    document["instance"] = instance_reference(instance, None)

    def show() -> None:
        rows = live.namespace_rows(spaces_told)
        console.print_rows(live.NAMESPACES, rows, title=f"submitted since {begin}")
        columns, lines = comparison_table(comparison)
        title = f"\n{len(instance.jobs)} jobs, {instance.horizon} slots up to now"
        console.print_rows(columns, lines, title=title)
        console.print_notes([*notes, *comparison_notes(comparison)])

    deliver(document, show, as_json=as_json, output=output)
    code = console.note_missing(comparison.missing)
    return code if comparison.about.get("optimum", {"proven": False})["proven"] else LIMIT


def slot_of(clock: SlotClock, created: str) -> int:
    """Return the slot in which a job created at time `created` is first decided on."""
    return clock.slot(seconds_of(created)) + 1


def measured(
    instance: oasis.Instance,
    policies: list[str],
    actual: Mapping[str, Any],
    limits: Mapping[str, Any],
    seed: int,
) -> tuple[Comparison, list[str]]:
    """Compare what the cluster earned with simulated policies and the optimum; add notes."""
    comparison, best = run_policies(instance, {name: {} for name in policies}, {})
    comparison = live.with_actual(comparison, actual)
    if comparison.missing:
        return comparison, []
    offline = solve_from(instance, best, "auto", seed, limits)
    earned = actual["total_utility"]
    if earned > offline.upper_bound * (1 + TRUST):
        more = f"{live.ACTUAL} earned {console.number(earned)}, more than the bound: "
        return with_optimum(comparison, offline), [more + "jobs needed less work than they declare"]
    # What was really earned is a schedule too, perhaps better than the best that was found.
    optimum = max(offline.objective, min(earned, offline.upper_bound))
    return with_optimum(comparison, replace(offline, objective=optimum)), []
