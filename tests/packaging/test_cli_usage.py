"""Bad usage of the ``oasis`` command: one line that says what and where; and what ends a solve."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.packaging.commands import ELASTIC, EXAMPLE, JOB, SWEEP, Oasis, assert_refused, shell

HERE = Path(__file__).parent
ROWS = (HERE / "usage.txt").read_text(encoding="utf-8").splitlines()
FILES = tomllib.loads((HERE / "usage_files.toml").read_text(encoding="utf-8"))
FILES |= {file.name: file.read_text(encoding="utf-8") for file in (ELASTIC, EXAMPLE, JOB, SWEEP)}


@pytest.mark.parametrize("row", ROWS)
def test_bad_usage_is_one_line_and_2(
    run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    line, mention = row.split(" => ")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # of policies
    for name in FILES.keys() & {EXAMPLE.name, "mine.py", *shlex.split(line)}:
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    before = set(tmp_path.iterdir())
    assert_refused(run(*shlex.split(line)), mention)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["solve", "ratio"])
def test_a_solve_ends_at_the_gap_that_was_asked_for(run: Oasis, command: str) -> None:
    options = ("--work-limit", "20", "--gap", "0.5", "--no-improvement", "10", "--json")
    code, out, _ = run(command, EXAMPLE, *options)
    document = json.loads(out)
    assert (code, document["status"]) == (3, "gap_limit")
    assert 1e-6 < document["gap"] <= 0.5


def test_without_a_command_the_help_is_printed_and_the_usage_is_bad() -> None:
    code, out, err = shell()
    assert code == 2
    assert "Usage: oasis" in out + err
    assert "Traceback" not in err


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
