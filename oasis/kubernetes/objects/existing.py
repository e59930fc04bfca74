"""From a Job, a JobSet or a TrainJob to the job that a policy plans with."""

from __future__ import annotations

import json
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.objects.existing_kinds import (
    NOTES,
    ExistingKind,
    Object,
    content_version,
    tasks_of,
)
from oasis.kubernetes.objects.oasis_job import (
    DEFAULT_GRACE,
    ON_REJECTION,
    Clock,
    JobSpec,
    choice,
    demands_of,
    job_id,
    parse_utility,
    parse_work,
)
from oasis.kubernetes.objects.quantities import ResourceMap, requests_of
from oasis.model.errors import InstanceError
from oasis.model.job import Job
from oasis.model.validation import describe, integer

DIGITS = 16  # of the largest count


def parse_existing(
    found: Object, kind: ExistingKind, clock: Clock, resources: ResourceMap
) -> JobSpec:
    """Read an object of another kind than ours.

    It is a gang of as many workers as its templates say. A Job with the annotations
    `names.MINIMUM` and `names.MAXIMUM` may run with any number between them; its pods are all begun
    anew when that changes.

    Parameters
    ----------
    found : mapping
        The object.
    kind : ExistingKind
        What it is.
    clock : Clock
        Turns seconds into slots.
    resources : ResourceMap
        Turns requests into demands.

    Raises
    ------
    InstanceError
        Naming the annotation or the field, and what was expected there.
    """
    meta = found["metadata"]
    notes = meta.get("annotations") or {}
    workers, servers = tasks_of(kind.parts(found), notes)
    minimum, maximum = _range(kind, found, workers.count)
    asked = requests_of(workers.template["spec"], f"{workers.path}.spec")
    ps_asked = (
        {} if servers is None else requests_of(servers.template["spec"], f"{servers.path}.spec")
    )
    worker, ps = demands_of(asked, ps_asked, resources, has_ps=servers is not None)
    place = f"{NOTES}.{names.UTILITY}"
    utility = parse_utility(_json(notes, names.UTILITY), clock, place)
    place = f"{NOTES}.{names.WORK}"
    work = parse_work(_json(notes, names.WORK), maximum, clock, place)
    grace = workers.template["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    return JobSpec(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        generation=content_version(found, kind),
        job=Job(
            id=job_id(kind.name, meta["namespace"], meta["name"]),
            arrival=0,
            chunks=maximum,
            worker=worker,
            ps=ps,
            utility=utility,
            min_workers=minimum,
            **work,
        ),
        initial_workers=None,
        worker=workers.template,
        ps=None if servers is None else servers.template,
        worker_requests=asked,
        ps_requests=ps_asked,
        resize="restart",
        grace_seconds=int(grace),
        on_rejection=choice(
            notes.get(names.ON_REJECTION, "fail"), ON_REJECTION, f"{NOTES}.{names.ON_REJECTION}"
        ),
        kind=kind.name,
        fixed_ps=None if servers is None else servers.count,
        part_names=(workers.name, None if servers is None else servers.name),
    )


def _range(kind: ExistingKind, found: Object, count: int) -> tuple[int, int]:
    """Fewest and most workers."""
    notes = found["metadata"].get("annotations") or {}
    given = [name for name in (names.MINIMUM, names.MAXIMUM) if name in notes]
    if not given:
        return count, count
    path = f"{NOTES}.{given[0]}"
    if not kind.elastic:
        raise InstanceError(path, f"expected none: a {kind.name} cannot be resized")
    if len(given) == 1:
        raise InstanceError(path, f"expected both of {names.MINIMUM} and {names.MAXIMUM}")
    if found["spec"].get("completions") is not None:
        expected = "expected none for a Job that may be resized: its pods begin anew"
        raise InstanceError("spec.completions", expected)
    bounds = []
    for name in given:
        text = notes[name]
        value: Any = int(text) if text.isdecimal() and len(text) <= DIGITS else text
        bounds.append(integer(value, f"{NOTES}.{name}", minimum=1))
    if bounds[0] > bounds[1]:
        expected = f"expected at most {bounds[1]}, the maximum, got {bounds[0]}"
        raise InstanceError(f"{NOTES}.{names.MINIMUM}", expected)
    return bounds[0], bounds[1]


def _json(notes: Object, name: str) -> Any:
    text = notes.get(name)
    path = f"{NOTES}.{name}"
    if text is None:
        raise InstanceError(path, "expected JSON, found nothing")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstanceError(path, f"expected JSON, got {describe(text)}: {error}") from None
