"""The table of a sweep on a page: means with intervals, pictures, and the grid to run it again."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.builders import exit_code as oasis_command

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("jinja2", reason="needs the report extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

import pyarrow as pa
from pyarrow import parquet

import oasis
from experiments.figures import FIGURES
from experiments.plotting.comparison import (
    MOST_POINTS,
    is_table,
    means_page,
    plot_means,
    read_sweep,
)
from experiments.report.sections import grid_of, report_page, sweep_section, toml_of
from experiments.sweep import expand, run_sweep, summarise, sweep_config
from experiments.sweep.summary import columns_of, label, notes_of, rows_of
from oasis.model.errors import InputError

SMALL = {"preset": "testbed", "jobs": [3, 4], "worker_servers": 3, "ps_servers": 2, "horizon": 8}
GRIDS: dict[str, dict[str, Any]] = {
    "run": {
        "seeds": {"first": 3, "count": 3},
        "instances": [SMALL],
        "policies": [{"name": "oasis", "scale": [0.5, 1.0]}, {"name": ["fifo", "drf"]}],
    },
    "ratio": {
        "seeds": [1, 5],
        "task": {"name": "ratio", "work_limit": 2.0, "method": "milp"},
        "instances": [{**SMALL, "jobs": 3, "priority": [[1.0, 100.0], [75.0, 100.0]]}],
        "policies": [{"name": "oasis"}],
    },
    "unlimited": {
        "seeds": [2],
        "task": {"name": "ratio", "time_limit": float("inf"), "method": "milp"},
        "instances": [{**SMALL, "jobs": 3}],
        "policies": [{"name": "fifo"}],
    },
    "any gap": {
        "seeds": [2],
        "task": {"name": "ratio", "work_limit": 2.0, "gap": float("inf"), "method": "milp"},
        "instances": [{**SMALL, "jobs": 3}],
        "policies": [{"name": "fifo"}],
    },
    "lateness": {
        "seeds": [0],
        "task": {"name": "lateness"},
        "instances": [SMALL],
        "policies": [{"name": "las", "line": "fit", "thresholds": [0.5, 2.0]}],
    },
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The Parquet files of the grids."""
    folder = tmp_path_factory.mktemp("sweeps")
    paths = {name: folder / f"{name}.parquet" for name in GRIDS}
    for name, path in paths.items():
        run_sweep(sweep_config(GRIDS[name]), path)
    return paths


def test_a_sweep_has_its_grid_means_with_intervals_and_pictures_on_the_page(
    tables: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert oasis_command("report", tables["run"], tables["ratio"], "-o", page) == 0
    assert capsys.readouterr().err == f"wrote {page}: 2 results\n"
    text = page.read_text(encoding="utf-8")
    assert "Sweep: 24 cells, 4 policies, 2 instances, 3 seeds" in text
    assert "Sweep: 4 cells, 1 policy, 2 instances, 2 seeds" in text
    assert text.count('<img src="data:image/svg+xml;base64,') == 2
    assert "http" not in text
    assert "oasis scale=0.5 and oasis scale=1 earn the same on 3 shared seeds, jobs=3" in text
    assert "<th>proven" not in text
    picture = tmp_path / "sweep.svg"
    assert oasis_command("plot", tables["run"], "-o", picture) == 0
    assert picture.read_bytes().startswith(b"<?xml")
    assert capsys.readouterr().err == f"wrote {picture}\n"
    result = run_sweep(sweep_config(GRIDS["run"]), tables["run"])
    shown = [
        tuple(unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row))
        for row in re.findall(r"<tr>(.*?)</tr>", text)
    ]
    means = summarise(result.frame, result.task.headline)
    for note in notes_of(means, result.task.headline):
        assert note in text
    for row in rows_of(means, result.task.headline):
        assert row in shown


@pytest.mark.parametrize("name", GRIDS)
def test_the_grid_of_a_table_makes_the_same_cells(name: str, tables: dict[str, Path]) -> None:
    text = toml_of(grid_of(read_sweep(tables[name]).to_pylist()))
    again = expand(sweep_config(tomllib.loads(text)))
    assert [cell.key for cell in again] == [cell.key for cell in expand(sweep_config(GRIDS[name]))]


@pytest.mark.parametrize("name", FIGURES)
def test_the_grids_of_the_figures_are_written_so_that_they_can_be_read(name: str) -> None:
    figure = FIGURES[name]
    cells = expand(sweep_config(figure.grid(figure.settings(seeds=2))))
    rows = [cell.columns for cell in cells]
    again = expand(sweep_config(tomllib.loads(toml_of(grid_of(rows)))))
    assert [cell.key for cell in again] == [cell.key for cell in cells]


def test_the_lines_on_the_page_run_as_they_are(
    tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = sweep_section(str(tables["run"]), read_sweep(tables["run"]))
    first, *grid, end, command = section.again
    assert (first, end) == ("cat > run.toml <<'END OF THE GRID'", "END OF THE GRID")
    (tmp_path / "run.toml").write_text("\n".join(grid) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert command.split()[0] == "oasis"
    assert oasis_command(*command.split()[1:]) == 0
    made, before = (parquet.read_table(path) for path in ("run.parquet", tables["run"]))
    names = [name for name in before.column_names if not name.startswith("measured.")]
    assert made.select(names).equals(before.select(names))


def test_failed_cells_are_counted_with_their_errors(tables: dict[str, Path]) -> None:
    rows = read_sweep(tables["run"]).to_pylist()
    for row in rows[:3]:
        row |= {"status": "failed", "error": "ValueError: <no>", "total_utility": None}
    section = sweep_section("a.parquet", pa.Table.from_pylist(rows))
    assert dict(section.facts) == {"cells": "24", "failed": "3"}
    assert section.tables[-1].rows == [("3", "ValueError: <no>")]
    assert "ValueError: &lt;no&gt;" in report_page([section])


@pytest.mark.parametrize("name", ["total_utility", "finished", "unfinished", "jobs"])
def test_text_where_a_table_has_numbers_is_named(tables: dict[str, Path], name: str) -> None:
    rows = [row | {name: "abc"} for row in read_sweep(tables["run"]).to_pylist()]
    with pytest.raises(InputError, match=rf"^{name}: expected numbers, got \['abc'"):
        sweep_section("a.parquet", pa.Table.from_pylist(rows))


def test_a_table_without_a_seed_is_refused(tables: dict[str, Path], tmp_path: Path) -> None:
    rows = [row | {"seed": None} for row in read_sweep(tables["run"]).to_pylist()]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"^seed: expected whole numbers, got \[None"):
        read_sweep(tmp_path / "a.parquet")


def test_a_table_is_known_by_its_beginning_too(tables: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "table"
    other.write_bytes(tables["run"].read_bytes())
    assert is_table(other)
    other.write_text("{}")
    assert not is_table(other)
    assert not is_table(tmp_path / "nowhere.json")
    empty = pa.Table.from_pylist([], schema=parquet.read_schema(tables["run"]))
    parquet.write_table(empty, tmp_path / "none.parquet")
    with pytest.raises(oasis.OasisError, match="it has no rows"):
        read_sweep(tmp_path / "none.parquet")


def test_pictures_of_means_show_intervals_and_say_what_they_leave_out() -> None:
    nothing = {"mean": None, "low": None, "high": None}
    some = {"mean": 4.0, "low": 2.0, "high": 8.0}
    ax = plot_means([("a $1$", nothing), ("b", some)], "ratio_upper")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [r"a \$1\$", "b"]
    lines = [line.get_xdata().tolist() for line in ax.lines]
    assert lines == [[2.0, 8.0], [4.0]]
    assert ax.get_xscale() == "linear"
    wide = plot_means([("a", some), ("b", {**some, "mean": 400.0, "high": 900.0})], "ratio_upper")
    assert wide.get_xscale() == "log"
    many = plot_means([(str(k), some) for k in range(MOST_POINTS + 1)], "finished")
    assert many.get_title() == "finished: mean and 95 % interval, first 40 of 41"
    assert len(means_page({"finished": [("a", some)], "total_utility": []}).axes) == 2


def test_labels_name_what_varies() -> None:
    row = {"instance.preset": "testbed", "instance.mix": [0.5, 0.5], "policy.x": None}
    assert label(row, "instance.") == "testbed mix=[0.5,0.5]"
    assert label(row, "policy.") == ""
    assert columns_of(["finished"])[-1] == ("finished", True)
