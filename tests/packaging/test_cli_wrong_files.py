"""The wrong file at the command line: one line that says what was expected and what it is."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.commands import ELASTIC, EXAMPLE, assert_refused

FILES = Path(__file__).parents[1] / "recorded/files"
PLACES = """
describe FILE
learn FILE -o out
compare FILE
quote EXAMPLE FILE
verify EXAMPLE FILE
plot FILE -o a.png
run --from FILE
run EXAMPLE --bounds FILE
sweep FILE
replay FILE
import plain FILE -o out
import slurm FILE -o out
import swf FILE -o out
import openb FILE EXAMPLE -o out
"""
BINARY = {
    "parquet": (b"PAR1\x15\x04\x15\x10", "expected text, got what looks like a Parquet file"),
    "unknown": (bytes(range(256)), "expected UTF-8 text, got binary data, which begins with 00 01"),
    "cut off": (gzip.compress(b"a" * 99)[:-3], "expected a whole gzip file, got a damaged or inc"),
}
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    return run


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("place", PLACES.strip().splitlines())
def test_bytes_never_reach_the_terminal(call: Call, tmp_path: Path, place: str, kind: str) -> None:
    content, message = BINARY[kind]
    if kind == "parquet" and place.startswith(("replay", "import")):
        message = "expected a whole Parquet file"
    if kind == "parquet" and place.startswith("plot"):
        message = "expected a Parquet file as `oasis sweep` writes it"
    path = tmp_path / "file.json"
    path.write_bytes(content)
    given = {"FILE": path, "EXAMPLE": EXAMPLE}
    result = call(*(given.get(word, word) for word in place.split()))
    assert_refused(result, f"{path}: {message}")
    assert result[2].isprintable() or result[2][:-1].isprintable()


def test_what_a_terminal_would_obey_is_escaped(call: Call, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,\x1b[31msubmitted,gpus\n1,2,3\n", encoding="utf-8")
    assert_refused(call("replay", "jobs.csv"), r"jobs.csv: id,\x1b[31msubmitted,gpus")


@pytest.mark.parametrize("path", [EXAMPLE, ELASTIC, FILES / "jobs.csv", FILES / "sacct.txt"])
def test_a_dash_is_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    commands = {
        "congested.json": [["describe"], ["run"], ["compare", "--policies", "fifo"]],
        "elastic.json": [["replay", "--policies", "fifo"], ["compare", "--policies", "fifo"]],
        "jobs.csv": [["replay"], ["import", "plain", "--all", "-o", "out"]],
        "sacct.txt": [["replay"], ["import", "slurm", "--all", "-o", "out"]],
    }
    for words in commands[path.name]:
        content = io.BytesIO(gzip.compress(path.read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
        code, _, err = call(*words, "-")
        assert code == 0, err
