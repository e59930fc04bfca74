"""The wrong file at the command line: one line that says what was expected and what it is."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import EXAMPLE, JOB, ROOT, SMALL, SWEEP, assert_refused

ELASTIC = ROOT / "docs" / "examples" / "elastic.json"
TEXTS = {
    "jobs.csv": "id,submitted,duration,gpus\na,0,60,1\n",
    "sacct.txt": "JobID|Submit|ElapsedRaw|AllocTRES\n1|2024-03-01T08:00:00|60|gres/gpu=1\n",
    "log.swf": "1 0 10 7200 4 -1 -1 4 7200 -1 1 3 1 -1 1 -1 -1 -1\n",
    "run.json": '{"kind": "run"}',
    "compare.json": '{"kind": "compare"}',
    "replay.json": '{"kind": "replay", "jobs": 2, "format": "plain"}',
    "replay elastic.json": '{"kind": "replay", "jobs": 2, "format": "oasis-elastic-workload"}',
    "prices.json": '{"format": "oasis-prices"}',
    "instance.json": json.dumps(SMALL),
    "elastic.json": ELASTIC.read_text(encoding="utf-8"),
    "job.json": JOB.read_text(encoding="utf-8"),
    "sweep.toml": SWEEP.read_text(encoding="utf-8"),
}
LOOKS = {  # of files that say what they are
    "run.json": "a result of oasis run",
    "compare.json": "a result of oasis compare",
    "replay.json": "a result of oasis replay",
    "replay elastic.json": "a result of oasis replay",
    "prices.json": "a file of learned prices",
    "instance.json": "an instance",
    "elastic.json": "a workload of elastic jobs",
}
RESULTS = {"run.json", "compare.json", "replay.json", "replay elastic.json"}
PLACES: dict[str, tuple[list[Any], str, set[str]]] = {  # words, what is expected, what it takes
    "describe": (["describe", "FILE"], "an instance", {"instance.json"}),
    "learn": (["learn", "FILE", "-o", "out"], "an instance", {"instance.json"}),
    "compare": (["compare", "FILE"], "an instance or a w", {"instance.json", "elastic.json"}),
    "quote": (["quote", EXAMPLE, "FILE"], "one job", {"job.json"}),
    "verify": (["verify", EXAMPLE, "FILE"], "a result", RESULTS),
    "plot": (["plot", "FILE", "-o", "a.png"], "a result", RESULTS),
    "report": (["report", "FILE", "-o", "a.html"], "a result", RESULTS),
    "from": (["run", "--from", "FILE"], "a result of oasis run", {"run.json"}),
    "bounds": (["run", EXAMPLE, "--bounds", "FILE"], "a file of learned", {"prices.json"}),
    "sweep": (["sweep", "FILE"], "the configuration of a sweep, which is TOML", {"sweep.toml"}),
    "replay": (
        ["replay", "FILE"],
        "a trace (plain, philly, slurm, swf, openb, helios,",
        {"jobs.csv", "sacct.txt", "log.swf", "elastic.json"},
    ),
    "plain": (["import", "plain", "FILE", "-o", "out"], "a CSV file of jobs", {"jobs.csv"}),
    "slurm": (["import", "slurm", "FILE", "-o", "out"], "output of Slurm's", {"sacct.txt"}),
    "swf": (["import", "swf", "FILE", "-o", "out"], "a log in the Standard", {"log.swf"}),
    "pods": (["import", "openb", "FILE", EXAMPLE, "-o", "out"], "the pod list", set()),
}
BINARY = {
    "parquet": (b"PAR1\x15\x04\x15\x10", "expected text, got what looks like a Parquet file"),
    "unknown": (bytes(range(256)), "expected UTF-8 text, got binary data, which begins with 00 01"),
    "cut off": (gzip.compress(b"a" * 99)[:-3], "expected a whole gzip file, got a damaged or inc"),
}
READ_PARQUET = ("replay", "plain", "slurm", "swf", "pods")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    return run


@pytest.mark.parametrize("place", PLACES)
def test_every_other_kind_is_refused_by_name(call: Call, tmp_path: Path, place: str) -> None:
    words, expected, own = PLACES[place]
    for name in TEXTS.keys() - own:
        path = tmp_path / name
        path.write_text(TEXTS[name], encoding="utf-8")
        result = call(*(path if word == "FILE" else word for word in words))
        if name in LOOKS and place != "sweep":
            assert_refused(result, f"{path}: expected {expected}", f"looks like {LOOKS[name]}\n")
        elif name == "job.json" or "import" in words or place == "replay":
            assert_refused(result, f"{path}: ")  # what is missing in it is told
        else:
            assert_refused(result, f"{path}: expected {expected}")
        path.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("place", [name for name in PLACES if name != "report"])
def test_bytes_never_reach_the_terminal(call: Call, tmp_path: Path, place: str, kind: str) -> None:
    content, message = BINARY[kind]
    if kind == "parquet" and place in READ_PARQUET:
        message = "expected a whole Parquet file"
    if kind == "parquet" and place == "plot":
        message = "expected a Parquet file as `oasis sweep` writes it"
    path = tmp_path / "file.json"
    path.write_bytes(content)
    result = call(*(path if word == "FILE" else word for word in PLACES[place][0]))
    assert_refused(result, f"{path}: {message}")
    assert result[2].isprintable() or result[2][:-1].isprintable()


def test_what_a_terminal_would_obey_is_escaped(call: Call, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,\x1b[31msubmitted,gpus\n1,2,3\n", encoding="utf-8")
    assert_refused(call("replay", "jobs.csv"), r"jobs.csv: id,\x1b[31msubmitted,gpus")


@pytest.mark.parametrize("name", ["instance.json", "elastic.json", "jobs.csv", "sacct.txt"])
def test_a_dash_is_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    commands = {
        "instance.json": [["describe"], ["run"], ["compare", "--policies", "fifo"]],
        "elastic.json": [["replay", "--policies", "fifo"], ["compare", "--policies", "fifo"]],
        "jobs.csv": [["replay"], ["import", "plain", "--all", "-o", "out"]],
        "sacct.txt": [["replay"], ["import", "slurm", "--all", "-o", "out"]],
    }
    for words in commands[name]:
        content = io.BytesIO(gzip.compress(TEXTS[name].encode()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
        code, _, err = call(*words, "-")
        assert code == 0, err
