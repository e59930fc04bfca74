"""The machines of the openb trace (docs/traces)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray
from oasis.traces.everything import busiest, last_slot, ps_counts
from oasis.traces.mapping import RESOURCES, jobs_of
from oasis.traces.openb_options import OpenbOptions
from oasis.traces.table import real, whole
from oasis.traces.window import Record, Window

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
GB_PER_MIB = 1.048576e-3


@dataclass(frozen=True, slots=True)
class Node:
    """A machine as the trace lists it."""

    name: str
    gpus: int
    cpus: float
    memory_gb: float
    model: str


def parse_node(line: int, row: Mapping[str, str]) -> Node:
    """The machine that a row of the node list describes."""
    cpus = real(row["cpu_milli"], "cpu_milli") / 1000
    memory = real(row["memory_mib"], "memory_mib") * GB_PER_MIB
    return Node(row["sn"], whole(row["gpu"], "gpu"), cpus, memory, row["model"])


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
    workers = tuple(Server(node.name, _capacity(node.gpus, node, bandwidth)) for node in chosen)
    ps = tuple(Server(node.name, _capacity(0, node, bandwidth)) for node in others)
    return Cluster(RESOURCES, workers, ps, options.slot_seconds)


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


def _worker(record: Record, options: OpenbOptions) -> tuple[float, ...]:
    """What one worker of a pod takes, in the order of `RESOURCES`."""
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
    """How many workers with this `demand` the servers hold."""
    wanted = demand > 0
    ratios = capacities[:, wanted] / demand[wanted]
    return int(np.floor(ratios.min(axis=1) + 1e-9).sum())


def _capacity(gpus: int, node: Node, bandwidth: float) -> dict[str, float]:
    shape = (gpus, node.cpus, node.memory_gb, bandwidth)
    return dict(zip(RESOURCES, shape, strict=True))


def _spread(nodes: Sequence[Node], count: int) -> list[Node]:
    return [nodes[k] for k in (np.arange(count) * len(nodes) // count).tolist()]
