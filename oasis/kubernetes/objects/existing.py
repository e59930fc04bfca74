"""From a Job, a JobSet, a TrainJob or a Workload to the job that a policy plans with."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import ResourceKind
from oasis.kubernetes.objects.conditions import read_status, said
from oasis.kubernetes.objects.network import PodNetwork
from oasis.kubernetes.objects.oasis_job import (
    DEFAULT_GRACE,
    JobSpec,
    SlotClock,
    job_id,
    job_spec,
    parse_job,
    parse_utility,
)
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.kubernetes.objects.schema import checked, schema_of
from oasis.kubernetes.objects.workload import (
    API_VERSION,
    POD_SET,
    WORKLOADS,
    key_of,
    read_workloads,
)
from oasis.model.errors import InstanceError, describe, located_at
from oasis.model.groups import GROUPS
from oasis.model.validation import integer

log = logging.getLogger("oasis.kubernetes")

Object = Mapping[str, Any]
ByPlural = Mapping[str, Iterable[Object]]  # objects by plural of their kind
NOTES = "metadata.annotations"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"  # on the pods of a JobSet
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
SELECTOR = f"{names.SCHEDULED}=true"


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one template of an object: their number and their template."""

    name: str  # of the replicated job; empty where there is only one template
    count: int  # how many there are at a time
    completions: int  # how many have to succeed
    template: Object
    path: str  # its place in the object, for messages


@dataclass(frozen=True, slots=True)
class ExistingKind:
    """A kind of object whose own controller creates the pods."""

    name: str
    api_version: str
    where: ResourceKind
    parts: Callable[[Object], list[PodSet]]  # the templates of an object
    ends: tuple[str, str]  # types of the conditions that say that it is complete, that it failed


def _job_parts(item: Object) -> list[PodSet]:
    spec = item["spec"]
    count = int(spec.get("parallelism", 1))
    completions = int(spec.get("completions") or count)
    return [PodSet("", count, completions, spec["template"], "spec.template")]


def _jobset_parts(item: Object, of: str = "") -> list[PodSet]:
    parts = []
    for k, entry in enumerate(item["spec"].get("replicatedJobs") or ()):
        job = entry["template"]["spec"]
        replicas, each = int(entry.get("replicas", 1)), int(job.get("parallelism", 1))
        completions = replicas * int(job.get("completions") or each)
        path = f"{of}spec.replicatedJobs[{k}].template.spec.template"
        parts.append(PodSet(entry["name"], replicas * each, completions, job["template"], path))
    return parts


def _workload_parts(item: Object) -> list[PodSet]:
    return [
        PodSet(part["name"], int(part["count"]), int(part["count"]), part["template"], path)
        for k, part in enumerate(item["spec"]["podSets"])
        for path in (f"spec.podSets[{k}].template",)
    ]


def _kind(name: str, version: str, selector: str | None, *rest: Any) -> ExistingKind:
    plural = f"{name.lower()}s"
    where = ResourceKind(f"/apis/{version}", plural, selector=selector, optional=True)
    return ExistingKind(name, version, where, *rest)


JOB = _kind("Job", "batch/v1", SELECTOR, _job_parts, ("Complete", "Failed"))
# All JobSets are watched, because those that the Trainer makes have no label of ours.
JOBSET = _kind("JobSet", "jobset.x-k8s.io/v1alpha2", None, _jobset_parts, ("Completed", "Failed"))
TRAINJOB = _kind(
    *("TrainJob", "trainer.kubeflow.org/v1alpha1", SELECTOR),
    *(partial(_jobset_parts, of="its JobSet, "), ("Complete", "Failed")),
)
WORKLOAD = ExistingKind("Workload", API_VERSION, WORKLOADS, _workload_parts, ("Finished", "Failed"))
Job = tuple[ExistingKind | None, Object]  # one to schedule; kind None: an ``OasisJob``
EXISTING = (JOB, JOBSET, TRAINJOB, WORKLOAD)
BY_PLURAL = {kind.where.plural: kind for kind in EXISTING}
BY_NAME = {kind.name: kind for kind in EXISTING}
CHILDREN_OF = frozenset({JOBSET.name, TRAINJOB.name})  # these make objects of the kinds above


def _parent_of(item: Object) -> str | None:
    """Return the uid of the JobSet or TrainJob that controls an object; None if there is none."""
    # Such a child may carry our label because its parent's template does.
    for owner in item["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") in CHILDREN_OF:
            return str(owner["uid"])
    return None


def _labelled(seen: ByPlural, kind: ExistingKind) -> list[Object]:
    """Return the objects of a kind to schedule as jobs; a TrainJob has the parts of its JobSet."""
    # Counts and templates of a TrainJob come from its runtime, and from what it patches there: the
    # result is the JobSet of its name that the Trainer makes, suspended as the TrainJob is.
    items = [
        item
        for item in seen.get(kind.where.plural, ())
        if (item["metadata"].get("labels") or {}).get(names.SCHEDULED) == "true"
        and _parent_of(item) is None
    ]
    if kind is not TRAINJOB or not items:
        return items
    made, whole = seen.get(JOBSET.where.plural, ()), list[Object]()
    job_sets = {(*key_of(each["metadata"]), _parent_of(each)): each["spec"] for each in made}
    for item in items:
        meta = item["metadata"]
        parts = job_sets.get((*key_of(meta), meta["uid"]), {}).get("replicatedJobs")
        whole.append({**item, "spec": {**item["spec"], "replicatedJobs": parts}})
    return whole


def job_items(seen: ByPlural) -> list[Job]:
    """Return all jobs to schedule as pairs of kind and object; kind None: an ``OasisJob``."""
    jobs: list[Job] = [(None, item) for item in seen.get(names.PLURAL, ())]
    jobs += [(kind, item) for kind in EXISTING[:-1] for item in _labelled(seen, kind)]
    # A Workload is known by our gate, because Kueue gives it no label.
    owners = {item["metadata"]["uid"] for kind, item in jobs if kind}
    return jobs + [(WORKLOAD, item) for item in read_workloads(seen, owners)]


def own_uid(meta: Object) -> str:
    """Return the uid of the object itself; ``uid`` of a Workload is that of its owner."""
    return str(meta.get("itself", meta["uid"]))


def name_of(item: Object, kind: ExistingKind | None) -> str:
    """Return ``namespace/name`` of an OasisJob, ``namespace/kind/name`` of other kinds."""
    return job_id(names.KIND if kind is None else kind.name, *key_of(item["metadata"]))


def status_of(item: Object, kind: ExistingKind | None) -> dict[str, Any]:
    """Return the status of an OasisJob, or that in the annotation of other kinds; or empty."""
    # Empty if there is none, or if the annotation is not one that we can have written.
    if kind is None:
        return item.get("status") or {}
    written = (item["metadata"].get("annotations") or {}).get(names.STATUS)
    return _noted_status(written, name_of(item, kind)) if written else {}


@lru_cache(maxsize=4096)
def _noted_status(written: str, job: str) -> dict[str, Any]:
    """Parse the status in an annotation; empty, with one warning, if it is not as we wrote it."""
    try:
        return read_status(written)
    except InstanceError as error:
        log.warning("%s: %s is not as we wrote it: %s", job, names.STATUS, error)
        return {}


def controller_of(item: Object, kind: ExistingKind | None) -> str | None:
    """Return the controller of a job as namespace/name; None if no controller has taken it."""
    status: Any = item.get("status") if kind is None else None
    if kind is not None:  # of another version, the rest of the status may be in another form
        try:
            status = json.loads((item["metadata"].get("annotations") or {}).get(names.STATUS, ""))
        except (ValueError, RecursionError):
            return None
    name = status.get("controller") if isinstance(status, Mapping) else None
    return name if isinstance(name, str) else None


def without_others(
    seen: Mapping[str, list[Any]], controller: str
) -> tuple[dict[str, list[Any]], dict[str, tuple[str, str]]]:
    """Return a snapshot without jobs of other controllers, and name and controller of those."""
    # The latter are, by uid of the job, its name and that of the other controller.
    kept, others = dict(seen), {}
    for plural, kind in ((names.PLURAL, None), *BY_PLURAL.items()):
        kept[plural] = []
        for item in seen.get(plural, ()):
            other = controller_of(item, kind)
            if other in (None, controller):
                kept[plural].append(item)
            else:
                others[item["metadata"]["uid"]] = name_of(item, kind), str(other)
    return kept, others


def is_suspended(item: Object) -> bool:
    """Return whether an object is suspended."""
    return bool(item["spec"].get("suspend"))


def queue_of(item: Object) -> str | None:
    """Return the Kueue queue that the label of an object names; None if it has none."""
    return (item["metadata"].get("labels") or {}).get(names.QUEUE)


def is_indexed(item: Object) -> bool:
    """Return whether each pod of a Job has an index, and with it a host name."""
    return bool(item["spec"].get("completionMode") == "Indexed")


def ended(item: Object, kind: ExistingKind) -> tuple[bool, str | None]:
    """Return whether an object is complete, and why it failed, or None if it did not fail."""
    complete, failed = (said(item, end) for end in kind.ends)
    if complete.get("status") == "True":
        return True, None
    if failed.get("status") != "True":
        return False, None
    why = ": ".join(part for part in (failed.get("reason"), failed.get("message")) if part)
    return False, f"its {kind.name} failed: {why}"


def part_of(pod: Object) -> str | None:
    """Return the name of the `PodSet` that a pod belongs to; None where there is only one."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get(POD_SET, labels.get(REPLICATED_JOB))


def tasks_of(kind: ExistingKind, item: Object) -> tuple[PodSet, PodSet | None]:
    """Return the templates of workers and of parameter servers; None without servers."""
    parts, notes = kind.parts(item), item["metadata"].get("annotations") or {}
    name = notes.get(names.SERVERS)
    servers = [part for part in parts if name is not None and part.name == name]
    workers = [part for part in parts if part not in servers]
    if name is not None and not servers:
        known = ", ".join(part.name for part in parts if part.name) or "none"
        expected = f"expected a replicated job of the object ({known}), got {describe(name)}"
        raise InstanceError(f"{NOTES}.{names.SERVERS}", expected)
    if len(workers) != 1:
        expected = f"expected one replicated job of workers beside it, got {len(workers)}"
        raise InstanceError(f"{NOTES}.{names.SERVERS}", expected)
    for part in (*workers, *servers):
        gates = [gate.get("name") for gate in part.template["spec"].get("schedulingGates") or ()]
        if names.GATE not in gates:
            path = f"{part.path}.spec.schedulingGates"
            raise InstanceError(path, f"expected the gate {names.GATE}", gates)
    if workers[0].count < 1:
        raise InstanceError(workers[0].path, f"expected at least one pod, got {workers[0].count}")
    return workers[0], servers[0] if servers else None


def version_of(item: Object, kind: ExistingKind | None) -> int:
    """Return a number that changes when the owner edits a job, not when the controller does."""
    if kind is None:
        return int(item["metadata"].get("generation", 1))
    # The generation of other kinds changes with `suspend`, which we write, so it tells no edit.
    notes = item["metadata"].get("annotations") or {}
    settings = {
        name: notes[name]
        for name in sorted(notes)
        if name.startswith(f"{names.GROUP}/") and name != names.STATUS
    }
    if (queue := queue_of(item)) is not None:
        settings[names.QUEUE] = queue
    # We set the parallelism of such a Job at each resume: a change of it is no edit.
    resized = names.MAXIMUM in notes
    parts = [
        [part.name, None if resized else part.count, part.template] for part in kind.parts(item)
    ]
    # `hash` of a text differs between processes, and a checkpoint compares this number.
    return zlib.crc32(json.dumps([settings, parts], sort_keys=True).encode())


DIGITS = 16  # of the largest count


def parse(
    item: Object, kind: ExistingKind | None, clock: SlotClock, resources: ResourceMap
) -> JobSpec:
    """Read a job of any kind; with `kind` None `item` is an ``OasisJob``. Errors name the field."""
    if kind is None:
        return parse_job(item, clock, resources)
    # It is a gang of as many workers as its templates say. A Job with the annotations
    # `names.MINIMUM` and `names.MAXIMUM` may run with any number between them; its pods are all
    # begun anew when that changes.
    meta = item["metadata"]
    notes = meta.get("annotations") or {}
    if (queue := queue_of(item)) is not None:
        expected = "expected none: Kueue would suspend what is resumed here, and is left to it "
        expected += f"(its Workload is scheduled here if it has no label {names.SCHEDULED})"
        raise InstanceError(f"metadata.labels.{names.QUEUE}", expected, queue)
    workers, servers = tasks_of(kind, item)
    minimum, maximum = _range(kind, item, workers.count)
    place, schema = f"{NOTES}.{names.UTILITY}", schema_of(names.KIND)["spec"]
    grace = workers.template["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    parts = zip(GROUPS, (workers, servers), strict=True)
    return job_spec(
        meta,
        {group: (part.template, part.path) for group, part in parts if part is not None},
        resources,
        clock,
        counts=(minimum, maximum),
        utility=parse_utility(_json(notes, names.UTILITY), clock, place),
        work=(f"{NOTES}.{names.WORK}", _json(notes, names.WORK)),
        generation=version_of(item, kind),
        initial_workers=None,
        resize="restart",
        grace_seconds=int(grace),
        on_rejection=_noted(notes, names.ON_REJECTION, schema, "onRejection"),
        kind=kind.name,
        ps_count=0 if servers is None else servers.count,
        part_names=(workers.name, None if servers is None else servers.name),
        network=_network(kind, item),
        utility_class=notes.get(names.UTILITY_CLASS),
    )


def _network(kind: ExistingKind, item: Object) -> PodNetwork | None:
    """Read from annotations how the pods find each other; None without annotation."""
    notes, spec = item["metadata"].get("annotations") or {}, item["spec"]
    if names.FRAMEWORK not in notes:
        return None
    schema = schema_of(names.KIND)["spec"]["properties"]["network"]
    framework = _noted(notes, names.FRAMEWORK, schema, "framework")
    if kind is JOB and not is_indexed(item):
        expected = f"expected Indexed, so that pods have names ({names.FRAMEWORK})"
        raise InstanceError("spec.completionMode", expected, spec.get("completionMode"))
    if kind is JOB and not spec["template"]["spec"].get("subdomain"):
        raise InstanceError("spec.template.spec.subdomain", "expected the name of its Service")
    return PodNetwork(framework, _noted(notes, names.PORT, schema, "port"))


def _noted(notes: Object, name: str, schema: Object, field: str) -> Any:
    """Return annotation `name`, checked as `field` of an ``OasisJob``; its default if missing."""
    schema = schema["properties"][field]
    with located_at(f"{NOTES}.{name}"):
        value = notes.get(name, schema["default"])
        return checked(schema, _count(str(value)) if schema["type"] == "integer" else value)


def _count(text: str) -> Any:
    """Parse the number in an annotation; other text is returned as it is, for the error message."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS else text


def _range(kind: ExistingKind, item: Object, count: int) -> tuple[int, int]:
    """Return the fewest and most workers by annotation; without annotations both are `count`."""
    notes = item["metadata"].get("annotations") or {}
    limits = [name for name in (names.MINIMUM, names.MAXIMUM) if name in notes]
    if not limits:
        return count, count
    path = f"{NOTES}.{limits[0]}"
    made_by = item["spec"].get("owner", {}).get("kind", kind.name)  # of a Workload
    if made_by != JOB.name:
        raise InstanceError(path, f"expected none: a {made_by} cannot be resized")
    if len(limits) == 1:
        raise InstanceError(path, f"expected both of {names.MINIMUM} and {names.MAXIMUM}")
    if kind is JOB:
        counts_of(item, count)
    least, most = (integer(_count(notes[n]), f"{NOTES}.{n}", minimum=1) for n in limits)
    if least > most:
        expected = f"expected at most {most}, the maximum, got {least}"
        raise InstanceError(f"{NOTES}.{names.MINIMUM}", expected)
    return least, most


def counts_of(job: Object, workers: int) -> dict[str, int]:
    """Return the spec fields that set the workers of a Job; raise if it cannot be resized."""
    count, completions = job["spec"].get("parallelism", 1), job["spec"].get("completions")
    if is_indexed(job):  # it can be resized if both change together
        if completions != count:
            expected = f"expected as many as spec.parallelism, {count}: both are resized"
            raise InstanceError("spec.completions", expected, completions)
        return {"parallelism": workers, "completions": workers}
    if completions is not None:
        expected = "expected none for a Job that may be resized: its pods begin anew"
        raise InstanceError("spec.completions", expected)
    return {"parallelism": workers}


def _json(notes: Object, name: str) -> Any:
    text = notes.get(name)
    path = f"{NOTES}.{name}"
    if text is None:
        expected = "expected JSON, or a UtilityClass that says it"
        raise InstanceError(path, f"{expected}; found nothing")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstanceError(path, f"expected JSON, got {describe(text)}: {error}") from None
