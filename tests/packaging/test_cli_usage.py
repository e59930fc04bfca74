"""Bad usage of the ``oasis`` command: one line that says what and where; and what ends a solve."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.packaging.commands import EXAMPLE, SWEEP, Oasis, assert_refused

ROWS = Path(__file__).with_name("usage.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("row", ROWS)
def test_bad_usage_is_one_line_and_2(
    run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    line, mention = row.split(" => ")
    monkeypatch.chdir(tmp_path)
    for file in (EXAMPLE, SWEEP):
        shutil.copy(file, tmp_path)
    assert_refused(run(*shlex.split(line)), mention)
    assert {path.name for path in tmp_path.iterdir()} == {EXAMPLE.name, SWEEP.name}


@pytest.mark.parametrize("command", ["solve", "ratio"])
def test_a_solve_ends_at_the_gap_that_was_asked_for(run: Oasis, command: str) -> None:
    options = ("--work-limit", "20", "--gap", "0.5", "--no-improvement", "10", "--json")
    code, out, _ = run(command, EXAMPLE, *options)
    document = json.loads(out)
    assert (code, document["status"]) == (3, "gap_limit")
    assert 1e-6 < document["gap"] <= 0.5
