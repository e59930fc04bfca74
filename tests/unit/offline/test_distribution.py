"""The table of the benchmark page: what became of all seeds, from the runs alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import oasis
from oasis.solvers import Status
from offline import OfflineResult
from tests.benchmarks import distribution
from tests.benchmarks.intervals import Interval


def interval(seed: int, gap: float, seconds: float = 9.0, method: str = "milp") -> Interval:
    status = Status.OPTIMAL if gap == 0 else Status.TIME_LIMIT
    result = OfflineResult(status, 100.0, 100.0 + gap, {}, method, seconds)
    return Interval(f"testbed:{seed}", method, 60.0, result)


def test_a_row_is_the_distribution_over_the_seeds() -> None:
    gaps = (0.0, 4.0, 0.0, 1.0)
    rows = distribution.distribution(
        [interval(seed, gap, seconds=seed + 1.0) for seed, gap in enumerate(gaps)]
    )
    numbers = ("4", "60", "2", "2.0", "0.50", "1.00", "4.00")
    assert rows == [("testbed", "compact HiGHS", *numbers)]
    (row,) = distribution.distribution([interval(0, 4.0, method="benders")])
    assert row[1:6] == ("Benders decomposition", "1", "60", "0", "-")


def test_the_same_command_solves_nothing_again_and_writes_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table = tmp_path / "runs.jsonl", tmp_path / "table.csv"
    words = ["--sizes", "3x2x2", "--seeds", "2", "--limit", "5", "--methods", "milp,colgen"]

    def made() -> bytes:
        given = distribution.arguments([*words, "--json", str(path), "--csv", str(table)])
        distribution.write(given.csv, distribution.distribution(distribution.runs(given)))
        return table.read_bytes()

    before = made()
    assert len(path.read_text().splitlines()) == 4
    monkeypatch.setattr(distribution, "solved", None)
    assert made() == before
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["compact HiGHS", "column generation"]


def test_sizes_are_those_of_the_generator() -> None:
    assert distribution.instance("testbed", 3) == oasis.generate("testbed", seed=3)
    assert len(distribution.instance("3x2x5", 1).jobs) == 5
    with pytest.raises(SystemExit):
        distribution.arguments(["--sizes", "big", "--json", "x"])
