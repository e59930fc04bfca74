"""The importers of Philly and openb, on small files written here and on the whole traces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oasis import InstanceError, OASiS, simulate
from oasis.model import instance_file as io
from oasis.traces import OpenbOptions, PhillyOptions, read_instance
from oasis.traces.readers import NODE_COLUMNS, Nodes

POD_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
PODS = [
    "p0,8000,16000,1,500,,BE,Running,1000,15000,4600",
    "p1,16000,40000,2,1000,,LS,Failed,5000,25400,6000",
    "p2,4000,8000,0,0,,BE,Running,5000,20000,5000",
    "p3,4000,8000,1,1000,,BE,Pending,5000,20000,",
]
NODES = [f"n{k},64000,262144,{2 + 6 * (k == 0)},{'T4' if k % 2 else 'P100'}" for k in range(8)]
SMALL = {"worker_servers": 2, "ps_servers": 1, "horizon": 12}
DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
POD_TRACE, NODE_TRACE = (
    DATA / name for name in ("openb_pod_list_default.csv", "openb_node_list_gpu_node.csv")
)


def needs(*paths):
    there = all(path.exists() for path in paths)
    return pytest.mark.skipif(not there, reason=f"no {paths[0].name} at {DATA}")


def imported(tmp_path, pods=PODS, nodes=NODES, **options):
    paths = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    for path, header, rows in zip(paths, (POD_HEADER, NODE_HEADER), (pods, nodes), strict=True):
        path.write_text("\n".join([header, *rows]) + "\n")
    return read_instance(paths[0], OpenbOptions(**SMALL | options), nodes=paths[1])


def test_pods_become_jobs_with_their_own_demands(tmp_path):
    instance = imported(tmp_path)
    assert [job.id for job in instance.jobs] == ["p0", "p1"]
    assert [job.arrival for job in instance.jobs] == [0, 1]
    half, two = instance.jobs
    assert (half.worker["gpu"], half.worker["cpu"]) == (0.5, 8.0)
    assert half.worker["memory_gb"] == pytest.approx(16.777216)
    assert (two.worker["gpu"], two.worker["cpu"]) == (1.0, 8.0)  # one worker a GPU
    assert two.worker["memory_gb"] == pytest.approx(20.97152)
    assert (half.chunks, two.chunks) == (4, 8)


def test_shares_of_gpus_that_running_pods_hold_are_taken_from_the_nodes(tmp_path):
    running = [f"r{k},1000,1000,1,250,,BE,Running,1000,,4600" for k in range(3)]
    every = imported(tmp_path, worker_servers=3)
    instance = imported(tmp_path, [*PODS, *running], worker_servers=3)
    before, after = (one.cluster.worker_capacity[:, 0].sum() for one in (every, instance))
    assert before - after == 0.75
    told = instance.metadata["notes"]["pods"]
    assert "jobs that had begun and not ended: 3, on 3 GPUs, held to the end of the trace" in told
    assert "GPUs of jobs that still run, which the machines lack at all times: 0.75" in told


def test_work_counts_from_scheduling_not_from_creation(tmp_path):
    jobs = imported(tmp_path).jobs
    assert jobs[0].work(3600.0) == -(-(15000 - 4600) // 3600)
    assert jobs[1].work(3600.0) == -(-2 * (25400 - 6000) // 3600)


def test_pods_without_gpu_come_on_request(tmp_path):
    instance = imported(tmp_path, min_gpus=0)
    assert [job.id for job in instance.jobs] == ["p0", "p1", "p2"]
    assert instance.jobs[2].worker["gpu"] == 0
    assert instance.metadata["malformed"]["pods"]["never scheduled"]["count"] == 1
    assert [job.id for job in imported(tmp_path, qos="LS").jobs] == ["p1"]


def test_nodes_are_spread_over_the_list_and_serve_one_purpose(tmp_path):
    cluster = imported(tmp_path, worker_servers=3, ps_servers=2).cluster
    assert cluster.worker_ids == ("n1", "n3", "n5")
    assert cluster.ps_ids == ("n2", "n6")
    assert cluster.worker_capacity[0].tolist() == pytest.approx([2, 64, 274.877906944, 20])
    assert cluster.ps_capacity[0, 0] == 0


def test_the_list_of_all_nodes_makes_the_cluster_of_the_list_of_gpu_nodes(tmp_path):
    others = [f"c{k},96000,524288,0," for k in range(9)]
    mixed = [node for pair in zip(others, NODES, strict=False) for node in pair] + others[8:]
    every = imported(tmp_path, nodes=mixed)
    assert every.cluster == imported(tmp_path).cluster
    assert every.metadata["notes"] == {"nodes": ["nodes without GPUs, which are not taken: 9"]}


def test_too_few_usable_nodes_are_refused(tmp_path):
    bad = [f"m{k},64000,1,two,T4" for k in range(9)]
    with pytest.raises(InstanceError, match=r"^row 10: bad gpu; 9 of the 17 rows of nodes.csv"):
        imported(tmp_path, nodes=[*NODES, *bad])
    assert imported(tmp_path, nodes=[*NODES, *bad], allow_malformed=True).cluster


def test_nodes_can_be_chosen_by_model_and_size(tmp_path):
    assert imported(tmp_path, model="P100").cluster.worker_ids == ("n2", "n4")
    assert "n0" in imported(tmp_path, max_node_gpus=8).cluster.worker_ids
    with pytest.raises(InstanceError, match=r"^model: expected one of .*P100.*, got 'H100'"):
        imported(tmp_path, model="H100")
    with pytest.raises(InstanceError, match=r"^worker_servers: expected 2 \+ 1 nodes, .* leave 0"):
        imported(tmp_path, max_node_gpus=0)


def test_the_window_can_begin_at_a_second(tmp_path):
    instance = imported(tmp_path, start="1400")
    assert [(job.id, job.arrival) for job in instance.jobs] == [("p1", 1)]
    assert instance.metadata["window_start"] == "1400"
    with pytest.raises(ValueError, match=r"^start: expected busiest, first or seconds"):
        imported(tmp_path, start="2017-10-03")


def test_every_assumption_is_recorded_and_survives_the_file(tmp_path):
    instance = imported(tmp_path)
    io.write(instance, tmp_path / "out.json")
    read = io.read(tmp_path / "out.json")
    assert (read, read.metadata) == (instance, instance.metadata)
    assert OpenbOptions(**read.metadata["options"]) == OpenbOptions(**SMALL)


@needs(POD_TRACE, NODE_TRACE)
def test_the_trace_of_openb_gives_a_congested_instance():
    instance = read_instance(POD_TRACE, nodes=NODE_TRACE)
    metadata = instance.metadata
    assert 12 <= len(instance.jobs) <= 20
    assert len(instance.cluster.worker_ids) + len(instance.cluster.ps_ids) >= 12
    assert metadata["rows"] == {"pods": 7255, "nodes": 1213}
    assert metadata["malformed"]["pods"]["never scheduled"]["count"] == 8152 - 7255
    assert metadata["cannot_finish"] == 0
    run = simulate(instance, OASiS.from_instance(instance))
    assert sum(not decision.admitted for decision in run.decisions) >= 1


@pytest.mark.parametrize(("wanted", "got"), [("pod", "nodes"), ("node", "pods")])
def test_of_two_files_the_wrong_one_is_named(tmp_path, wanted, got):
    imported(tmp_path)
    file = tmp_path / f"{got}.csv"
    with pytest.raises(InstanceError, match=f"{got}.csv: expected the {wanted} list of the openb"):
        read_instance(file, OpenbOptions(), nodes=file)


ROW = {"sn": "n0", "cpu_milli": "64000", "memory_mib": "262144", "gpu": "2", "model": "P100"}
FEW = OpenbOptions(worker_servers=3, ps_servers=2, server_bandwidth_gbps=12.5)


def node_list(folder, *rows):
    path = folder / "nodes.csv"
    lines = [",".join(ROW), *(",".join((ROW | row).values()) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return Nodes(path, FEW)


def test_milli_cores_and_mebibytes_become_cores_and_gigabytes(tmp_path):
    """262,144 MiB are 256 GiB, and those are 274.877906944 GB."""
    (node,) = node_list(tmp_path, {}).frame.itertuples()
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
def test_a_bad_cell_names_its_column(column, cell, tmp_path):
    with pytest.raises(InstanceError, match=f"^row 2: bad {column}; none of"):
        node_list(tmp_path, {column: cell})


def test_hosts_of_parameter_servers_come_without_their_gpus(tmp_path):
    cluster = node_list(tmp_path, *({"sn": f"n{k}"} for k in range(5))).cluster(FEW)
    assert {server.capacity["gpu"] for server in cluster.worker_servers} == {2.0}
    assert {server.capacity["gpu"] for server in cluster.ps_servers} == {0.0}
    for server in (*cluster.worker_servers, *cluster.ps_servers):
        assert server.capacity["cpu"] == 64.0
        assert server.capacity["bandwidth_gbps"] == 12.5


PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster"
ROWS = [
    "2017-10-03 10:00:00,7200.0,4,28800.0,blue",
    "2017-10-03 09:00:00,3600.0,2,7200.0,red",  # not in order of time
    "2017-10-03 09:45:00,3600.0,8,28800.0,blue",
]
TRACE = DATA / "philly_sia.csv"


def from_philly(tmp_path, rows, header=PHILLY, **options):
    path = tmp_path / "philly.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_instance(path, PhillyOptions(**options))


def test_rows_become_jobs_named_after_their_lines(tmp_path):
    instance = from_philly(tmp_path, ROWS)
    assert [job.id for job in instance.jobs] == ["philly-3", "philly-4", "philly-2"]
    assert [job.arrival for job in instance.jobs] == [0, 1, 2]
    assert [job.work(1800.0) for job in instance.jobs] == [4, 16, 16]
    assert [job.chunks for job in instance.jobs] == [4, 16, 8]
    assert instance.jobs[0].worker == {
        "gpu": 1.0,
        "cpu": 4.0,
        "memory_gb": 32.0,
        "bandwidth_gbps": 1.0,
    }


def test_the_cluster_is_what_the_options_say(tmp_path):
    options = {"worker_servers": 3, "gpus_per_server": 4, "ps_servers": 2, "ps_server_cpus": 6.0}
    cluster = from_philly(tmp_path, ROWS, **options).cluster
    assert cluster.resources == ("gpu", "cpu", "memory_gb", "bandwidth_gbps")
    assert cluster.worker_capacity.tolist() == [[4, 16, 128, 20]] * 3
    assert cluster.ps_capacity.tolist() == [[0, 6, 32, 20]] * 2


def test_a_virtual_cluster_can_be_chosen(tmp_path):
    instance = from_philly(tmp_path, ROWS, virtual_cluster="blue")
    assert [job.id for job in instance.jobs] == ["philly-4", "philly-2"]
    with pytest.raises(
        InstanceError, match=r"^virtual_cluster: expected one of blue, red, got 'gre"
    ):
        from_philly(tmp_path, ROWS, virtual_cluster="green")
    with pytest.raises(InstanceError, match=r"^user: expected a file with a column of it, got 'b"):
        from_philly(tmp_path, ROWS, user="blue")  # the table names no users


def test_the_window_can_begin_at_a_time(tmp_path):
    instance = from_philly(tmp_path, ROWS, start="2017-10-03 09:30:00")
    assert [(job.id, job.arrival) for job in instance.jobs] == [("philly-4", 0), ("philly-2", 1)]
    again = from_philly(tmp_path, ROWS, start=instance.metadata["window_start"])
    assert again == instance
    with pytest.raises(ValueError, match=r"^start: expected busiest, first or a time such as"):
        from_philly(tmp_path, ROWS, start="noon")


def test_every_assumption_on_philly_is_recorded_and_survives_the_file(tmp_path):
    instance = from_philly(tmp_path, ROWS, seed=5)
    io.write(instance, tmp_path / "out.json")
    read = io.read(tmp_path / "out.json")
    assert read == instance
    assert read.metadata == instance.metadata
    assert PhillyOptions(**read.metadata["options"]) == PhillyOptions(seed=5)
    assert str(tmp_path) not in (tmp_path / "out.json").read_text()


@needs(TRACE)
def test_the_trace_of_philly_gives_a_congested_instance():
    instance = read_instance(TRACE)
    metadata = instance.metadata
    assert 12 <= len(instance.jobs) <= 20
    assert len(instance.cluster.worker_ids) + len(instance.cluster.ps_ids) >= 12
    assert metadata["rows"] == {"jobs": 82247}
    assert metadata["malformed"] == {}  # the blank line at its end is no row
    assert metadata["rows"]["jobs"] == len(instance.jobs) + sum(metadata["left_out"].values())
    assert metadata["cannot_finish"] == 0
    run = simulate(instance, OASiS.from_instance(instance))
    assert sum(not decision.admitted for decision in run.decisions) >= 1
