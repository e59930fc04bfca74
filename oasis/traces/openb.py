"""Alibaba's GPU cluster trace of 2023, "openb" (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import refuse_other
from oasis.model.forms import Requirement
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.resources import BANDWIDTH
from oasis.traces.job_table import TABLE, check_choice
from oasis.traces.mapping import RESOURCES, busiest, chosen, jobs_of, last_slot, ps_counts
from oasis.traces.plain_instance import known_trace
from oasis.traces.table import (
    NEVER_SCHEDULED,
    Frame,
    Rows,
    TraceSource,
    csv_rows,
    pd,
    read_source,
)

NODES, NODES_LOOK = "openb nodes", "the node list of the openb trace"  # a kind of file
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
GB_PER_MIB = 1.048576e-3
GPU_LABEL = "gpu"  # of a node: its model; pods may ask for some


def read_nodes(source: TraceSource, *, allow_malformed: bool = False) -> tuple[Frame, Rows]:
    """The machines of a node list, with cores and GB, and its rows that cannot be used."""
    rows = csv_rows(source, NODE_COLUMNS)
    columns = {
        "sn": rows.texts("sn"),
        "cpu": rows.number("cpu_milli") / 1000,
        "memory_gb": rows.number("memory_mib") * GB_PER_MIB,
        "gpu": rows.number("gpu", whole=True),
        "model": rows.texts("model"),
    }
    rows.unique("sn")
    nodes = pd.DataFrame(columns, index=rows.lines)[rows.settle()]
    rows.check_usable(len(nodes), allow_malformed=allow_malformed)
    return nodes, rows


def cluster_of(nodes: Frame, options: Any) -> Cluster:
    """Nodes evenly over the list: for workers, then for servers without GPUs; each has some."""
    fitting = _fitting(nodes, options)
    if len(fitting) < options.worker_servers + options.ps_servers:
        wanted = f"expected {options.worker_servers} + {options.ps_servers} nodes"
        raise InstanceError("worker_servers", f"{wanted}, the options leave {len(fitting)}")
    workers = _spread(fitting, options.worker_servers)
    ps = _spread(fitting.drop(index=workers.index), options.ps_servers).assign(gpu=0.0, model="")
    return Cluster(RESOURCES, _servers(workers), _servers(ps), options.slot_seconds)


def _servers(nodes: Frame) -> tuple[Server, ...]:
    return tuple(
        Server(
            node["sn"],
            {name: node[name] for name in RESOURCES},
            labels={GPU_LABEL: node["model"]} if node["model"] else {},
        )
        for node in nodes.to_dict("records")
    )


def _fitting(nodes: Frame, options: Any) -> Frame:
    """Nodes of the right size and model; one without GPUs is none, in whichever list it stands."""
    fits = nodes["gpu"].between(1, options.max_node_gpus)
    fits &= (nodes["model"] == options.model) | (not options.model)
    return nodes[fits].assign(**{BANDWIDTH: options.server_bandwidth_gbps})


def _spread(nodes: Frame, count: int) -> Frame:
    """So many nodes in steps of equal length through the list: they mix as the whole list does."""
    return nodes.iloc[np.arange(count) * len(nodes) // count]


def fit_nodes(
    options: Any,
    pods: Frame,
    jobs: Sequence[Job],
    nodes: Frame,
    fixed: Collection[str],
) -> Any:
    """`options` with the fewest nodes that hold the busiest moment of a window, and its horizon.

    Nodes of all sizes are taken. The busiest moment is that of the recorded runs; the nodes hold it
    if, of each resource, they have as much in all as the pods of that moment had, and one of them
    as much as the largest worker.
    """
    options = chosen(
        options,
        fixed,
        max_node_gpus=int(max(nodes["gpu"], default=0)),
        horizon=max(options.arrival_slots, last_slot(pods, jobs, options)),
    )
    fitting = _fitting(nodes, options)
    asked = pods.assign(**{BANDWIDTH: options.worker_bandwidth_gbps})[[*RESOURCES]]
    most = asked.mul(pods["workers"], axis=0).apply(lambda amount: busiest(pods, amount))
    fewest = _fewest(fitting, asked.max(), most, "worker_servers")
    options = chosen(options, fixed, worker_servers=fewest)
    taken = _spread(fitting, min(options.worker_servers, len(fitting)))
    each = pd.Series({name: jobs[0].ps.get(name, 0.0) for name in RESOURCES})
    most = each * busiest(pods, ps_counts(pods, jobs))
    others = fitting.drop(index=taken.index)
    return chosen(options, fixed, ps_servers=_fewest(others, each, most, "ps_servers"))


def _fewest(nodes: Frame, largest: Frame, most: Frame, what: str) -> int:
    """The smallest number of `nodes`, spread evenly, that hold `most` in all and the `largest`."""
    # Every number is tried in turn: with one more, other nodes are chosen, which may hold less.
    for count in range(1, len(nodes) + 1):
        there = _spread(nodes, count)[[*RESOURCES]]
        if (there.sum() >= most - 1e-9).all() and (there.max() >= largest - 1e-9).all():
            return count
    expected = "expected nodes that hold the busiest moment of the pods that are kept"
    raise InstanceError(what, f"{expected}, the {len(nodes)} nodes of the list do not")


def read_openb(
    pods: str | os.PathLike[str],
    nodes: str | os.PathLike[str],
    options: Any = None,
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
        If a column is missing, an option is out of its range, or no job or too few nodes are left.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from oasis.traces import OpenbOptions, read_openb
    >>> pod = {"name": "pod-0", "qos": "LS", "num_gpu": 2, "gpu_milli": 1000, "cpu_milli": 4000}
    >>> pod |= {"memory_mib": 16384, "creation_time": 0, "scheduled_time": 9, "deletion_time": 9999}
    >>> node = {"cpu_milli": 64000, "memory_mib": 262144, "gpu": 2, "model": "P100"}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     pods, nodes = Path(directory, "pods.csv"), Path(directory, "nodes.csv")
    ...     pd.DataFrame([pod]).to_csv(pods, index=False)
    ...     pd.DataFrame({"sn": ["node-0", "node-1"], **node}).to_csv(nodes, index=False)
    ...     options = OpenbOptions(start="first", worker_servers=1, ps_servers=1)
    ...     instance = read_openb(pods, nodes, options)
    >>> instance.jobs[0].id, instance.cluster.worker_ids
    ('pod-0', ('node-0',))
    """
    options = OpenbOptions() if options is None else options
    source = _source(pods, PODS.name, PODS.looks)
    node_source = _source(nodes, NODES, NODES_LOOK)
    trace = PODS.table(source, options)
    every, bad_nodes = read_nodes(node_source, allow_malformed=options.allow_malformed)
    malformed: dict[str, Any] = {"pods": {**trace.malformed}, "nodes": bad_nodes.malformed}
    never = malformed["pods"].pop(NEVER_SCHEDULED, {"count": 0})["count"]
    rows = {"pods": len(trace.frame) + never, "nodes": len(every)}
    trace.choose(options)
    check_choice("model", options.model, every["model"])
    options = trace.window(options, fixed)
    jobs = jobs_of(trace.frame, options)
    if fixed is not None:
        options = fit_nodes(options, trace.frame, jobs, every, fixed)
    cluster = cluster_of(every, options)
    bare = int((every["gpu"] == 0).sum())
    notes = {"nodes": [f"nodes without GPUs, which are not taken: {bare}"]} if bare else {}
    if asking := [requires for requires in trace.frame["requires"] if requires]:
        labels = [server.labels for server in cluster.worker_servers]
        lost = sum(Requirement(one).unmet_by(labels) is not None for one in asking)
        told = "pods that ask for a model of GPU"
        notes["pods"] = [f"{told}: {len(asking)}, of which no node has it for {lost}"]
    found = {
        "files": {"pods": source.name, "nodes": node_source.name},
        "rows": rows,
        "malformed": {name: kinds for name, kinds in malformed.items() if kinds},
        "notes": notes,
        "never_scheduled": never,
    }
    return PODS.built(trace, jobs, cluster, options, found)


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
    models = [[model for model in text.split("|") if model] for text in rows.texts("gpu_spec")]
    found |= {
        **{"qos": rows.texts("qos"), "workers": workers.astype(np.int64), "gpu": share},
        "cpu": rows.number("cpu_milli") / 1000 / workers,
        "memory_gb": rows.number("memory_mib") * GB_PER_MIB / workers,
        "requires": [{GPU_LABEL: those} if those else {} for those in models],
        "is_share": (share > 0) & (share < 1),
    }


PODS = known_trace("openb", check=_amounts)
OpenbOptions: Any = PODS.options
