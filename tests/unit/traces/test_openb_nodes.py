"""The machines of the openb trace: units, the choice of nodes, and what they are for."""

from __future__ import annotations

from typing import Any

import pytest

from oasis.model.errors import InstanceError
from oasis.traces.openb import NODE_COLUMNS, OpenbOptions, cluster_of, read_nodes
from oasis.traces.table import Frame, TraceSource, pd

ROW = {"sn": "n0", "cpu_milli": "64000", "memory_mib": "262144", "gpu": "2", "model": "P100"}


def listed(row: dict[str, str]) -> TraceSource:
    return TraceSource("nodes.csv", (",".join(row), ",".join(row.values())))


def nodes(count: int, gpus: int = 2, model: str = "P100") -> Frame:
    names = [f"{model}-{k}" for k in range(count)]
    same = {"gpu": gpus, "cpu": 64.0, "memory_gb": 256.0, "model": model}
    return pd.DataFrame({"sn": names, **same})


def options(**given: Any) -> OpenbOptions:
    return OpenbOptions(**({"worker_servers": 3, "ps_servers": 2} | given))


def test_milli_cores_and_mebibytes_become_cores_and_gigabytes() -> None:
    """262,144 MiB are 256 GiB, and those are 274.877906944 GB."""
    (node,) = read_nodes(listed(ROW))[0].itertuples()
    assert (node.sn, node.gpu, node.cpu, node.model) == ("n0", 2, 64.0, "P100")
    assert node.memory_gb == pytest.approx(274.877906944)
    assert set(NODE_COLUMNS) == set(ROW)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("cpu_milli", "many"),
        ("cpu_milli", "-1"),
        ("memory_mib", "inf"),
        ("memory_mib", ""),
        ("gpu", "1.5"),
        ("gpu", "-1"),
    ],
)
def test_a_bad_cell_names_its_column(column: str, cell: str) -> None:
    with pytest.raises(InstanceError, match=f"^row 2: bad {column}; none of"):
        read_nodes(listed(ROW | {column: cell}))


def test_nodes_are_chosen_evenly_over_the_list_and_serve_one_purpose() -> None:
    """Of ten, those at 0, 3 and 6 are for workers; of the other seven, those at 0 and 3."""
    cluster = cluster_of(nodes(10), options())
    assert [server.id for server in cluster.worker_servers] == ["P100-0", "P100-3", "P100-6"]
    assert [server.id for server in cluster.ps_servers] == ["P100-1", "P100-5"]


def test_hosts_of_parameter_servers_come_without_their_gpus() -> None:
    cluster = cluster_of(nodes(5), options(server_bandwidth_gbps=12.5))
    assert {server.capacity["gpu"] for server in cluster.worker_servers} == {2.0}
    assert {server.capacity["gpu"] for server in cluster.ps_servers} == {0.0}
    for server in (*cluster.worker_servers, *cluster.ps_servers):
        assert (server.capacity["cpu"], server.capacity["memory_gb"]) == (64.0, 256.0)
        assert server.capacity["bandwidth_gbps"] == 12.5


def test_only_nodes_of_the_model_and_up_to_the_size_are_taken() -> None:
    kinds = [nodes(5, 2, "P100"), nodes(5, 8, "V100"), nodes(5, 2, "V100")]
    given = pd.concat(kinds, ignore_index=True)
    names = [f"V100-{k}" for k in range(5)]
    small = cluster_of(given[:10], options(model="V100", max_node_gpus=8))
    assert {s.id for s in (*small.worker_servers, *small.ps_servers)} == set(names)
    cluster = cluster_of(given, options(model="V100", max_node_gpus=4))
    assert {s.capacity["gpu"] for s in cluster.worker_servers} == {2.0}


def test_too_few_nodes_say_how_many_there_are() -> None:
    with pytest.raises(InstanceError) as caught:
        cluster_of(nodes(4), options())
    assert str(caught.value) == "worker_servers: expected 3 + 2 nodes, the options leave 4"
    assert len(cluster_of(nodes(5), options()).worker_servers) == 3
