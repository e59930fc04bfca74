"""Public traces of clusters, and those that simulators take (docs/traces)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import STANDARD_INPUT, refuse_other
from oasis.model.forms import Requirement
from oasis.model.job import Job
from oasis.model.resources import BANDWIDTH
from oasis.traces import job_table, table
from oasis.traces.plain_instance import known_trace
from oasis.traces.plain_job import FACTS, UNENDED, state_of
from oasis.traces.table import Frame, MalformedError, Rows, TraceSource, cell, numbers, pd
from oasis.traces.times import UNIT_SECONDS, duration_seconds

# --- Supercloud -----------------------------------------------------------------------------------

# Numbers of resources in the data set's own list: two types of GPUs.
SUPERCLOUD_GPUS = re.compile(r"\b(?:1001|1002)=([0-9]+)")
NUMBERED = re.compile(r"(?:\s*(?:[0-9]+=[0-9]+)?\s*(?:,|\Z))*")


def numbered_gpus(text: str) -> tuple[float, bool]:
    """Return (GPUs, False) of a list such as ``1=40,1002=2``; 0 GPUs if none is listed."""
    if not NUMBERED.fullmatch(text):
        expected = "a list such as 1=40,2=170000,1002=2"
        raise MalformedError("bad tres_alloc", expected=expected)
    return sum(map(float, SUPERCLOUD_GPUS.findall(text))), False


SUPERCLOUD = known_trace("supercloud", gpus=numbered_gpus)

# --- Philly: its own log, or the table distributed with the Sia artifact --------------------------


def _check(rows: Rows, jobs: dict[str, Any], options: Any) -> None:
    """Reject rows whose gpu_time is not duration times GPUs: their columns were swapped or cut."""
    total = rows.number("gpu_time") * UNIT_SECONDS[options.duration_unit]
    off = np.abs(total - jobs["duration"] * jobs["gpus"]) > 1e-6 * total
    rows.reject(off, "gpu_time is not duration times num_gpus")


def _read_log(source: TraceSource, options: Any) -> Rows:
    """Read one row for each attempt of a job; a job without attempts has a row with no time."""
    rows = table.entry_rows(source, source.document(), "", _attempts)
    rows.unique("jobid")
    return rows


def _attempts(job: Mapping[str, Any]) -> list[dict[str, str]]:
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(entry, dict) for entry in attempts):
        raise MalformedError("bad attempts", expected="a list of objects")
    of_job = {name: cell(job, name) for name in ("jobid", "submitted_time", "vc", "user", "status")}
    runs = []
    for attempt in attempts:
        times = {name: cell(attempt, name) for name in ("start_time", "end_time")}
        if times["start_time"] not in ("", "None"):  # else nothing was recorded of it
            detail = attempt.get("detail")
            servers = detail if isinstance(detail, list) else [None]
            gpus: list[Any] = [
                entry.get("gpus") if isinstance(entry, dict) else None for entry in servers
            ]
            if not all(isinstance(entry, list) for entry in gpus):
                raise MalformedError("bad detail", expected="servers, each with a list of gpus")
            runs.append({**of_job, **times, "gpus": str(sum(map(len, gpus)))})
    return runs or [{**of_job, "start_time": "", "end_time": "", "gpus": "0"}]


PHILLY = known_trace(
    "philly",
    log=known_trace(
        "cluster_job_log", read=_read_log, joins=lambda runs, _: runs.assign(key=runs["id"])
    ),
    check=_check,
)

# --- PAI: tables of jobs, tasks and instances without a header, joined by job_name ----------------

JOBS, TASKS, INSTANCES = (FACTS["pai"][table] for table in ("header", "tasks", "instances"))
TASK_TABLE = "pai_task_table.csv"


def _read_pai(source: TraceSource, options: Any) -> Rows:
    """Read the rows of jobs; begin, end and GPUs come from the tables of tasks and instances."""
    rows = table.csv_rows(source, JOBS, JOBS)
    path = options.tasks or str(Path(source.path).with_name(TASK_TABLE))
    # Beside standard input, there is none.
    if not options.tasks and (source.path == STANDARD_INPUT or not Path(path).exists()):
        expected = f"expected the table of tasks, there is no {TASK_TABLE} beside the jobs"
        raise InstanceError("tasks", expected)
    tasks = parts = _parts(path, TASKS, rows)
    if options.instances:
        parts = _parts(options.instances, INSTANCES, rows, set(tasks["job_name"]))
    names = rows.texts("job_name")
    goes_on = np.array([state_of(state) in UNENDED for state in rows.texts("status")])
    runs = parts.groupby("job_name").agg({"begin": "min", "end": "max", "goes_on": "max"})
    runs = runs.join(tasks.groupby("job_name")["gpus"].sum(), how="outer").reindex(names)
    rows.reject(runs["gpus"].isna() & ~goes_on, "no task of this job in the table of tasks")
    # Without an end of all parts, the duration would be too short.
    runs.loc[runs["goes_on"] == 1, "end"] = np.nan
    for name in ("begin", "end", "gpus"):
        rows.cells[name] = [f"{value:.15g}" if value >= 0 else "" for value in runs[name]]
    return rows


def _parts(path: str, columns: tuple[str, ...], jobs: Rows, known: Any = None) -> Frame:
    """Read begin, end (NaN: unknown), GPUs of tasks or instances; of the jobs `known` if given."""
    with located_at(source=path):
        source = table.read_source(path)
        rows = table.csv_rows(source, columns, columns)
        cells = rows.cells
        parts = pd.DataFrame({"job_name": cells["job_name"]})
        if columns is TASKS:
            cells["inst_num"] = cells["inst_num"].replace("", "1")
            cells["plan_gpu"] = cells["plan_gpu"].replace("", "0")
            parts["gpus"] = rows.number("inst_num") * rows.number("plan_gpu") / 100  # percent
        began, ended = (~rows.missing(name, zero=True) for name in ("start_time", "end_time"))
        for time, part, has in (("start_time", "begin", began), ("end_time", "end", began & ended)):
            cells[time] = cells[time].where(has, "0")
            parts[part] = np.where(has, rows.number(time), np.nan)
        parts["goes_on"] = began & ~ended
        parts = parts[rows.settle()]
        rows.check_usable(len(parts))
    parts = parts if known is None else parts[parts["job_name"].isin(known)]
    jobs.notes.append(f"{Path(path).name} is joined by job_name: {len(parts)} rows")
    return parts


PAI = known_trace("pai", read=_read_pai)

# --- Standard Workload Format ---------------------------------------------------------------------

FIELDS, HELD = FACTS["swf"]["fields"], FACTS["swf"]["columns"]["gpus"]
COMMENT, UNKNOWN = ";", "-1"
HAS_COMPLETED, CANCELLED = 1, 5  # statuses
PARTS = range(2, 5)  # of which the last one may have ended or failed


def _read_swf(source: TraceSource, options: Any) -> Rows:
    """Read the lines of the log that are whole jobs, with their GPUs by processors_per_gpu."""
    faults = (f"expected {len(FIELDS)} numbers",) * 2
    rows = table.rows_of(source, FIELDS, 0, FIELDS, faults=faults, comment=COMMENT)
    frame = rows.cells
    status = rows.number("status", -1, whole=True)
    rows.reject(status > CANCELLED, "bad status")
    is_part = np.isin(status, PARTS)
    # Such a job has a line of its own, with the time of all its parts.
    has_own = frame["job"].isin(frame["job"][~is_part]).to_numpy()
    rows.reject(is_part & has_own, table.PART)
    rows.reject(is_part, "part of a job without a line of its own")
    rows.reject(frame["submission"] == UNKNOWN, "no submission")
    rows.number("wait", -1.0)
    rows.reject((frame["run time"] == UNKNOWN) & (status == HAS_COMPLETED), "no run time")
    frame["run time"] = frame["run time"].replace(UNKNOWN, "0")
    took = rows.number("run time")
    # Processors that were allocated count; what was requested stands in where a log lacks them. A
    # job that was cancelled while it waited need not name processors.
    processors = frame["allocated"].where(frame["allocated"] != UNKNOWN, frame["requested"])
    frame[HELD] = processors.mask(took == 0, "1")
    gpus = rows.number(HELD, 1, whole=True)
    frame[HELD] = [f"{-(-n // options.processors_per_gpu):.0f}" for n in gpus.tolist()]
    # The number of the group stands in where a log has none of the user.
    owner = frame["user"].mask(frame["user"] == UNKNOWN, frame["group"])
    frame["owner"] = owner.replace(UNKNOWN, "")
    frame["wait"] = frame["wait"].mask(frame["wait"].str.startswith("-"), "")
    frame["status"] = [f"{code:.0f}" for code in status.tolist()]
    return rows


SWF = known_trace("swf", read=_read_swf)

# --- Gavel ----------------------------------------------------------------------------------------

LINES = {len(columns): columns for columns in FACTS["gavel"]["lines"]}
KEY = re.compile(r"\('(.*)', (\d+)\)")


def _read_gavel(source: TraceSource, options: Any) -> Rows:
    """Read the jobs; where the file has steps, divide these by the throughput of the job type."""
    columns = LINES.get(source.header.count("\t") + 1, FACTS["gavel"]["lines"][0])
    rows = table.rows_of(source, columns, source.first, columns, "\t")
    if "duration" not in columns:
        rates = _rates(options)

        def rate(kind: tuple[str, float]) -> float:
            if kind not in rates:
                shown = f"{kind[0]}, {kind[1]:.0f} workers"
                raise MalformedError(f"no throughput on {options.worker_type}", shown)
            return rates[kind]

        counts = np.nan_to_num(numbers(rows.texts("scale_factor"))).tolist()
        kinds = list(zip(rows.texts("job_type"), counts, strict=True))
        steps = rows.number("total_steps") / np.array(rows.convert(kinds, rate), dtype=float)
        rows.cells["duration"] = [f"{seconds:.17g}" for seconds in steps.tolist()]
    return rows


def _rates(options: Any) -> Mapping[tuple[str, float], float]:
    """Read steps per second for each (job type, number of workers) of the chosen worker type."""
    if not options.throughputs:
        expected = "expected Gavel's file of throughputs: the trace has steps and no durations"
        raise InstanceError("throughputs", expected)
    document = table.read_source(options.throughputs).document()
    types = document if isinstance(document, dict) else {}
    if not isinstance(kinds := types.get(options.worker_type), dict):
        known = ", ".join(types) or "none"
        raise InstanceError("worker_type", f"expected one of {known:.200}", options.worker_type)
    steps = {}
    for name, rates in kinds.items():
        key, rate = KEY.fullmatch(name), rates.get("null") if isinstance(rates, dict) else None
        if key and isinstance(rate, (int, float)) and rate > 0:
            steps[key[1], float(key[2])] = float(rate)
    return steps


GAVEL = known_trace("gavel", read=_read_gavel)

# --- Batsim ---------------------------------------------------------------------------------------

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
DEEPEST = 20  # sequences of sequences
NO_LIMIT = "-1"


def _read_batsim(source: TraceSource, _: Any) -> Rows:
    """Read the jobs; the duration of each is that of its profile, cut at its walltime."""
    document = source.document()
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(profiles, dict):
        raise InstanceError("profiles", "expected the profiles of a workload of Batsim")

    def read(job: Mapping[str, Any]) -> list[dict[str, str]]:
        duration = _seconds(cell(job, "profile"), profiles, DEEPEST)
        limit = cell(job, "walltime")
        if limit not in ("", NO_LIMIT):  # Batsim ends a job there
            duration = min(duration, duration_seconds(limit, "walltime", "s"))
        cells = {name: cell(job, name) for name in ("id", "subtime", "res", "user")}
        return [{**cells, "duration": f"{duration:.17g}"}]

    return table.entry_rows(source, document.get("jobs"), "jobs", read)


def _seconds(name: str, profiles: Mapping[str, Any], deepest: int) -> float:
    """Duration of a profile: a delay, or a sequence nested up to `deepest` levels; others fail."""
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        raise MalformedError(f"there is no profile {name!r:.40}")
    kind = cell(profile, "type")
    if kind in DELAYS:
        return duration_seconds(cell(profile, "delay"), "delay", "s")
    sequence, repeat = profile.get("seq"), cell(profile, "repeat") or "1"
    if kind in SEQUENCES and isinstance(sequence, list) and deepest:
        times = float(repeat) if table.NUMBER.fullmatch(repeat) else -1.0
        if times < 0 or not times.is_integer():
            raise MalformedError("bad repeat", expected="a whole number >= 0")
        return times * sum(_seconds(str(part), profiles, deepest - 1) for part in sequence)
    raise MalformedError(f"a profile of type {kind or 'none'} says no duration")


BATSIM = known_trace("batsim", read=_read_batsim)


# --- Alibaba's GPU cluster trace of 2023, "openb" ------------------------------------------------

NODES, NODES_LOOK = "openb nodes", "the node list of the openb trace"  # a kind of file
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
GB_PER_MIB = 1.048576e-3
GPU_LABEL = "gpu"  # of a node: its model; pods may ask for some


class Nodes:
    """The machines of a node list, with cores and GB, and counts of its malformed rows."""

    def __init__(self, path: str | os.PathLike[str], options: Any) -> None:
        with located_at(source=path):  # errors about the whole file name it
            source = table.read_source(path)
            refuse_other(source.kind(), (NODES,), NODES_LOOK)
        self.rows = rows = table.csv_rows(source, NODE_COLUMNS)
        nodes = rows.cells.assign(
            cpu=rows.number("cpu_milli") / 1000,
            memory_gb=rows.number("memory_mib") * GB_PER_MIB,
            gpu=rows.number("gpu", whole=True),
        )
        rows.unique("sn")
        self.frame = nodes[rows.settle()]
        rows.check_usable(len(self.frame), allow_malformed=options.allow_malformed)
        job_table.check_choice("model", options.model, self.frame["model"])

    def cluster(self, options: Any) -> Cluster:
        """Pick nodes evenly over the list: some for workers, others, without GPUs, for servers."""
        fitting = _fitting(self.frame, options)
        if len(fitting) < options.worker_servers + options.ps_servers:
            expected = f"expected {options.worker_servers} + {options.ps_servers} nodes"
            raise InstanceError("worker_servers", f"{expected}, the options leave {len(fitting)}")
        workers = job_table.spread(fitting, options.worker_servers)
        ps = job_table.spread(fitting.drop(index=workers.index), options.ps_servers)
        ps = ps.assign(gpu=0.0, model="")
        return Cluster(job_table.RESOURCES, _servers(workers), _servers(ps), options.slot_seconds)

    def fit(self, options: Any, pods: Frame, jobs: Sequence[Job], fixed: Collection[str]) -> Any:
        """Return `options` with the fewest nodes for the busiest moment; `fixed` options stay."""
        options = job_table.chosen(
            options,
            fixed,
            max_node_gpus=int(max(self.frame["gpu"], default=0)),
            horizon=max(options.arrival_slots, job_table.last_slot(pods, jobs, options)),
        )
        fitting = _fitting(self.frame, options)
        worker = pods.assign(**{BANDWIDTH: options.worker_bandwidth_gbps})[[*job_table.RESOURCES]]
        totals = worker.mul(pods["workers"], axis=0)
        most = totals.apply(lambda amount: job_table.busiest(pods, amount))
        fewest = _fewest(fitting, worker.max(), most, "worker_servers")
        options = job_table.chosen(options, fixed, worker_servers=fewest)
        workers = job_table.spread(fitting, min(options.worker_servers, len(fitting)))
        ps = pd.Series({name: jobs[0].ps.get(name, 0.0) for name in job_table.RESOURCES})
        most = ps * job_table.busiest(pods, job_table.ps_counts(pods, jobs))
        others = fitting.drop(index=workers.index)
        fewest = _fewest(others, ps, most, "ps_servers")
        return job_table.chosen(options, fixed, ps_servers=fewest)

    def notes(self, pods: Frame, cluster: Cluster) -> dict[str, list[str]]:
        """Return notes on nodes without GPUs, and on pods that ask for a model of GPU."""
        labels = [server.labels for server in cluster.worker_servers]
        asking = [Requirement(one).unmet_by(labels) for one in pods["requires"] if one]
        lost = sum(unmet is not None for unmet in asking)
        text = f"pods that ask for a model of GPU: {len(asking)}, of which no node has it for"
        bare = int((self.frame["gpu"] == 0).sum())
        return {
            "nodes": [f"nodes without GPUs, which are not taken: {bare}"] if bare else [],
            "pods": [f"{text} {lost}"] if asking else [],
        }


def _servers(nodes: Frame) -> tuple[Server, ...]:
    return tuple(
        Server(
            node["sn"],
            {name: node[name] for name in job_table.RESOURCES},
            labels={GPU_LABEL: node["model"]} if node["model"] else {},
        )
        for node in nodes.to_dict("records")
    )


def _fitting(nodes: Frame, options: Any) -> Frame:
    """Return the nodes with 1 to `max_node_gpus` GPUs of the chosen model, and their bandwidth."""
    fits = nodes["gpu"].between(1, options.max_node_gpus)
    fits &= (nodes["model"] == options.model) | (not options.model)
    return nodes[fits].assign(**{BANDWIDTH: options.server_bandwidth_gbps})


def _fewest(nodes: Frame, largest: Frame, most: Frame, option: str) -> int:
    """The smallest number of evenly picked `nodes` that hold `most` in sum and `largest` in one."""
    # Every number is tried in turn: with one more, other nodes are chosen, which may hold less.
    for count in range(1, len(nodes) + 1):
        chosen = job_table.spread(nodes, count)[[*job_table.RESOURCES]]
        if (chosen.sum() >= most - 1e-9).all() and (chosen.max() >= largest - 1e-9).all():
            return count
    expected = "expected nodes that hold the busiest moment of the pods that are kept"
    raise InstanceError(option, f"{expected}, the {len(nodes)} nodes of the list do not")


def _amounts(rows: Rows, jobs: dict[str, Any], _: Any) -> None:
    """Add each job's workers and the demand of one: an even share of the pod's CPUs and memory."""
    gpus = jobs["gpus"]
    rows.reject(gpus % 1 != 0, "bad num_gpu")
    share = rows.number("gpu_milli") / 1000
    # gpu_milli is the share of each GPU of the pod, so it is 0 exactly if there is none.
    rows.reject(((gpus > 0) != (share > 0)) | (share > 1), "bad gpu_milli")
    workers = np.fmax(1, gpus)
    models = [[model for model in text.split("|") if model] for text in rows.texts("gpu_spec")]
    jobs |= {
        **{"qos": rows.texts("qos"), "workers": workers.astype(np.int64), "gpu": share},
        "cpu": rows.number("cpu_milli") / 1000 / workers,
        "memory_gb": rows.number("memory_mib") * GB_PER_MIB / workers,
        "requires": [{GPU_LABEL: those} if those else {} for those in models],
        "is_share": (share > 0) & (share < 1),
    }


PODS = known_trace("openb", check=_amounts, nodes=Nodes)
OWN = (PHILLY, SUPERCLOUD, PAI, SWF, GAVEL, BATSIM, PODS)
