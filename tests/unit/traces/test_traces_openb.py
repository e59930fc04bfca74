"""The openb importer, on small files written here and on the trace where there is one."""

import os
from pathlib import Path

import pytest

from oasis import InstanceError, OASiS, simulate
from oasis.model import instance_file as io
from oasis.traces import OpenbOptions, read_instance

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
needs_trace = pytest.mark.skipif(
    not (POD_TRACE.exists() and NODE_TRACE.exists()), reason=f"no openb trace at {DATA}"
)


def imported(tmp_path, pods=PODS, nodes=NODES, pod_header=POD_HEADER, **options):
    paths = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    for path, header, rows in zip(paths, (pod_header, NODE_HEADER), (pods, nodes), strict=True):
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


def test_a_service_class_can_be_chosen(tmp_path):
    assert [job.id for job in imported(tmp_path, qos="LS").jobs] == ["p1"]


def test_jobs_with_parts_of_gpus_can_be_left_out(tmp_path):
    instance = imported(tmp_path, parts="leave-out")
    assert [job.id for job in instance.jobs] == ["p1"]
    assert instance.metadata["kept"] == (
        "kept 1 of 4 jobs: 1 never scheduled, 1 by parts (leave-out), 1 by GPUs (1..8)"
    )


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


def test_every_kind_of_malformed_row_is_reported(tmp_path):
    pods = [
        POD_HEADER,
        "",
        "q,1,1",
        ",8000,16000,1,500,,BE,Running,1000,15000,4600",
        "p0,8000,16000,1,500,,BE,Running,1000,15000,4600",
        "q,x,16000,1,500,,BE,Running,1000,15000,4600",
        "q,8000,-1,1,500,,BE,Running,1000,15000,4600",
        "q,8000,16000,1.5,500,,BE,Running,1000,15000,4600",
        "q,8000,16000,1,0,,BE,Running,1000,15000,4600",
        "q,8000,16000,2,2000,,BE,Running,1000,15000,4600",
        "q,8000,16000,1,500,,BE,Running,,15000,4600",
        "q,8000,16000,1,500,,BE,Running,1000,never,4600",
        "q,8000,16000,1,500,,BE,Running,1000,15000,soon",
        "q,8000,16000,1,500,,BE,Running,1000,4600,4600",
    ]
    nodes = ["n0,64000,1,2,T4", "m,64000,1,two,T4", "m,64000,1,-2,T4", "m,,1,2,T4", "m,1,?,2,T4"]
    with pytest.raises(
        InstanceError, match=r"11 of the 14 rows of pods.csv cannot be used; --allow"
    ):
        imported(tmp_path, [*PODS, *pods], [*NODES, *nodes])
    instance = imported(tmp_path, [*PODS, *pods], [*NODES, *nodes], allow_malformed=True)
    assert [job.id for job in instance.jobs] == ["p0", "p1"]
    kinds = {
        "never scheduled": (1, 5),
        "repeated header": (1, 6),
        "blank row": (1, 7),
        "wrong number of columns": (1, 8),
        "no name": (1, 9),
        "repeated name": (1, 10),
        "bad cpu_milli": (1, 11),
        "bad memory_mib": (1, 12),
        "bad num_gpu": (1, 13),
        "bad gpu_milli": (2, 14),
        "bad creation_time": (1, 16),
        "bad deletion_time": (1, 17),
        "bad scheduled_time": (1, 18),
        "never ran": (1, 19),
    }
    node_kinds = {
        "repeated sn": (1, 10),
        "bad gpu": (2, 11),
        "bad cpu_milli": (1, 13),
        "bad memory_mib": (1, 14),
    }
    for name, expected in (("pods", kinds), ("nodes", node_kinds)):
        found = instance.metadata["malformed"][name]
        assert {
            k.partition(":")[0]: (v["count"], v["first_row"]) for k, v in found.items()
        } == expected


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(InstanceError, match=r"^column qos: expected this column once"):
        imported(tmp_path, pod_header=POD_HEADER.replace("qos", "class"))


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


@needs_trace
def test_the_real_trace_gives_a_congested_instance():
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
