"""``oasis replay`` of a file of elastic jobs."""

import json
from functools import partial
from pathlib import Path

import pytest

import baselines
from experiments.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "elastic.json"


@pytest.fixture
def run(run):
    return partial(run, "replay")


def test_the_table_is_that_of_a_plain_trace(run):
    code, out, err = run(EXAMPLE, "--policies", "fifo,kubernetes-default")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "12 elastic jobs on 2 machines with 8 GPUs"
    assert [line.split()[0] for line in lines[2:4]] == ["fifo", "kubernetes-default"]
    assert lines[4:] == ["not shown for want of width: GPU use; --json has them"]
    assert all(len(line) <= 80 for line in lines)


def test_every_policy_of_the_registry_runs_and_says_what_changes_cost(run):
    names = [name for name in baselines.ALL if name != "dorm"]
    code, out, err = run(EXAMPLE, "--policies", ",".join(names), "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["jobs"], document["machines"]) == (12, 2)
    assert document["format"] == "oasis-elastic-workload"
    for found in document["policies"].values():
        assert found["finished"] == 12
        assert 0 < found["use"]["gpu"] == found["gpu_utilisation"] <= 1
        times = sum(found[key] for key in ("mean_waiting", "mean_running", "mean_overhead"))
        assert times == pytest.approx(found["mean_completion"])
    assert document["policies"]["drf"]["resizes"] > 0
    assert document["policies"]["fifo"]["restarts"] == 0


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_what_comes_of_elastic_jobs_can_be_drawn_and_reported(command, tmp_path, capfd):
    """The document names the format of its jobs; it is a result nevertheless."""
    result, page, picture = (tmp_path / name for name in ("r.json", "r.html", "r.svg"))
    for words in (
        [command, EXAMPLE, "--policies", "fifo,drf", "-o", result],
        ["plot", result, "-o", picture],
        ["report", result, "-o", page],
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert ended.value.code == 0, capfd.readouterr().err
    assert picture.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert f"oasis {command} {EXAMPLE}" in page.read_text(encoding="utf-8")


def test_a_file_is_known_by_its_content_too(run, tmp_path):
    path = tmp_path / "jobs"
    path.write_bytes(b"\n " + EXAMPLE.read_bytes())
    assert run(path, "--policies", "fifo")[1].startswith("12 elastic jobs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--servers", "8"), "--servers: is for plain traces, not for a file of elastic jobs"),
        (("--max-gpus", "8"), "--max-gpus: is for plain traces"),
        (("--policies", "lifo"), "--policies: expected one of fifo, "),
    ],
)
def test_bad_usage_is_one_line(run, arguments, message):
    code, out, err = run(EXAMPLE, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_a_bad_file_is_one_line_that_names_the_field(run, tmp_path):
    data = json.loads(EXAMPLE.read_text())
    data["jobs"][3]["work"] = "long"
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    code, out, err = run(path)
    assert (code, out) == (2, "")
    assert err == f"oasis: {path}: jobs[3].work: expected a finite number > 0, got 'long'\n"
