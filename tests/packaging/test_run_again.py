"""``--set`` reaches every option, and ``oasis run --from`` makes a result again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.commands import EXAMPLE, SMALL, Oasis, assert_refused
from tests.unit.experiments.unusual import UNUSUAL

MEASURED = "decision_seconds"


def settings(policy: str) -> list[str]:
    """``--set`` for each option that is not the default."""
    words = []
    for option, value in UNUSUAL[policy].items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += ["--set", f"{policy}.{option}={text}"]
    return words


def unmeasured(text: str) -> str:
    """A result without its measured times, as text: the order of keys counts."""
    document = json.loads(text)
    del document[MEASURED]
    return json.dumps(document, indent=1)


@pytest.mark.parametrize("policy", UNUSUAL)
def test_a_result_is_made_again_to_the_byte(
    run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("instance.json").write_bytes(EXAMPLE.read_bytes())
    words = ("run", "instance.json", "--policy", policy, *settings(policy))
    code, first, err = run(*words, "--json", "-o", "result.json")
    assert (code, err) == (0, "")
    document = json.loads(first)
    none = {"prices": None, "trust": 0.0} if policy == "oasis" else {}
    assert document["parameters"] == {**none, **UNUSUAL[policy]}
    for again in (("--from", "result.json"), ("instance.json", "--from", "result.json")):
        code, second, err = run("run", *again, "--json")
        assert (code, err) == (0, "")
        assert unmeasured(second) == unmeasured(first)


@pytest.mark.parametrize("option", UNUSUAL["oasis"])
def test_short_flags_of_oasis_are_options_like_others(run: Oasis, option: str) -> None:
    value = UNUSUAL["oasis"][option]
    flag = f"--{option.replace('_', '-')}"
    short = ["--raw-units"] if option == "normalize" else [flag, str(value)]
    by_flag = json.loads(run("run", EXAMPLE, *short, "--json")[1])
    by_set = json.loads(run("run", EXAMPLE, "--set", f"oasis.{option}={value}", "--json")[1])
    assert by_flag["parameters"] == by_set["parameters"]
    assert by_flag["parameters"][option] == value


# --- results that do not fit --------------------------------------------------------------------


@pytest.fixture
def result(run: Oasis, small: Path) -> Path:
    path = small.with_name("result.json")
    assert run("run", small, "--policy", "fifo", "-o", path)[0] == 0
    return path


def change(path: Path, **entries: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | entries), encoding="utf-8")


def test_an_instance_in_another_layout_is_the_same(run: Oasis, small: Path, result: Path) -> None:
    moved = small.with_name("moved.json")
    moved.write_text(json.dumps(SMALL, indent=3), encoding="utf-8")
    small.unlink()
    assert_refused(run("run", "--from", result), str(small))
    assert run("run", moved, "--from", result)[0] == 0


def test_another_version_is_said_and_run(run: Oasis, result: Path) -> None:
    change(result, version="0.0.1")
    code, out, err = run("run", "--from", result, "--json")
    assert code == 0
    assert json.loads(out)["policy"] == "fifo"
    assert err.startswith("the result is of version 0.0.1, this is ")


PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:02,1.0,1,1.0,vc1
2017-10-09 07:00:00,10.0,3,30.0,vc1

2017-10-09 07:00:01,5.0,2,10.0,vc1
2017-10-09 07:00:01,5.0,x,10.0,vc1
2017-10-09 07:00:00,5.0,16,80.0,vc2
"""
SLURM = """\
JobID;User;Submit;ElapsedRaw;State;AllocTRES
1;ann;01.03.2024 08:00;600;COMPLETED;gres/gpu=2
1;ann;01.03.2024 08:30;600;COMPLETED;gres/gpu=2
2;bob;01.03.2024 08:01;300;COMPLETED;gres/gpu=1
3;ann;01.03.2024 08:02;300;COMPLETED;gres/gpu=9
4;ann;01.03.2024 08:03;5;COMPLETED;gres/gpu=1
5;ann;01.03.2024 08:04;7;COMPLETED;gres/gpu=3
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (PHILLY, "--virtual-cluster vc1 --skip 1 --max-jobs 1 --servers 1 --gpus-per-server 3"),
        (PHILLY, "--max-gpus 8 --any-year --placement whole --policies easy,las --line fit"),
        (
            SLURM,
            "--runs last --user ann --time-format '%d.%m.%Y %H:%M' --time-zone Europe/Berlin "
            "--duration-unit min --delimiter ';' --max-gpus 4 --skip 1 --max-jobs 2",
        ),
        (SLURM, "--format slurm --time-format '%d.%m.%Y %H:%M' --allow-malformed --servers 3"),
    ],
)
def test_the_command_of_a_report_repeats_every_option(
    run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trace.csv").write_text(text, encoding="utf-8")

    def document(words: list[str]) -> Any:
        code, out, _ = run("replay", *words, "--json")
        assert code == 0
        found = json.loads(out)
        for row in found["policies"].values():
            for name in ("policy_seconds", "simulator_seconds", "jobs_per_second"):
                del row[name]
        return found

    first = document(["trace.csv", *shlex.split(options)])
    assert document(shlex.split(first["command"])[2:]) == first
