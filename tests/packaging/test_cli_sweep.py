"""``oasis sweep`` at the command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from experiments.sweep import CellResult, expand, read_config, read_frame
from experiments.sweep.store import ResultStore
from tests.packaging.commands import Oasis

GRID = """
seeds = [0, 1]
[[instances]]
preset = "testbed"
jobs = [3, 5]
[[policies]]
name = "oasis"
scale = [1.0, 2.0]
[[policies]]
name = "drf"
"""
CELLS = 12


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID, encoding="utf-8")
    return path


@pytest.fixture
def call(run: Oasis, monkeypatch: pytest.MonkeyPatch) -> Oasis:
    monkeypatch.setenv("COLUMNS", "100")
    return partial(run, "sweep")


def fail(grid: Path, k: int) -> None:
    """Record cell `k` as failed."""
    cell = expand(read_config(grid))[k]
    store = ResultStore.beside(grid.with_suffix(".parquet"))
    store.save(cell.key, cell.identity, CellResult("failed", {}, "ValueError: bad luck"))


def test_table_has_a_row_a_point_and_the_file_a_row_a_cell(call, grid: Path) -> None:
    code, out, err = call(grid)
    assert code == 0
    title, heading, *lines = out.splitlines()
    rows, notes = lines[:6], " ".join(lines[6:])  # notes are wrapped to the page
    assert title == "Mean over the seeds ± half of its 95 % interval"
    assert "*: the interval is cut off where no value can be, so it is not symmetrical" in notes
    assert "†: of the finished jobs only. Not finished: jobs=3 oasis scale=1 1, " in notes
    assert any("*" in row for row in rows)
    figures = ["total_utility", "finished", "mean_completion"]
    assert heading.split() == ["instance", "policy", "seeds", *figures]
    assert [row.split("  ")[0] for row in rows] == ["jobs=3"] * 3 + ["jobs=5"] * 3
    interval = re.compile(r" [\d.]+ (?:± [\d.]+|\([\d.]+ to [\d.]+\)\*)†?(?= |$)")
    found = [len(interval.findall(row)) for row in rows]
    assert found == [3, 3, 2, 3, 3, 3]  # with DRF, jobs finish with one of the two seeds only
    assert rows[2].endswith(" (of 1)")
    output = grid.with_suffix(".parquet")
    (*_, last) = err.splitlines()  # a slow machine says before it how far it is
    assert last == f"wrote {output}: {CELLS} cells run, 0 recorded before"
    assert len(read_frame(output)) == CELLS


def test_dry_run_lists_cells_with_their_state_and_runs_none(call, grid: Path) -> None:
    fail(grid, 3)
    code, out, err = call(grid, "--dry-run")
    assert (code, err) == (0, "")
    title, _, *rows = out.splitlines()
    assert title == f"{CELLS} cells"
    states = ["failed" if row.endswith("failed") else row[-6:] for row in rows]
    assert states == ["to run"] * 3 + ["failed"] + ["to run"] * 8
    assert rows[3].split() == ["jobs=3", "oasis", "scale=2", "1", "failed"]
    code, out, _ = call(grid, "--dry-run", "--json")
    cells = json.loads(out)["cells"]
    assert (cells[3]["instance.jobs"], cells[3]["policy.scale"], cells[3]["seed"]) == (3, 2.0, 1)
    assert not grid.with_suffix(".parquet").exists()


def test_failed_cells_end_with_4_and_are_run_again_when_asked(call, grid: Path) -> None:
    fail(grid, 0)
    code, out, err = call(grid)
    assert code == 4
    assert "1 (1 failed)" in out
    assert "1 failed: ValueError: bad luck\n" in err
    code, out, _ = call(grid, "--json")
    (failure,) = json.loads(out)["failures"]
    assert code == 4
    assert failure == {
        "instance.jobs": 3,
        "policy.name": "oasis",
        "policy.scale": 1.0,
        "seed": 0,
        "error": "ValueError: bad luck",
    }
    code, _, err = call(grid, "--retry-failed")
    assert code == 0
    assert f"1 cell run, {CELLS - 1} recorded before" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = 0", "grid.toml: instances: missing; this key is required"),
        (
            GRID.replace('preset = "testbed"\njobs = [3, 5]', 'file = "x"'),
            "x: No such file or directory",
        ),
    ],
)
def test_wrong_configuration_names_file_and_key(call, grid: Path, text: str, message: str) -> None:
    grid.write_text(text, encoding="utf-8")
    code, out, err = call(grid)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
