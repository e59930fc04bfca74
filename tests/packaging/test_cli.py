"""The ``oasis`` command: what no recorded output shows of ``ratio``, ``solve`` and ``import``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import oasis
from tests.packaging.commands import EXAMPLE, Oasis, shell


def test_without_a_command_the_help_is_printed_and_the_usage_is_bad() -> None:
    code, out, err = shell()
    assert code == 2
    assert "Usage: oasis" in out + err
    assert "Traceback" not in err


def test_ratio_says_by_one_name_one_number(run: Oasis, small: Path) -> None:
    """Text and JSON of the constants of Theorem 4: the same words, the same values."""
    out = run("ratio", small, "--theory")[1]
    theory = out.partition("Theorem 4\n")[2]
    told = dict(re.findall(r"^(.+?) {2,}([^\s,]+)", theory, re.MULTILINE))
    document = json.loads(run("ratio", small, "--json")[1])
    names = {
        "2 alpha": "bound_2alpha",
        "corrected ratio bound": "corrected_ratio_bound",
        "corrected bound": "corrected_bound",
        "ln alpha_x": "log_alpha_x",
        "payoff gap G": "payoff_gap",
        "initial dual D_0": "initial_dual",
    }
    assert told == {words: f"{document[key]:.6g}" for words, key in names.items()}


def test_ratio_has_no_theory_of_a_policy_without_prices(run: Oasis, small: Path) -> None:
    code, out, _ = run("ratio", small, "--policy", "fifo", "--theory")
    assert (code, "fifo's run has no prices" in out) == (0, True)


PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
pod-0,8000,16384,1,1000,,LS,Succeeded,0,10000,100
pod-1,8000,16384,1,500,,BE,Succeeded,3600,30000,3700
pod-2,8000,16384,1,1000,,BE,Pending,3700,30000,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,P100
node-1,64000,262144,2,P100
node-2,96000,786432,8,V100M16
"""


def test_import_openb_takes_pods_and_nodes(run: Oasis, tmp_path: Path) -> None:
    pods, nodes, path = (tmp_path / name for name in ("pods.csv", "nodes.csv", "openb.json"))
    pods.write_text(PODS, encoding="utf-8")
    nodes.write_text(NODES, encoding="utf-8")
    sizes = ("--worker-servers", 1, "--ps-servers", 1)
    code, out, _ = run("import", "openb", pods, nodes, "-o", path, *sizes)
    assert (code, out) == (0, "")
    instance = oasis.read(path)
    assert [job.id for job in instance.jobs] == ["pod-0", "pod-1"]
    assert instance.cluster.worker_ids == ("node-0",)
    assert run("ratio", path)[0] == 0


def no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def test_limit_before_a_proof_prints_the_interval_and_ends_with_3(run: Oasis) -> None:
    code, out, _ = run("ratio", EXAMPLE, "--time-limit", 0)
    assert code == 3
    assert re.search(r"between \S+ and \S+ \(not proven: time_limit\)", out)
    code, out, _ = run("ratio", EXAMPLE, "--time-limit", 0, "--json")
    document = json.loads(out, parse_constant=no_constant)
    assert code == 3
    assert document["proven"] is False
    assert document["ratio"] is None
    assert document["ratio_lower"] <= document["ratio_upper"]
    code, out, _ = run("solve", EXAMPLE, "--time-limit", 0, "--json")
    assert code == 3
    assert json.loads(out)["status"] == "time_limit"


@pytest.mark.parametrize(
    ("command", "where"), [("solve", "parameters"), ("ratio", "offline_parameters")]
)
def test_infinite_time_limit_is_no_limit_and_null_in_json(
    run: Oasis, small: Path, tmp_path: Path, command: str, where: str
) -> None:
    path = tmp_path / "result.json"
    code, out, _ = run(command, small, "--time-limit", "inf", "--json", "-o", path)
    assert code == 0
    document = json.loads(out, parse_constant=no_constant)
    assert document["status"] == "optimal"
    assert document[where]["time_limit"] is None
    assert json.loads(path.read_text(encoding="utf-8")) == document
