"""Reports on a cluster: ``status``, ``explain``, ``plan`` and ``quote``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes import cluster
from experiments.cli.commands.run import effects, verdict
from experiments.cli.options import AsJson
from experiments.cli.results import Delivery, pages
from oasis.driver.live import remembered
from oasis.kubernetes.api.resources import NODES
from oasis.kubernetes.cluster.nodes import places_of
from oasis.kubernetes.control.admission import Admission
from oasis.kubernetes.names import API_VERSION, FIELD_MANAGER, KIND
from oasis.kubernetes.objects.conditions import decision_message, reason_word, time_text
from oasis.kubernetes.objects.existing import controller_of, name_of, status_of
from oasis.kubernetes.objects.manifests import SYSTEM
from oasis.kubernetes.objects.oasis_job import parse_job
from oasis.model.errors import located_at
from oasis.model.file_kinds import read_content
from oasis.scheduling.policy import Planner


def status(
    *,
    jobs: cluster.JobNamespace = None,
    of: cluster.ControllerOptions,
    place: cluster.ClusterOptions,
    as_json: AsJson = False,
) -> None:
    """List the jobs of a cluster: phase, workers, work done, promise, what they earned.

    Jobs, JobSets and TrainJobs that are scheduled here have their kind in their name. Also says
    whether their controllers run.

    Example: oasis kubernetes status -n research
    """
    objects = place.connect()
    present = cluster.jobs_of(objects, jobs)
    own, controllers = cluster.of_controller(present, of.namespace, of.name)
    lives = [cluster.sign_of_life(objects, each) for each in controllers]
    document = {"jobs": [summary(item) for item in own], "controllers": lives}
    if as_json:
        console.print_json(document)
        return
    earned = sum(job["utility"] or 0.0 for job in document["jobs"])
    title = f"{len(own)} jobs; earned {console.number(earned)}"
    title = "; ".join((title, *(life["message"] for life in lives)))
    columns = console.headings("job", "phase", ">workers", ">done", "promised", ">utility", "")
    console.print_rows(columns, [_status_row(job) for job in document["jobs"]], title=title)


def summary(job: cluster.Found) -> dict[str, Any]:
    """Return phase, progress, promise, utility and reasons of one job, as plain data."""
    kind, item = job
    status = status_of(item, kind)
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    return {
        "job": name_of(item, kind),
        "controller": controller_of(item, kind),
        "phase": status.get("phase", "Pending"),
        "workers": status.get("workers", 0),
        "percent": (status.get("progress") or {}).get("percent", 0),
        "promised": status.get("promisedCompletion"),
        "completion_slot": status.get("completionSlot"),
        "utility": status.get("utility"),
        "late": conditions.get("Late", {}).get("status") == "True",
        "reasons": {side: c["reason"] for side, c in sorted(conditions.items())},
    }


def _status_row(job: Mapping[str, Any]) -> tuple[str, ...]:
    reasons, phase = job["reasons"], job["phase"]
    sides = {"Rejected": ["Admitted"], "Invalid": ["Valid"], "GivenUp": ["Complete"]}
    # A job that failed is Complete if its own processes did, which is no fault of ours.
    sides |= {"Failed": ["Complete", "Valid"], "Completed": [], "Running": []}
    note = next((reasons[each] for each in sides.get(phase, ["Placed"]) if each in reasons), "")
    state = reasons.get("Stalled") or reasons.get("PolicyState", "")
    return (
        job["job"],
        phase,
        str(job["workers"]),
        f"{job['percent']}%",
        job["promised"] or "-",
        console.number(job["utility"]),
        " ".join(part for part in (note, state, "late" if job["late"] else "") if part),
    )


def explain(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="As `status` prints it, or the name alone."),
    ],
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the jobs. [default: default]"),
    ] = None,
    place: cluster.ClusterOptions,
    as_json: AsJson = False,
) -> None:
    """Say why a job waits, runs, was rejected or displaced, and what would change that.

    Example: oasis kubernetes explain research/training
    """
    job_name, objects = named_job(name, namespace), place.connect()
    present = cluster.jobs_of(objects, job_name.partition("/")[0])
    job = next((each for each in present if name_of(each[1], each[0]) == job_name), None)
    if job is None:
        expected = "expected a job that `oasis kubernetes status` lists"
        raise oasis.InputError("NAME", expected, job_name)
    explanation, about = explained(job), summary(job)
    if as_json:
        console.print_json(about | {"explanation": explanation})
        return
    facts = [(entry["reason"], entry["message"]) for entry in explanation]
    facts += [("what to do", entry["advice"]) for entry in explanation if entry["advice"]]
    if not facts:
        life = cluster.sign_of_life(objects, about["controller"] or f"{SYSTEM}/{FIELD_MANAGER}")
        facts = [("nothing yet", f"no controller has read it: {life['message']}")]
    console.print_facts(f"{job_name} is {about['phase']}", facts)


def named_job(name: str, namespace: str | None) -> str:
    """Return the name of a job as `status` prints it: with its namespace, and kind if given."""
    where, *parts = name.split("/") if "/" in name else (namespace or "default", name)
    if len(parts) > 2 or not all((where, *parts)):
        raise oasis.InputError("NAME", "expected name, namespace/name or namespace/kind/name", name)
    if namespace is not None and where != namespace:
        raise oasis.InputError("--namespace", f"expected {where}, as NAME says, or none", namespace)
    if parts[0] == KIND.lower() and len(parts) > 1:  # which `status` leaves out
        del parts[0]
    return "/".join((where, *parts))


def explained(job: cluster.Found) -> list[dict[str, Any]]:
    """Return the conditions of a job with advice for its owner, the latest change first."""
    file = Path(__file__).with_name("advice.json")  # to owners of jobs, by reason
    advice = json.loads(file.read_text(encoding="utf-8"))
    conditions = status_of(job[1], job[0]).get("conditions") or ()
    return [
        {
            **{name: entry[name] for name in ("type", "reason", "message")},
            "since": entry["lastTransitionTime"],
            "advice": advice.get(entry["reason"]),
        }
        for entry in sorted(conditions, key=lambda c: c["lastTransitionTime"], reverse=True)
    ]


def plan(
    *,
    jobs: cluster.JobNamespace = None,
    of: cluster.ControllerOptions,
    place: cluster.ClusterOptions,
    delivery: Delivery,
) -> None:
    """Show which jobs are planned where in the next slots: one row per job, one column per slot.

    A cell such as 3+1 is three workers and one parameter server. The plan is that of the last
    boundary; recourse may make another one at the next.

    Example: oasis kubernetes plan --plot plan.svg
    """
    own, _ = cluster.of_controller(cluster.jobs_of(place.connect(), jobs), of.namespace, of.name)
    plans = ((name_of(item, kind), status_of(item, kind).get("plan")) for kind, item in own)
    document = {"jobs": [{"job": name, "plan": plan} for name, plan in plans if plan]}
    delivery(
        document,
        lambda: _show_plan(document),
        lambda: pages().schedule.plot_cluster_plan(document["jobs"]),
    )


def _show_plan(document: Mapping[str, Any]) -> None:
    slots = sorted({entry["slot"] for job in document["jobs"] for entry in job["plan"]})
    rows = []
    for job in document["jobs"]:
        cells = {entry["slot"]: _cell(entry) for entry in job["plan"]}
        nodes = sorted({node for entry in job["plan"] for node in entry.get("workers", {})})
        rows.append((job["job"], *(cells.get(slot, "") for slot in slots), ", ".join(nodes)))
    columns = console.headings("job", *(f">slot {slot}" for slot in slots), "worker nodes")
    console.print_rows(columns, rows, title=f"{len(rows)} jobs are planned")


def _cell(entry: Mapping[str, Any]) -> str:
    workers = sum(entry.get("workers", {}).values())
    servers = sum(entry.get("parameterServers", {}).values())
    return f"{workers}+{servers}" if servers else str(workers)


def quote(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.yaml", help="An OasisJob.", show_default=False)
    ],
    *,
    gpu: cluster.Gpu = cluster.GPU,
    of: cluster.ControllerOptions,
    place: cluster.ClusterOptions,
    as_json: AsJson = False,
) -> None:
    """Say what would happen to a job, and to the others, if it were submitted now.

    Nothing is changed: a copy of the controller's state answers. Only OASiS and recourse plan ahead
    and can answer.

    Example: oasis kubernetes quote job.yaml
    """
    item = read_object(file)
    objects = place.connect()
    memory, clock = cluster.memory_of(objects, of.namespace, of.one)
    with located_at(source=file):
        spec = parse_job(item, clock, cluster.resources_of(gpu))
    nodes, _ = objects.list_all(NODES)
    spec = Admission(places_of(nodes, None), nodes).on_admitting(spec, ())
    policy = planner_of(memory)
    # A job that is submitted now is decided on at the next boundary.
    now = max(clock.slot(time.time()) + 1, memory["driver"]["slot"])
    with located_at(source=file):
        quote = policy.foresee(replace(spec.job, arrival=now), now)
    if as_json:
        console.print_json(quote.to_dict())
        return
    decision, completes, facts = quote.decision, None, []
    if decision.completion is not None:
        completes = time_text(clock.begin(decision.completion + 1))
        facts.append(("completes", f"by {completes}, in slot {decision.completion}"))
    word = "because" if decision.admitted else reason_word(decision.reason or "")
    facts.append((word, decision_message(decision, decision.reason or "", completes)))
    console.print_facts(verdict(spec.id, decision), [*facts, *effects(quote.change)])


def read_object(file: Path) -> dict[str, Any]:
    """Read the OasisJob in a YAML or JSON file; its uid and generation are placeholders."""
    import yaml  # noqa: PLC0415 (needs an extra)

    with located_at(source=file):
        try:
            item = yaml.safe_load(read_content(file))
        except yaml.YAMLError as error:
            raise oasis.InputError("", f"expected YAML: {error}") from None
        if not isinstance(item, dict) or item.get("kind") != KIND:
            raise oasis.InputError("kind", f"expected {KIND} of {API_VERSION}")
        meta = item.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            raise oasis.InputError("metadata.name", "expected a name")
    # What the API server gives is not taken from a file, where it may be anything.
    item["metadata"] = {"namespace": "default", **meta, "uid": "quoted", "generation": 1}
    return item


def planner_of(memory: dict[str, Any]) -> Planner:
    """Return the policy restored from a checkpoint; raise if it cannot give quotes."""
    making = memory["making"]
    silent = f"policy {memory['policy']} gives no quotes"
    if making is None or making.get("lookahead") is None:
        expected = "oasis and recourse without --horizon do, unless their rule is of one's own"
        raise oasis.InputError(silent, f"it does not plan ahead, as {expected}")
    if memory["state"] is None:  # it failed before it decided on anything
        raise oasis.InputError(silent, "the controller remembers no decision of it")
    return remembered(memory["policy"], making, memory["cluster"], memory["state"])
