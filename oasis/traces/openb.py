"""Alibaba's GPU cluster trace of 2023, "openb" (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import refuse_other
from oasis.model.forms import Requirement
from oasis.model.instance import Instance
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray
from oasis.traces.everything import busiest, last_slot, ps_counts, widened
from oasis.traces.job_table import TABLE
from oasis.traces.mapping import RESOURCES, build, jobs_of
from oasis.traces.options import TraceOptions, option
from oasis.traces.plain_instance import table_trace
from oasis.traces.table import (
    NEVER_SCHEDULED,
    Frame,
    Rows,
    TraceSource,
    csv_rows,
    read_source,
)
from oasis.traces.times import TraceTimes
from oasis.traces.window import JobRecord, Window, check_choice, select


@dataclass(frozen=True, slots=True)
class OpenbOptions(TraceOptions):
    """Assumptions about the openb trace, whose pods are read as training jobs.

    Examples
    --------
    >>> from oasis.traces import OpenbOptions
    >>> options = OpenbOptions(qos="BE", max_jobs=5)
    >>> options.horizon, options.worker_servers
    (20, 8)
    """

    slot_seconds: float = option(3600.0, "length of a slot in seconds", above=True)
    horizon: int = option(20, "number of slots T", minimum=1)
    min_duration: float = option(7200.0, "leave out pods that ran shorter, in seconds")
    max_duration: float = option(86400.0, "leave out pods that ran longer, in seconds")
    elasticity: float = option(
        4.0, "most workers at once, as a multiple of the recorded ones", above=True
    )
    qos: str = option(
        "", "take the pods of this service class alone, such as BE or LS", reading=True
    )
    worker_servers: int = option(8, "nodes for workers, spread evenly over the list", minimum=1)
    ps_servers: int = option(
        4, "nodes for parameter servers, spread evenly over the others", minimum=1
    )
    model: str = option("", "take the nodes with this GPU model alone, such as T4")
    max_node_gpus: int = option(2, "leave out nodes with more GPUs")


NODES, NODES_LOOK = "openb nodes", "the node list of the openb trace"  # a kind of file
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
GB_PER_MIB = 1.048576e-3
GPU_LABEL = "gpu"  # of a node: its model; pods may ask for some


@dataclass(frozen=True, slots=True)
class Node:
    """A machine as the trace lists it."""

    name: str
    gpus: int
    cpus: float
    memory_gb: float
    model: str


def read_nodes(source: TraceSource, *, allow_malformed: bool = False) -> tuple[list[Node], Rows]:
    """The machines of a node list, and its rows that cannot be used."""
    rows = csv_rows(source, NODE_COLUMNS)
    cpus = rows.number("cpu_milli") / 1000
    memory = rows.number("memory_mib") * GB_PER_MIB
    gpus = rows.number("gpu", whole=True)
    rows.unique("sn")
    names, models = rows.texts("sn"), rows.texts("model")
    nodes = [
        Node(names[k], int(gpus[k]), float(cpus[k]), float(memory[k]), models[k])
        for k in np.flatnonzero(rows.settle()).tolist()
    ]
    rows.check_usable(len(nodes), allow_malformed=allow_malformed)
    return nodes, rows


def cluster_of(nodes: Sequence[Node], options: OpenbOptions) -> Cluster:
    """Choose nodes evenly over the list: first those for workers, then those for servers.

    Nodes for parameter servers come without their GPUs. Nodes that have none are not taken, so that
    the list of all nodes makes the same cluster as the list of those with GPUs.
    """
    fitting = _fitting(nodes, options)
    if len(fitting) < options.worker_servers + options.ps_servers:
        wanted = f"expected {options.worker_servers} + {options.ps_servers} nodes"
        raise InstanceError("worker_servers", f"{wanted}, the options leave {len(fitting)}")
    chosen = _spread(fitting, options.worker_servers)
    names = {node.name for node in chosen}
    others = _spread([node for node in fitting if node.name not in names], options.ps_servers)
    bandwidth = options.server_bandwidth_gbps
    workers = tuple(
        Server(node.name, _capacity(node.gpus, node, bandwidth), labels=_labels(node))
        for node in chosen
    )
    ps = tuple(Server(node.name, _capacity(0, node, bandwidth)) for node in others)
    return Cluster(RESOURCES, workers, ps, options.slot_seconds)


def _labels(node: Node) -> dict[str, str]:
    return {GPU_LABEL: node.model} if node.model else {}


def _fitting(nodes: Sequence[Node], options: OpenbOptions) -> list[Node]:
    """Nodes of the right size and model; one without GPUs is none, in whichever list it stands."""
    return [
        node
        for node in nodes
        if 0 < node.gpus <= options.max_node_gpus and options.model in ("", node.model)
    ]


def fit_nodes(
    options: OpenbOptions, window: Window, nodes: Sequence[Node], fixed: Collection[str]
) -> OpenbOptions:
    """`options` with the fewest nodes that hold the busiest moment of `window`, and its horizon.

    Nodes of all sizes are taken. The busiest moment is that of the recorded runs; the nodes hold it
    if, of each resource, they have as much in all as the pods of that moment had, and if they hold
    the workers of each pod.
    """
    chosen: dict[str, Any] = {
        "max_node_gpus": max((node.gpus for node in nodes), default=0),
        "horizon": max(options.arrival_slots, last_slot(window, options)),
    }
    options = replace(options, **{name: n for name, n in chosen.items() if name not in fixed})
    fitting = _fitting(nodes, options)
    pods = {record.id: _worker(record, options) for record in window.records}

    def held(k: int) -> float:
        return busiest(window.records, lambda record: record.workers * pods[record.id][k])

    most = [held(k) for k in range(len(RESOURCES))]
    gangs = {(pods[record.id], record.workers) for record in window.records}
    sizes: dict[str, Any] = {
        "worker_servers": _fewest(fitting, gangs, most, options, "worker_servers")
    }
    workers = sizes["worker_servers"] if "worker_servers" not in fixed else options.worker_servers
    names = {node.name for node in _spread(fitting, min(workers, len(fitting)))}
    jobs = jobs_of(window, options)
    needed = ps_counts(window, jobs)
    peak = busiest(window.records, lambda record: needed[record.id])
    each = tuple(jobs[0].ps.get(name, 0.0) for name in RESOURCES)
    others = [node for node in fitting if node.name not in names]
    ps = {(each, int(peak))} if peak else set()
    sizes["ps_servers"] = _fewest(others, ps, [peak * a for a in each], options, "ps_servers")
    return replace(options, **{name: n for name, n in sizes.items() if name not in fixed})


def _worker(record: JobRecord, options: OpenbOptions) -> tuple[float, ...]:
    """Demand of one worker of a pod, in the order of `RESOURCES`."""
    demand = {**record.demand, BANDWIDTH: options.worker_bandwidth_gbps}
    return tuple(demand[name] for name in RESOURCES)


def _fewest(
    nodes: Sequence[Node],
    gangs: Collection[tuple[tuple[float, ...], int]],
    most: Sequence[float],
    options: OpenbOptions,
    what: str,
) -> int:
    """The smallest number of `nodes`, spread evenly, that hold each gang, and `most` in all."""
    # Every number is tried in turn: with one more, other nodes are chosen, which may hold less.
    rows = [list(_capacity(n.gpus, n, options.server_bandwidth_gbps).values()) for n in nodes]
    table = np.array(rows).reshape(len(rows), len(RESOURCES))
    for count in range(1, len(nodes) + 1):
        chosen = table[np.arange(count) * len(nodes) // count]
        if np.all(chosen.sum(axis=0) >= np.array(most) - 1e-9) and all(
            _held(chosen, np.array(demand)) >= size for demand, size in gangs
        ):
            return count
    expected = "expected nodes that hold the busiest moment of the pods that are kept"
    raise InstanceError(what, f"{expected}, the {len(nodes)} nodes of the list do not")


def _held(capacities: FloatArray, demand: FloatArray) -> int:
    """Number of workers with this `demand` that fit the servers."""
    wanted = demand > 0
    ratios = capacities[:, wanted] / demand[wanted]
    # Amounts are decimals divided by decimals, so a whole number may come out a little too small.
    return int(np.floor(ratios.min(axis=1) + 1e-9).sum())


def _capacity(gpus: int, node: Node, bandwidth: float) -> dict[str, float]:
    shape = (gpus, node.cpus, node.memory_gb, bandwidth)
    return dict(zip(RESOURCES, shape, strict=True))


def _spread(nodes: Sequence[Node], count: int) -> list[Node]:
    # Steps of equal length through the list give the mix of nodes that the whole list has.
    return [nodes[k] for k in (np.arange(count) * len(nodes) // count).tolist()]


def read_openb(
    pods: str | os.PathLike[str],
    nodes: str | os.PathLike[str],
    options: OpenbOptions | None = None,
    fixed: Collection[str] | None = None,
) -> Instance:
    """Turn pods and nodes of the openb trace into an instance.

    Parameters
    ----------
    pods, nodes : path
        The pod list and the node list, CSV files.
    options : OpenbOptions, optional
        The assumptions; all of them are recorded in the metadata.
    fixed : collection of str, optional
        If given, all pods that ran are kept: every option that leaves out pods, the number of nodes
        and the horizon are chosen so that they fit, but for the options with these names.

    Returns
    -------
    Instance
        ``metadata["malformed"]`` counts the rows that could not be used, by file and kind.

    Raises
    ------
    InstanceError
        If a column is missing or no job or too few nodes are left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import csv, tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import OpenbOptions, read_openb
    >>> pod = {"name": "pod-0", "qos": "LS", "num_gpu": 2, "gpu_milli": 1000}
    >>> pod |= {"cpu_milli": 4000, "memory_mib": 16384}
    >>> pod |= {"creation_time": 0, "scheduled_time": 100, "deletion_time": 10000}
    >>> machine = {"cpu_milli": 64000, "memory_mib": 262144, "gpu": 2, "model": "P100"}
    >>> tables = {"pods.csv": [pod], "nodes.csv": [{"sn": f"node-{k}"} | machine for k in (0, 1)]}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for name, rows in tables.items():
    ...         with Path(directory, name).open("w", newline="") as stream:
    ...             writer = csv.DictWriter(stream, rows[0])
    ...             _ = writer.writeheader(), writer.writerows(rows)
    ...     options = OpenbOptions(start="first", worker_servers=1, ps_servers=1)
    ...     instance = read_openb(*(Path(directory, name) for name in tables), options)
    >>> instance.jobs[0].id, instance.cluster.worker_ids
    ('pod-0', ('node-0',))
    """
    options = OpenbOptions() if options is None else options
    pod_source, node_source = (
        _source(pods, PODS.name, PODS.looks),
        _source(nodes, NODES, NODES_LOOK),
    )
    table = PODS.table(pod_source, options)
    ran, clock = table.jobs, table.clock or TraceTimes(options, is_dated=False)
    malformed = dict(table.malformed)
    never = malformed.pop(NEVER_SCHEDULED, {"count": 0})["count"]
    every, bad_nodes = read_nodes(node_source, allow_malformed=options.allow_malformed)
    check_choice("qos", options.qos, ran["qos"])
    check_choice("model", options.model, (node.model for node in every))
    wanted = ran[ran["qos"] == options.qos] if options.qos else ran
    records = _records(wanted)
    begin = clock.start(options.start)
    if fixed is not None:
        options = widened(options, records, fixed, begin)
    window = select(records, options, begin)
    if options.qos:
        other = {"qos": len(ran) - len(records)}
        window = Window(window.start, window.records, {**other, **window.left_out})
    if fixed is not None:
        options = fit_nodes(options, window, every, fixed)
    bare = sum(not node.gpus for node in every)
    cluster = cluster_of(every, options)
    notes = {"nodes": [f"nodes without GPUs, which are not taken: {bare}"]} if bare else {}
    if asking := [record for record in window.records if record.requires]:
        labels = [server.labels for server in cluster.worker_servers]
        lost = sum(Requirement(one.requires).unmet_by(labels) is not None for one in asking)
        told = (
            f"pods that ask for a model of GPU: {len(asking)}, of which no node has it for {lost}"
        )
        notes["pods"] = [told]
    unusable = {"pods": malformed, "nodes": bad_nodes.malformed}
    found = {
        "trace": "Alibaba openb 2023",
        "licence": "Apache-2.0, alibaba/clusterdata",
        "files": {"pods": pod_source.name, "nodes": node_source.name},
        "rows": {"pods": len(ran) + never, "nodes": len(every)},
        "malformed": {name: kinds for name, kinds in unusable.items() if kinds},
        "notes": notes,
        "never_scheduled": never,
        "window_start": clock.show(window.start),
    }
    return build("openb", window, cluster, options, found)


def _source(path: str | os.PathLike[str], kind: str, looks: str) -> TraceSource:
    """The lines of one of the two files; errors about the whole file name it."""
    with located_at(source=path):
        source = read_source(path)
        refuse_other(source.kind(), (kind, TABLE), looks, source.path)
    return source


def _amounts(rows: Rows, found: dict[str, Any], _: Any) -> None:
    """What a worker of a pod asks for: CPUs and memory are of the whole pod, shared evenly."""
    gpus = found["gpus"]
    rows.reject(gpus % 1 != 0, "bad num_gpu")
    share = rows.number("gpu_milli") / 1000
    # gpu_milli is the share of each GPU of the pod, so it is 0 exactly if there is none.
    rows.reject(((gpus > 0) != (share > 0)) | (share > 1), "bad gpu_milli")
    workers = np.fmax(1, gpus)
    cpu = rows.number("cpu_milli") / 1000 / workers
    memory = rows.number("memory_mib") * GB_PER_MIB / workers
    found |= {"qos": rows.texts("qos"), "share": share, "cpu": cpu, "memory": memory}
    found["is_share"] = (share > 0) & (share < 1)


def _records(jobs: Frame) -> list[JobRecord]:
    """The pods that ran, with what a worker of each asks for."""
    names = ("id", "submitted", "duration", "gpus", "share", "cpu", "memory", "started", "model")
    return [
        JobRecord(
            *(name, submitted, duration, gpus, max(1, gpus)),
            {"gpu": share, "cpu": cpu, "memory_gb": memory},
            started,
            {GPU_LABEL: models} if (models := [each for each in model.split("|") if each]) else {},
        )
        for name, submitted, duration, gpus, share, cpu, memory, started, model in zip(
            *(jobs[column].tolist() for column in names), strict=True
        )
    ]


PODS = table_trace("openb", OpenbOptions, check=_amounts)
