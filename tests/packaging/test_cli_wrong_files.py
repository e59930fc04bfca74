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

from tests.packaging.commands import ELASTIC, EXAMPLE, JOB, SMALL, SWEEP, assert_refused

DATA = json.loads(Path(__file__).with_name("wrong_files.json").read_text(encoding="utf-8"))
TEXTS = DATA["texts"] | {
    "instance.json": json.dumps(SMALL),
    **{file.name: file.read_text(encoding="utf-8") for file in (ELASTIC, JOB, SWEEP)},
}
LOOKS, PLACES = DATA["looks"], DATA["places"]  # of files that say what they are; what reads them
BINARY = {
    "parquet": (b"PAR1\x15\x04\x15\x10", "expected text, got what looks like a Parquet file"),
    "unknown": (bytes(range(256)), "expected UTF-8 text, got binary data, which begins with 00 01"),
    "cut off": (gzip.compress(b"a" * 99)[:-3], "expected a whole gzip file, got a damaged or inc"),
}
READ_PARQUET = ("replay", "plain", "slurm", "swf", "pods")
Call = Callable[..., tuple[int, str, str]]


def words_of(place: str) -> list[Any]:
    return [EXAMPLE if word == "EXAMPLE" else word for word in PLACES[place]["words"]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    return run


@pytest.mark.parametrize("place", PLACES)
def test_every_other_kind_is_refused_by_name(call: Call, tmp_path: Path, place: str) -> None:
    words, expected = words_of(place), PLACES[place]["expected"]
    for name in TEXTS.keys() - PLACES[place]["takes"]:
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
    result = call(*(path if word == "FILE" else word for word in words_of(place)))
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
