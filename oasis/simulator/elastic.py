"""Files of elastic jobs: the reader, and the schema (docs/simulator)."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, make_dataclass, replace
from importlib.resources import files
from typing import Any, ClassVar

from oasis.model.cluster import Server
from oasis.model.document import list_of, real
from oasis.model.errors import InputError, InstanceError, located_at
from oasis.model.file_kinds import ELASTIC
from oasis.model.forms import (
    ANY_MACHINE,
    REQUIREMENT,
    InForms,
    Speeds,
)
from oasis.model.groups import GROUPS
from oasis.model.instance_file import file_schema, read_json
from oasis.model.records import (
    AMOUNTS,
    Either,
    Fixed,
    Flag,
    Kind,
    ListOf,
    Number,
    RecordOf,
    Text,
    Whole,
    check,
    entry,
    object_schema,
    parse,
)
from oasis.model.resources import check_known
from oasis.model.utility import UTILITY
from oasis.model.validation import (
    LARGEST_AMOUNT,
    LARGEST_COUNT,
    check_unique,
    integer,
)
from oasis.scheduling.job import (
    PolicyJob,
    TrainingCurve,
    Unvalued,
)
from oasis.scheduling.site import Machine, Site, grid_for
from oasis.simulator.costs import TIME, ChangeCosts
from oasis.simulator.observation import Observation
from oasis.simulator.speed import (
    Communication,
    CpuSharing,
    Linear,
    ScalingTable,
    TrainingSpeed,
)
from oasis.simulator.workload import Workload

FORMAT, VERSION = "oasis-elastic-workload", 1
FACTS: Mapping[str, Any] = tomllib.loads(  # the fields of each record
    files("oasis.simulator").joinpath("elastic.toml").read_text("utf-8")
)


@dataclass(frozen=True, slots=True)
class WorkerRange:
    """Fewest and most workers of an elastic job, and the number at its start."""

    min: int = entry(Whole(1))
    max: int = entry(Whole(1))
    initial: int | None = entry(Whole(1), default=None)

    def __post_init__(self) -> None:
        check(self)
        integer(self.max, "max", minimum=self.min)
        if self.initial is not None:
            integer(self.initial, "initial", minimum=self.min, maximum=self.max)


@dataclass(frozen=True, slots=True)
class _Curve(Kind):
    """Accepts a `TrainingCurve`, given as a list of [share, value] points."""

    def parse(self, data: Any) -> TrainingCurve:
        points = list_of(list_of(real))(data)
        for k, point in enumerate(points):
            if len(point) != 2:
                raise InstanceError(f"[{k}]", "expected [share, value]", list(point))
        try:
            return TrainingCurve(tuple((share, value) for share, value in points))
        except InputError as error:
            raise InstanceError("", error.detail) from None

    def body(self) -> dict[str, Any]:
        point = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
        return {"type": "array", "items": point}


FILLED = "expected at least one entry"
NUMBER, LIMIT = Number(), Number(above=True)
KINDS: dict[str, Kind] = {
    **{"text": Text(), "time": TIME, "number": NUMBER, "limit": LIMIT, "flag": Flag()},
    **{"span": Number(above=True, maximum=LARGEST_COUNT), "size": Number(maximum=LARGEST_AMOUNT)},
    **{"workers": Either(Whole(1), WorkerRange), "share": Number(maximum=1.0)},
    **{"amounts": AMOUNTS, "labels": REQUIREMENT, "utility": UTILITY, "restart": Fixed("restart")},
    **{"speedup": ListOf(LIMIT), "curve": _Curve(), "names": ListOf(Text(), FILLED, unique=True)},
    **{"format": Fixed(FORMAT), "version": Fixed(VERSION), "speeds": RecordOf(Speeds)},
    **{"costs": RecordOf(ChangeCosts), "observation": RecordOf(Observation)},
}
SEEN = ("id", "arrival", "work", "worker_cpu", "ps_cpu", "gradient_mb", "curve")  # as they are
EMPTY: Mapping[str, Any] = {"labels": ANY_MACHINE, "forms": ()}  # defaults that TOML cannot say


def _record(name: str, facts: Mapping[str, Any], *bases: type) -> Any:
    """Make the dataclass that checks these fields, from their descriptions in `facts`."""
    fields = []
    for each, fact in facts.items():
        default = EMPTY.get(fact["kind"], fact.get("default", MISSING))
        default = None if fact.get("optional") else default
        fields.append((each, Any, entry(KINDS[fact["kind"]], fact["doc"], default)))
    space: dict[str, Any] = {} if bases else {"__post_init__": check}
    space["__module__"] = __name__  # or it could not be pickled
    return make_dataclass(name, fields, bases=bases, namespace=space, frozen=True, slots=True)


IN_A_FORM = {
    name: {"kind": fact["kind"], "doc": fact["form"], "optional": True}
    for name, fact in FACTS["job"].items()
    if "form" in fact
}
MachineEntry: Any = _record("MachineEntry", FACTS["machine"], Server)
ServerShare: Any = _record("ServerShare", FACTS["share"])
KINDS["servers"] = Either(Whole(), ServerShare)
FormEntry: Any = _record("FormEntry", IN_A_FORM)
KINDS["forms"] = ListOf(RecordOf(FormEntry, named="form"))
_Job: Any = _record("_Job", FACTS["job"], InForms)


@dataclass(frozen=True, slots=True)
class JobEntry(_Job):  # type: ignore[misc]
    """A job of a file of elastic jobs."""

    PACED: ClassVar = ("work", "step_seconds")
    _in_forms: tuple[JobEntry, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(self)
        if self._make_forms(switch=None):
            return
        if self.switch is not None:
            raise InstanceError("switch", "expected forms or speeds beside it")
        if self.gradient_mb and not self.step_seconds:
            expected = "expected a number > 0 where there are gradients"
            raise InstanceError("step_seconds", expected)

    def policy_job(self, site: Site) -> PolicyJob:
        """Return the job with all facts on the machines of `site`."""
        if len(self.in_forms) > 1:
            forms = tuple(form.policy_job(site) for form in self.in_forms)
            whole: PolicyJob = replace(forms[0], forms=forms, may_switch=self.switch is not None)
            return whole
        (job,) = self.in_forms
        n, ps = job.workers, job.parameter_servers
        span = n if isinstance(n, WorkerRange) else WorkerRange(n, n, n)
        worker, servers = (site.demand(job, group) for group in GROUPS)
        return PolicyJob(
            **{name: getattr(job, name) for name in SEEN},
            worker=worker,
            ps=servers,
            min_workers=span.min,
            initial_workers=span.initial,
            max_workers=span.max,
            ps_per_worker=ps.per_worker if isinstance(ps, ServerShare) else 0.0,
            fixed_ps=None if isinstance(ps, ServerShare) else ps,
            step_time=job.step_seconds,
            speedup=job.speedup or (),
            utility=job.utility or Unvalued(),
        )


KINDS["machines"] = ListOf(RecordOf(MachineEntry, named="machine"), FILLED)
KINDS["jobs"] = ListOf(RecordOf(JobEntry, named="job"), FILLED)
_File: Any = _record("_File", FACTS["file"], object)


@dataclass(frozen=True, slots=True)
class ElasticFile(_File):  # type: ignore[misc]
    """The content of a file of elastic jobs."""

    def __post_init__(self) -> None:
        check(self)
        check_unique(self.resources, "resources", "resource")
        for k, machine in enumerate(self.machines):
            with located_at(f"machines[{k}].capacity"):
                check_known(machine.capacity, self.resources)
        for k, job in enumerate(self.jobs):
            for path, form in job.located_forms():
                for group, amounts in zip(GROUPS, (form.worker, form.ps or {}), strict=True):
                    with located_at(f"jobs[{k}]"), located_at(path), located_at(group):
                        check_known(amounts, self.resources)
        check_unique((job.id for job in self.jobs), "jobs", "id", ".id")


def elastic_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file of elastic jobs.

    Whatever it refuses, `oasis.simulator.read_elastic` refuses too; the reverse does not hold.

    Examples
    --------
    >>> from oasis.simulator.elastic import elastic_schema
    >>> elastic_schema()["required"]
    ['format', 'version', 'resources', 'machines', 'jobs']
    """
    return file_schema(
        "OASiS workload of elastic jobs",
        "Jobs that may be resized while they train, the machines they share, and what resizing "
        "costs them; times in seconds. What a schema cannot say is checked by "
        "oasis.simulator.read_elastic.",
        object_schema(ElasticFile),
        {
            "machine": object_schema(MachineEntry),
            "job": object_schema(JobEntry),
            "form": object_schema(FormEntry),
        },
    )


def read_elastic(path: str | os.PathLike[str]) -> Workload:
    """Read a file of elastic jobs.

    Raises
    ------
    InstanceError
        If the file is no such workload; names the field and what was expected there.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from baselines import FIFO
    >>> from oasis.model.examples import example_text
    >>> from oasis.simulator import replay
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "elastic.json")
    ...     _ = path.write_text(example_text("elastic"))
    ...     made = read_elastic(path)
    >>> len(replay(made, FIFO()).completions)
    12
    """
    return elastic_from_dict(read_json(path, (ELASTIC,), "a workload of elastic jobs"))


def elastic_from_dict(data: Any) -> Workload:
    """Build a workload from the plain data of a file of elastic jobs.

    Raises
    ------
    InstanceError
        If the data is no such workload; names the field and what was expected there.

    Examples
    --------
    >>> import json
    >>> from oasis.model.examples import example_text
    >>> data = json.loads(example_text("elastic"))
    >>> len(elastic_from_dict(data).jobs)
    12
    >>> elastic_from_dict(data | {"version": 2})
    Traceback (most recent call last):
    oasis.model.errors.InstanceError: version: expected 1, got 2
    """
    parsed = parse(ElasticFile, data)
    named = [(name, machine) for machine in parsed.machines for name in machine.ids]
    check_unique((name for name, _ in named), "machines", "id", ".id")
    forms = [form for job in parsed.jobs for form in job.in_forms]
    rows = [machine.capacity for machine in parsed.machines]
    rows += [amounts for form in forms for amounts in (form.worker, form.ps or {})]
    # One grid for all machines and demands: amounts then add up exactly, in any order.
    grid = grid_for(amount for row in rows for amount in row.values())
    machines = tuple(
        Machine(
            name,
            tuple(machine.capacity.get(resource, 0.0) for resource in parsed.resources),
            grid=grid,
            cpu_cores=machine.cpu_cores or math.inf,
            link_gbps=machine.link_gbps or math.inf,
            labels=machine.labels,
        )
        for name, machine in named
    )
    site = Site(parsed.resources, machines, partial_gangs=parsed.partial_gangs)
    tables = {job.id: job.speedup for job in parsed.jobs if job.speedup}
    # A part without effect would only slow the simulation down: speeds would depend on neighbours.
    linked = any(one.link_gbps for one in parsed.machines) and any(one.gradient_mb for one in forms)
    shared = any(one.cpu_cores for one in parsed.machines)
    loss = parsed.crowding_loss
    return replace(
        Workload.of(site, [job.policy_job(site) for job in parsed.jobs]),
        speed=TrainingSpeed(
            ScalingTable(tables, sharing=loss) if tables or loss else Linear(),
            Communication(parsed.share_links) if linked else None,
            CpuSharing() if shared and any(one.worker_cpu or one.ps_cpu for one in forms) else None,
        ),
        costs=parsed.costs or ChangeCosts(),
        observation=parsed.observation,
    )
