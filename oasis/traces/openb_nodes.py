"""The machines of the openb trace (docs/traces)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.traces.mapping import RESOURCES
from oasis.traces.openb_options import OpenbOptions
from oasis.traces.table import real, whole

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

    Nodes for parameter servers come without their GPUs.
    """
    fitting = [
        node
        for node in nodes
        if node.gpus <= options.max_node_gpus and options.model in ("", node.model)
    ]
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


def _capacity(gpus: int, node: Node, bandwidth: float) -> dict[str, float]:
    shape = (gpus, node.cpus, node.memory_gb, bandwidth)
    return dict(zip(RESOURCES, shape, strict=True))


def _spread(nodes: Sequence[Node], count: int) -> list[Node]:
    return [nodes[k] for k in (np.arange(count) * len(nodes) // count).tolist()]
