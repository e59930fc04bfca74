"""The benchmark of offline methods: its records, its table, and what it refuses."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from offline import OfflineResult, Status
from offline.result import Milestone
from tests.benchmarks import distribution, intervals
from tests.benchmarks.distribution import Solve
from tests.benchmarks.intervals import Interval


def interval(seed: int, gap: float = 10.0, method: str = "milp", **changes: Any) -> Interval:
    """A solve that stood at 50 % after 40 s, and at `gap` in the end."""
    status = Status.OPTIMAL if gap == 0 else Status.TIME_LIMIT
    given = {"status": status, "objective": 100.0, "upper_bound": 100.0 + gap, "schedules": {}}
    given["history"] = (Milestone(40.0, 100.0, 150.0), Milestone(90.0, 100.0, 100.0 + gap))
    result = OfflineResult(**(given | {"method": method, "seconds": seed + 1.0} | changes))
    return Interval(f"testbed:{seed}", method, 60.0, result)


def test_what_is_appended_is_read_again_and_a_broken_line_is_named(tmp_path):
    path = tmp_path / "some.jsonl"
    written = [interval(1), interval(2, 0.0, "cpsat"), interval(3, parameters={"refused": ["(4)"]})]
    for one in written:
        intervals.append(path, one)
    for one, read in zip(written, intervals.read(path), strict=True):
        assert (one.key, one.line([60.0])) == (read.key, read.line([60.0]))
        assert one.result.history == read.result.history
    assert written[2].line([60.0]).endswith(", 1 not verified")
    with path.open("a") as file:
        file.write('{"instance": "a", "meth')
    with pytest.raises(ValueError, match=r"some\.jsonl, line 4: expected what --json writes"):
        intervals.read(path)


def test_a_row_is_the_distribution_over_the_seeds_and_rows_are_in_the_order_of_the_page():
    found = [Solve.of(interval(seed, gap)) for seed, gap in enumerate((0.0, 4.0, 0.0, 1.0))]
    others = [Solve.of(interval(12, 1.0, "colgen")), Solve.of(interval(2, 4.0, "benders"))]
    numbers = ("2 of 4", "2.0", "0.50", "1.00", "4.00")
    rows = distribution.distribution([*others, *found, found[-1]])
    assert rows[0] == ("testbed", "60", "compact HiGHS", "0 to 3", *numbers)
    assert [row[2:6] for row in rows[1:]] == [
        ("column generation", "12", "0 of 1", "-"),
        ("Benders decomposition", "2", "0 of 1", "-"),
    ]


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> tuple[Path, Path]:
    """The benchmark of tiny instances; its table, and that of all solves."""
    table, each = tmp_path / "table.csv", tmp_path / "solves.csv"
    files = ["--csv", str(table), "--solves", str(each)]
    given = ["distribution", "--sizes", "3x2x2", "--limit", "5", *files, *words]
    monkeypatch.setattr("sys.argv", given)
    distribution.main()
    return table, each


def test_the_same_command_solves_nothing_again_and_goes_on_with_the_table_of_earlier_solves(
    tmp_path, monkeypatch
):
    words = ["--json", str(tmp_path / "runs.jsonl"), "--methods", "milp,colgen"]
    table, each = run(monkeypatch, tmp_path, *words, "--seeds", "2")
    before = table.read_text(), each.read_text()
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["compact HiGHS", "column generation"]
    assert [row["seeds"] for row in rows] == ["101 to 102"] * 2
    monkeypatch.setattr(distribution, "solved", None)
    for seeds in ("2", "0"):
        run(monkeypatch, tmp_path, *words, "--seeds", seeds)
        assert (table.read_text(), each.read_text()) == before
    # a machine that lacks the file of earlier solves: a later one takes the place of one of them
    proven = OfflineResult(Status.OPTIMAL, 7.0, 7.0, {}, "milp", 1.0)
    monkeypatch.setattr(distribution, "solved", lambda *_: proven)
    again = ["--json", str(tmp_path / "new.jsonl"), "--methods", "milp", "--seeds", "1"]
    run(monkeypatch, tmp_path, *again)
    changed = dict(zip(before[1].splitlines(), each.read_text().splitlines(), strict=True))
    assert sum(old != new for old, new in changed.items()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "4x3"], "expected testbed or one such as 20x10x20, got '4x3'"),
        (["--methods", "milp,best"], "got 'best'"),
        (["--json", "."], "Is a directory"),
        (["--methods", "cpsat"], "cpsat needs OR-Tools: pip install"),
    ],
)
def test_bad_arguments_end_with_what_was_expected(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(distribution.cpsat, "is_installed", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        distribution.arguments(["--json", "some.jsonl", "--methods", "milp", *arguments])
    assert message in capsys.readouterr().err


def test_an_interrupted_solve_is_not_recorded(tmp_path, monkeypatch):
    path = tmp_path / "some.jsonl"
    ended = interval(1, status=Status.INTERRUPTED).result
    monkeypatch.setattr(distribution, "solved", lambda *given: ended)
    words = ["--json", str(path), "--methods", "milp", "--sizes", "4x1x3"]
    with pytest.raises(SystemExit, match="130"):
        list(distribution.runs(distribution.arguments(words)))
    assert not path.exists()
