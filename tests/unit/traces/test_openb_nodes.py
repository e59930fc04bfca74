"""The machines of the openb trace: units, and what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from oasis.model.errors import InstanceError
from oasis.traces import OpenbOptions
from oasis.traces.readers import NODE_COLUMNS, Nodes

ROW = {"sn": "n0", "cpu_milli": "64000", "memory_mib": "262144", "gpu": "2", "model": "P100"}
SMALL = OpenbOptions(worker_servers=3, ps_servers=2, server_bandwidth_gbps=12.5)


def nodes(folder: Path, *rows: dict[str, str]) -> Nodes:
    path = folder / "nodes.csv"
    lines = [",".join(ROW), *(",".join((ROW | row).values()) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return Nodes(path, SMALL)


def test_milli_cores_and_mebibytes_become_cores_and_gigabytes(tmp_path: Path) -> None:
    """262,144 MiB are 256 GiB, and those are 274.877906944 GB."""
    (node,) = nodes(tmp_path, {}).frame.itertuples()
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
def test_a_bad_cell_names_its_column(column: str, cell: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=f"^row 2: bad {column}; none of"):
        nodes(tmp_path, {column: cell})


def test_hosts_of_parameter_servers_come_without_their_gpus(tmp_path: Path) -> None:
    cluster = nodes(tmp_path, *({"sn": f"n{k}"} for k in range(5))).cluster(SMALL)
    assert {server.capacity["gpu"] for server in cluster.worker_servers} == {2.0}
    assert {server.capacity["gpu"] for server in cluster.ps_servers} == {0.0}
    for server in (*cluster.worker_servers, *cluster.ps_servers):
        assert server.capacity["cpu"] == 64.0
        assert server.capacity["bandwidth_gbps"] == 12.5
