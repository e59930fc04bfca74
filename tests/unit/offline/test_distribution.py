"""The table of the benchmark page: what became of all seeds, from the runs alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import oasis
from oasis.solvers import Status
from offline import OfflineResult
from tests.benchmarks import distribution
from tests.benchmarks.distribution import Solve
from tests.benchmarks.intervals import Interval


def solve(seed: int, gap: float, seconds: float = 9.0, method: str = "milp") -> Solve:
    status = Status.OPTIMAL if gap == 0 else Status.TIME_LIMIT
    result = OfflineResult(status, 100.0, 100.0 + gap, {}, method, seconds)
    return Solve.of(Interval(f"testbed:{seed}", method, 60.0, result))


def test_a_row_is_the_distribution_over_the_seeds() -> None:
    gaps = (0.0, 4.0, 0.0, 1.0)
    rows = distribution.distribution(
        [solve(seed, gap, seconds=seed + 1.0) for seed, gap in enumerate(gaps)]
    )
    numbers = ("2 of 4", "2.0", "0.50", "1.00", "4.00")
    assert rows == [("testbed", "60", "compact HiGHS", "0 to 3", *numbers)]
    (row,) = distribution.distribution([solve(0, 4.0, method="benders")])
    assert row[1:6] == ("60", "Benders decomposition", "0", "0 of 1", "-")


def test_rows_are_in_the_order_of_the_page_and_say_which_seeds_they_are_of() -> None:
    given = [(12, "colgen"), (2, "benders"), (11, "milp"), (1, "milp"), (2, "milp")]
    found = [solve(seed, 1.0, method=method) for seed, method in given]
    seeds = [(row[2], row[3]) for row in distribution.distribution([*found, found[-1]])]
    assert seeds == [
        ("compact HiGHS", "1 to 2, 11"),
        ("column generation", "12"),
        ("Benders decomposition", "2"),
    ]
    solves = distribution.in_order(found)
    assert [row[1] for row in solves] == ["1", "2", "11", "12", "2"]
    assert solves[0][2:] == ("60", "compact HiGHS", "time_limit", "9.0", "100", "101", "1.000")


def test_the_same_command_solves_nothing_again_and_writes_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table, each = (tmp_path / name for name in ("runs.jsonl", "table.csv", "solves.csv"))
    files = ["--json", str(path), "--csv", str(table), "--solves", str(each)]
    words = ["--sizes", "3x2x2", "--limit", "5", "--methods", "milp,colgen"]

    def made(seeds: int) -> tuple[bytes, bytes]:
        given = ["distribution", *words, *files, "--seeds", str(seeds)]
        monkeypatch.setattr("sys.argv", given)
        distribution.main()
        return table.read_bytes(), each.read_bytes()

    before = made(2)
    assert len(path.read_text().splitlines()) == 4
    monkeypatch.setattr(distribution, "solved", None)
    assert made(2) == before
    assert made(0) == before
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["compact HiGHS", "column generation"]
    assert [row["seeds"] for row in rows] == ["101 to 102"] * 2
    assert len(each.read_text().splitlines()) == 5


def test_later_solves_are_added_to_the_table_in_place_of_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that lacks the file of earlier solves goes on with their table."""
    table, each = tmp_path / "table.csv", tmp_path / "solves.csv"
    proven = OfflineResult(Status.OPTIMAL, 7.0, 7.0, {}, "milp", 1.0)
    monkeypatch.setattr(distribution, "solved", lambda *_: proven)
    worse = ("time_limit", "5.0", "6", "7", "16.667")
    old = [solve(1, 4.0), solve(2, 3.0), Solve("3x2x2", "101", "5", "compact HiGHS", *worse)]
    distribution.write(each, [distribution.SOLVES, *old])
    files = ["--json", str(tmp_path / "new.jsonl"), "--csv", str(table), "--solves", str(each)]
    words = ["--sizes", "3x2x2", "--seeds", "1", "--limit", "5", "--methods", "milp"]
    monkeypatch.setattr("sys.argv", ["distribution", *words, *files])
    distribution.main()
    *before, new = distribution.known_solves(each)
    assert before == old[:2]
    assert (new.seed, new.status, new.objective) == ("101", "optimal", "7")
    assert len(table.read_text().splitlines()) == 3


HEADING = ",".join(distribution.SOLVES)
SHORT = f"{HEADING}\ntestbed,1,60\n"
NO_NUMBER = f"{HEADING}\ntestbed,1,60,CP-SAT,optimal,2.0,much,7,0.000\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "expected the columns size, seed, seconds each"),
        ("size,seed\n", "expected the columns size, seed, seconds each"),
        (SHORT, "line 2: expected a row of a solve, got 'testbed,1,60'"),
        (NO_NUMBER, "line 2: expected a row of a solve, got .*much"),
    ],
)
def test_a_file_that_is_no_table_of_solves_is_refused(
    tmp_path: Path, content: str, says: str
) -> None:
    path = tmp_path / "solves.csv"
    path.write_text(content)
    with pytest.raises(SystemExit, match=says):
        distribution.known_solves(path)


def test_sizes_are_those_of_the_generator() -> None:
    assert distribution.instance("testbed", 3) == oasis.generate("testbed", seed=3)
    assert len(distribution.instance("3x2x5", 1).jobs) == 5
    with pytest.raises(SystemExit):
        distribution.arguments(["--sizes", "big", "--json", "x"])
    with pytest.raises(SystemExit):
        distribution.arguments(["--seeds", "0", "--json", "there-is-no-such-file"])
