"""Workloads of elastic jobs: reading, writing, the schema, and from traces (docs/simulator)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from oasis.model.errors import InputError, InstanceError, describe, located_at
from oasis.model.file_kinds import ELASTIC
from oasis.model.files import write_text
from oasis.model.instance_file import UTILITIES, packaged_schema, read_json
from oasis.model.summary import Facts, Summarised
from oasis.model.utility import Utility
from oasis.model.validation import (
    LARGEST_COUNT,
    LARGEST_SIZE,
    amount,
    check_keys,
    check_list,
    check_unique,
    integer,
    number,
    text,
)
from oasis.scheduling.job import ByBandwidth, FixedPs, PolicyJob, PsRule, TrainingCurve, Unvalued
from oasis.scheduling.site import Machine, Site, demand_on, grid_for
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.observation import Observation
from oasis.simulator.speed import (
    Communication,
    CpuSharing,
    Linear,
    ScalingTable,
    Speed,
    TrainingSpeed,
)
from oasis.simulator.workload import Workload
from oasis.traces.mapping import MachineOptions
from oasis.traces.window import JobRecord, Window


@dataclass(frozen=True, slots=True, repr=False)
class ElasticWorkload(Summarised):
    """Elastic jobs on machines, with all that decides how fast they train; times in seconds.

    Parameters
    ----------
    workload : Workload
        The machines and the jobs.
    speed : Speed
        How fast the jobs work.
    costs : ChangeCosts
        What changes cost them.
    observation : Observation or None
        How their training is looked at.
    document : mapping
        The plain data of the file that all this was made from.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import generate_elastic, replay
    >>> made = generate_elastic(jobs=3, seed=1)
    >>> len(replay(made.workload, FIFO(), **made.options).completions)
    3
    """

    workload: Workload
    speed: Speed
    costs: ChangeCosts
    observation: Observation | None
    document: Mapping[str, Any] = field(repr=False, compare=False)

    def summary(self) -> tuple[str, Facts]:
        """Jobs, machines and resources; and the speed model."""
        _, said = self.workload.summary()
        return "ElasticWorkload", [*said, ("speed", type(self.speed).__name__)]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `replay` and `Engine` that are part of the workload."""
        return {"speed": self.speed, "costs": self.costs, "observation": self.observation}


def elastic_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file of elastic jobs.

    Whatever it refuses, `oasis.simulator.read_elastic` refuses too; the reverse does not hold.

    Examples
    --------
    >>> from oasis.simulator.elastic import elastic_schema
    >>> elastic_schema()["required"]
    ['format', 'version', 'resources', 'machines', 'jobs']
    """
    return packaged_schema("oasis.simulator", "elastic")


FORMAT, VERSION = "oasis-elastic-workload", 1
TOP = ("format", "version", "resources", "machines", "jobs")
COSTS = ("start", "resume", "resize", "migrate", "save", "checkpoint_interval")
JOB = ("id", "arrival", "work", "workers", "worker")
JOB_MORE = (
    *("ps", "parameter_servers", "worker_cpu", "ps_cpu", "gradient_mb", "step_seconds"),
    *("speedup", "curve", "utility"),
)

Amounts = dict[str, float]


def read_elastic(path: str | os.PathLike[str]) -> ElasticWorkload:
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
    >>> from oasis.simulator import generate_elastic
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_elastic(generate_elastic(jobs=3, seed=1), f"{directory}/jobs.json")
    ...     made = read_elastic(f"{directory}/jobs.json")
    >>> [job.id for job in made.workload.jobs]
    ['j0-inception-v3', 'j1-resnet-50', 'j2-alexnet']
    """
    return elastic_from_dict(read_json(path, (ELASTIC,), "a workload of elastic jobs"))


def write_elastic(made: ElasticWorkload, path: str | os.PathLike[str]) -> None:
    """Write `made` so that `read_elastic` gives the same; the file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from oasis.simulator import generate_elastic
    >>> made = generate_elastic(jobs=3, seed=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_elastic(made, f"{directory}/jobs.json")
    ...     print(read_elastic(f"{directory}/jobs.json").document == made.document)
    True
    """
    if not isinstance(made, ElasticWorkload):
        hint = "; the workload comes first" if isinstance(path, ElasticWorkload) else ""
        expected = "expected an oasis.simulator.ElasticWorkload"
        raise TypeError(f"made: {expected}, got {describe(made)}{hint}")
    write_text(path, json.dumps(made.document, indent=1, allow_nan=False) + "\n")


def elastic_from_dict(data: Any) -> ElasticWorkload:
    """Build a workload from the plain data of a file of elastic jobs.

    Raises
    ------
    InstanceError
        If the data is no such workload; names the field and what was expected there.

    Examples
    --------
    >>> from oasis.simulator import generate_elastic
    >>> data = dict(generate_elastic(jobs=3, seed=1).document)
    >>> len(elastic_from_dict(data).workload.jobs)
    3
    >>> elastic_from_dict(data | {"version": 2})
    Traceback (most recent call last):
    oasis.model.errors.InstanceError: version: expected 1, got 2
    """
    check_keys(data, TOP, ("partial_gangs", "share_links", "costs", "observation"))
    if data["format"] != FORMAT:
        raise InstanceError("format", f"expected {FORMAT!r}", data["format"])
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise InstanceError("version", f"expected {VERSION}", data["version"])
    resources = tuple(
        text(name, f"resources[{k}]") for k, name in enumerate(_filled(data, "resources"))
    )
    check_unique(resources, "resources", "resource")
    machines = [
        entry
        for k, machine in enumerate(_filled(data, "machines"))
        for entry in _machine(machine, f"machines[{k}]", resources)
    ]
    check_unique((machine["id"] for machine in machines), "machines", "id", ".id")
    jobs = []
    for k, entry in enumerate(_filled(data, "jobs")):
        with located_at(f"jobs[{k}]"):
            jobs.append(_job(entry, resources))
    check_unique((job["id"] for job in jobs), "jobs", "id", ".id")
    return ElasticWorkload(
        _workload(resources, machines, jobs, _flag(data, "partial_gangs", True)),
        _speed(machines, jobs, _flag(data, "share_links", False)),
        _costs(data.get("costs", {})),
        _observation(data["observation"]) if "observation" in data else None,
        data,
    )


def _workload(
    resources: Sequence[str], machines: list[Any], jobs: list[Any], partial: bool
) -> Workload:
    rows = [machine["capacity"] for machine in machines]
    rows += [job[group] for job in jobs for group in ("worker", "ps")]
    grid = grid_for(amount for row in rows for amount in row.values())
    site = Site(
        tuple(resources),
        tuple(
            Machine(
                machine["id"],
                tuple(machine["capacity"].get(name, 0.0) for name in resources),
                grid=grid,
                cpu_cores=machine["cpu_cores"],
                link_gbps=machine["link_gbps"],
            )
            for machine in machines
        ),
        partial_gangs=partial,
    )
    return Workload.of(
        site,
        [
            PolicyJob(
                worker=demand_on(grid, job["worker"], resources),
                ps=demand_on(grid, job["ps"], resources),
                **{k: v for k, v in job.items() if k not in ("worker", "ps", "speedup")},
            )
            for job in jobs
        ],
    )


def _speed(machines: list[Any], jobs: list[Any], share_links: bool) -> TrainingSpeed:
    """What the file asks for, without the parts that change nothing."""
    tables = {job["id"]: job["speedup"] for job in jobs if job["speedup"]}
    shared = any(math.isfinite(machine["cpu_cores"]) for machine in machines)
    linked = any(math.isfinite(machine["link_gbps"]) for machine in machines)
    return TrainingSpeed(
        ScalingTable(tables) if tables else Linear(),
        Communication(share_links) if linked and any(job["gradient_mb"] for job in jobs) else None,
        CpuSharing()
        if shared and any(job["worker_cpu"] or job["ps_cpu"] for job in jobs)
        else None,
    )


def _machine(data: Any, path: str, resources: Sequence[str]) -> list[dict[str, Any]]:
    """The machines of one entry."""
    with located_at(path):
        check_keys(data, ("id", "capacity"), ("count", "cpu_cores", "link_gbps"))
        name = text(data["id"], "id")
        count = integer(data.get("count", 1), "count", minimum=1, maximum=LARGEST_SIZE)
        limits = {
            key: number(data[key], key, above=True) if key in data else math.inf
            for key in ("cpu_cores", "link_gbps")
        }
        capacity = _amounts(data["capacity"], "capacity", resources)
    ids = [name] if count == 1 else [f"{name}#{k}" for k in range(count)]
    return [{"id": each, "capacity": capacity, **limits} for each in ids]


def _job(data: Any, resources: Sequence[str]) -> dict[str, Any]:
    """The fields of a `PolicyJob`, and its speedup."""
    check_keys(data, JOB, JOB_MORE)
    least, initial, most = _workers(data["workers"])
    gradient = _amount(data, "gradient_mb")
    step = number(data.get("step_seconds", 0.0), "step_seconds")
    if gradient and not step:
        raise InstanceError("step_seconds", "expected a number > 0 where there are gradients")
    return {
        "id": text(data["id"], "id"),
        "arrival": _time(data["arrival"], "arrival"),
        "work": _time(data["work"], "work", above=True),
        "worker": _amounts(data["worker"], "worker", resources),
        "ps": _amounts(data.get("ps", {}), "ps", resources),
        "min_workers": least,
        "initial_workers": initial,
        "max_workers": most,
        "ps_rule": _ps_rule(data.get("parameter_servers", 0)),
        "worker_cpu": _amount(data, "worker_cpu"),
        "ps_cpu": _amount(data, "ps_cpu"),
        "gradient_mb": gradient,
        "step_time": step,
        "speedup": tuple(
            number(speed, f"speedup[{k}]", above=True)
            for k, speed in enumerate(check_list(data.get("speedup", []), "speedup"))
        ),
        "curve": _curve(data["curve"]) if "curve" in data else None,
        "utility": _utility(data["utility"]) if "utility" in data else Unvalued(),
    }


def _workers(data: Any) -> tuple[int, int | None, int]:
    """Fewest, initial and most workers: one number for a rigid job."""
    if not isinstance(data, Mapping):
        count = integer(data, "workers", minimum=1)
        return count, count, count
    with located_at("workers"):
        check_keys(data, ("min", "max"), ("initial",))
        least = integer(data["min"], "min", minimum=1)
        most = integer(data["max"], "max", minimum=least)
        if "initial" not in data:
            return least, None, most
        return least, integer(data["initial"], "initial", minimum=least, maximum=most), most


def _ps_rule(data: Any) -> PsRule:
    if not isinstance(data, Mapping):
        return FixedPs(integer(data, "parameter_servers"))
    with located_at("parameter_servers"):
        check_keys(data, ("per_worker",))
        share = number(data["per_worker"], "per_worker")
        if share > 1:
            raise InstanceError("per_worker", f"expected a number in 0..1, got {share:g}")
    return ByBandwidth(share)


def _curve(data: Any) -> TrainingCurve:
    points = []
    for k, point in enumerate(check_list(data, "curve")):
        if len(check_list(point, f"curve[{k}]")) != 2:
            raise InstanceError(f"curve[{k}]", "expected [share, value]", point)
        share, value = (number(part, f"curve[{k}]", minimum=-math.inf) for part in point)
        points.append((share, value))
    try:
        return TrainingCurve(tuple(points))
    except InputError as error:
        raise InstanceError("curve", error.detail) from None


def _utility(data: Any) -> Utility:
    with located_at("utility"):
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in UTILITIES:
            expected = f"expected one of {', '.join(UTILITIES)}"
            raise InstanceError("kind", expected, kind)
        names = tuple(f.name for f in fields(UTILITIES[kind]))
        check_keys(data, ("kind", *names))
        utility: Utility = UTILITIES[kind](**{name: data[name] for name in names})
    return utility


def _costs(data: Any) -> ChangeCosts:
    with located_at("costs"):
        check_keys(data, (), COSTS)
        return ChangeCosts(
            **{name: _time(data[name], name, above=name == COSTS[-1]) for name in data}
        )


def _observation(data: Any) -> Observation:
    with located_at("observation"):
        check_keys(data, ("interval",), ("noise", "seed"))
        return Observation(
            _time(data["interval"], "interval", above=True),
            number(data.get("noise", 0.0), "noise"),
            integer(data.get("seed", 0), "seed"),
        )


def _amounts(data: Any, path: str, resources: Sequence[str]) -> Amounts:
    with located_at(path):
        check_keys(data, (), resources)
        return {name: amount(data[name], name) for name in data}


def _amount(data: Mapping[str, Any], name: str) -> float:
    return amount(data.get(name, 0.0), name)


def _time(value: Any, path: str, *, above: bool = False) -> float:
    """A time that a clock can still tell apart from the next second."""
    found = number(value, path, above=above)
    if found > LARGEST_COUNT:
        raise InstanceError(path, f"expected at most {LARGEST_COUNT:.0e} seconds, got {found:g}")
    return found


def _flag(data: Mapping[str, Any], name: str, default: bool) -> bool:
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise InstanceError(name, "expected true or false", value)
    return value


def _filled(data: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = check_list(data[name], name)
    if not found:
        raise InstanceError(name, "expected at least one entry")
    return found


def elastic_from_window(window: Window, options: MachineOptions) -> ElasticWorkload:
    """Let the jobs of a trace grow and shrink.

    A job may run with one worker and with up to ``options.elasticity`` times the recorded ones; it
    begins with as many as recorded. Its work is what the recorded workers did in the recorded time,
    and n workers are n times as fast as one. The machines are those that `options` give for
    workers; there are no parameter servers, no gradients and no costs. All of that can be changed
    in the file that `write_elastic` writes.

    Examples
    --------
    >>> from oasis.simulator.elastic import elastic_from_window
    >>> from oasis.traces import MachineOptions
    >>> from oasis.traces.window import JobRecord, Window
    >>> record = JobRecord("a", 100.0, 3600.0, 4, 4, {"gpu": 1.0})
    >>> made = elastic_from_window(Window(100.0, (record,), {}), MachineOptions(elasticity=2.0))
    >>> job = made.workload.jobs[0]
    >>> job.arrival, job.work, job.min_workers, job.max_workers
    (0.0, 14400.0, 1, 8)
    """
    gpus = options.gpus_per_server
    machine = {
        "id": "node",
        "count": options.worker_servers,
        "capacity": {
            "gpu": gpus,
            "cpu": gpus * options.cpus_per_gpu,
            "memory_gb": gpus * options.memory_gb_per_gpu,
        },
    }
    return elastic_from_dict(
        {
            "format": FORMAT,
            "version": VERSION,
            "resources": list(machine["capacity"]),  # type: ignore[call-overload]
            "machines": [machine],
            "jobs": [
                _elastic_job(record, window.start, options.elasticity) for record in window.records
            ],
        }
    )


def _elastic_job(record: JobRecord, start: float, elasticity: float) -> dict[str, Any]:
    most = max(record.workers, round(elasticity * record.workers))
    return {
        "id": record.id,
        "arrival": record.submitted - start,
        "work": record.size,
        "workers": {"min": 1, "initial": record.workers, "max": most},
        "worker": dict(record.demand),
    }
