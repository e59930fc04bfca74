"""Alibaba's GPU cluster trace of 2023, "openb" (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from oasis.model.errors import InstanceError
from oasis.model.file_kinds import NODES, looks_of, refuse_other
from oasis.model.instance import Instance
from oasis.traces.everything import widened
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.mapping import build
from oasis.traces.openb_nodes import (
    GB_PER_MIB,
    NODE_COLUMNS,
    cluster_of,
    fit_nodes,
    parse_node,
)
from oasis.traces.openb_options import OpenbOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source, read_source
from oasis.traces.table import NEVER_SCHEDULED, MalformedError, Table, read_table, real, whole
from oasis.traces.times import Clock
from oasis.traces.window import Record, Window, check_choice, select

Row = TypeVar("Row")
POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos"),
    *("creation_time", "deletion_time", "scheduled_time"),
)


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
    pod_source, node_source = _source(pods, PODS.name), _source(nodes, NODES)
    pod_table = _pods(pod_source, options, lambda qos, pod: (qos, pod))
    clock = pod_table.clock or Clock(options, is_dated=False)
    node_table = read_table(
        node_source, NODE_COLUMNS, parse_node, key="sn", allow_malformed=options.allow_malformed
    )
    check_choice("qos", options.qos, (qos for qos, _ in pod_table.rows))
    check_choice("model", options.model, (node.model for node in node_table.rows))
    ran = [(qos, record) for qos, record in pod_table.rows if record is not None]
    records = [record for qos, record in ran if options.qos in ("", qos)]
    if fixed is not None:
        options = widened(options, records, fixed)
    window = select(records, options, clock.start(options.start))
    if options.qos:
        other = {"qos": len(ran) - len(records)}
        window = Window(window.start, window.records, {**other, **window.left_out})
    if fixed is not None:
        options = fit_nodes(options, window, node_table.rows, fixed)
    bare = sum(not node.gpus for node in node_table.rows)
    tables: dict[str, Table[Any]] = {"pods": pod_table, "nodes": node_table}
    found = {
        "trace": "Alibaba openb 2023",
        "licence": "Apache-2.0, alibaba/clusterdata",
        "files": {"pods": pod_source.name, "nodes": node_source.name},
        "rows": {name: len(table.rows) for name, table in tables.items()},
        "malformed": {name: table.malformed for name, table in tables.items() if table.malformed},
        "notes": {"nodes": [f"nodes without GPUs, which are not taken: {bare}"]} if bare else {},
        "never_scheduled": len(pod_table.rows) - len(ran),
        "window_start": clock.show(window.start),
    }
    return build("openb", window, cluster_of(node_table.rows, options), options, found)


def _pods(
    source: Source, options: OpenbOptions, make: Callable[[str, Record | None], Row]
) -> Table[Row]:
    """What `make` makes of the service class and the job of each pod; of None if it never ran."""
    clock = Clock(options, is_dated=False)
    return read_table(
        source,
        POD_COLUMNS,
        lambda _, row: make(*_pod(row, clock)),
        key="name",
        clock=clock,
        time="creation_time",
        allow_malformed=options.allow_malformed,
    )


def _source(path: str | os.PathLike[str], kind: str) -> Source:
    """The lines of one of the two files; what is wrong with it as a whole names it."""
    try:
        source = read_source(path)
        refuse_other(source.kind(), (kind, "csv"), looks_of(kind), source.path)
    except InstanceError as error:
        raise InstanceError("", f"{os.fspath(path)}: {error}") from None
    return source


def _pod(row: Mapping[str, str], clock: Clock) -> tuple[str, Record | None]:
    """Service class and job of a pod; no job if it never ran."""
    gpus = whole(row["num_gpu"], "num_gpu")
    share = real(row["gpu_milli"], "gpu_milli") / 1000
    if (gpus > 0) != (share > 0) or share > 1:
        raise MalformedError("bad gpu_milli")
    workers = max(1, gpus)
    demand = {
        "gpu": share,
        "cpu": real(row["cpu_milli"], "cpu_milli") / 1000 / workers,
        "memory_gb": real(row["memory_mib"], "memory_mib") * GB_PER_MIB / workers,
    }
    submitted = clock.read(row["creation_time"], "creation_time")
    ended = clock.read(row["deletion_time"], "deletion_time")
    if not row["scheduled_time"]:
        return row["qos"], None
    duration = ended - clock.read(row["scheduled_time"], "scheduled_time")
    if duration <= 0:
        raise MalformedError("deletion_time is not after scheduled_time")
    started = ended - duration
    return row["qos"], Record(row["name"], submitted, duration, gpus, workers, demand, started)


def _plain_pods(source: Source, options: OpenbOptions) -> Table[TraceRow]:
    """The pods as jobs with GPUs and times; one on a part of a GPU holds a whole one."""

    def make(qos: str, pod: Record | None) -> TraceRow:
        if pod is None:
            raise MalformedError(NEVER_SCHEDULED)
        job = PlainJob(pod.id, pod.submitted, pod.duration, pod.gpus)
        return TraceRow(job, {"qos": qos}, pod.started, is_share=0 < pod.demand["gpu"] < 1)

    return _pods(source, options, make)


PODS = JobTrace(
    "openb",
    _plain_pods,
    {"trace": "Alibaba openb 2023", "licence": "Apache-2.0, alibaba/clusterdata"},
    OpenbOptions,
)
