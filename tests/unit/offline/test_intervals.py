"""The records and the table of the benchmark of offline methods."""

from __future__ import annotations

import math
import sys

import pytest

from offline import Status
from offline.result import Milestone, OfflineResult
from tests.benchmarks import intervals, offline
from tests.benchmarks.intervals import Interval

TIMES = [60.0, 300.0]


def interval(instance="a", method="milp", limit=300.0, **changes) -> Interval:
    """A solve that stood at 50 % after a minute and at 10 % in the end."""
    given = {
        "status": Status.TIME_LIMIT,
        "objective": 100.0,
        "upper_bound": 110.0,
        "schedules": {},
        "method": method,
        "seconds": limit,
        "history": (
            Milestone(0.5, None, math.inf),
            Milestone(40.0, 100.0, 150.0),
            Milestone(90.0, 100.0, 110.0),
        ),
    }
    return Interval(instance, method, limit, OfflineResult(**(given | changes)))


def proven(**names) -> Interval:
    return interval(status=Status.OPTIMAL, upper_bound=100.0, seconds=12.34, **names)


def test_what_is_appended_is_read_again(tmp_path):
    path = tmp_path / "some.jsonl"
    written = [interval(), proven(method="cpsat"), interval(parameters={"refused": ["(4)"]})]
    for one in written:
        intervals.append(path, one)
    read = intervals.read(path)
    assert [one.key for one in read] == [one.key for one in written]
    assert [one.line(TIMES) for one in read] == [one.line(TIMES) for one in written]
    assert [one.result.history for one in read] == [one.result.history for one in written]


@pytest.mark.parametrize("line", ['{"instance": "a", "meth', "{}", "[]", '{"history": []}'])
def test_a_broken_line_is_named(tmp_path, line):
    path = tmp_path / "some.jsonl"
    intervals.append(path, interval())
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(ValueError, match=r"some\.jsonl, line 2: expected what --json writes"):
        intervals.read(path)


def test_table_has_a_row_an_instance_and_a_column_a_method():
    some = [interval("b", "cpsat"), proven(instance="b", method="milp"), interval("a", "other")]
    assert intervals.table(some, TIMES).splitlines() == [
        "| instance (gap at 60 / 300 s) | compact HiGHS | CP-SAT | other |",
        "|---|---|---|---|",
        "| b | proven in 12 s | 50.0 % / 10.0 % (100.0 .. 110.0) | - |",
        "| a | - | - | 50.0 % / 10.0 % (100.0 .. 110.0) |",
    ]


def test_of_several_limits_the_table_shows_the_longest():
    short = interval(limit=60.0)
    assert "50.0 % / - " in intervals.table([short], TIMES)
    for some in ([short, proven()], [proven(), short]):
        assert "proven in 12 s" in intervals.table(some, TIMES)


def test_solutions_that_are_not_verified_are_shown():
    assert interval(parameters={"refused": ["(4)"]}).line(TIMES).endswith(", 1 not verified")


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["offline", *arguments])
        offline.main()
        return capsys.readouterr().out

    return run


def test_what_a_file_has_is_not_solved_again(tmp_path, call, monkeypatch):
    path = str(tmp_path / "some.jsonl")
    options = ("--limit", "5", "--methods", "milp", "--json", path, "4x1x3:0")
    first = call(*options)
    assert "4x1x3:0 milp: optimal" in first
    both = call(*options, "4x1x3:1")
    assert both.startswith(first)
    assert len(intervals.read(tmp_path / "some.jsonl")) == 2
    monkeypatch.setattr(offline, "solved", None)
    assert call(*options, "4x1x3:1") == both
    assert "| 4x1x3:1 | proven in" in call("--table", path)


def test_an_interrupted_solve_is_shown_and_not_recorded(tmp_path, call, monkeypatch):
    path = tmp_path / "some.jsonl"
    ended = interval(status=Status.INTERRUPTED).result
    monkeypatch.setattr(offline, "solved", lambda *given: ended)
    with pytest.raises(SystemExit, match="130"):
        call("--json", str(path), "--methods", "milp", "4x1x3:0")
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["4x3"], "expected one such as 20x20x40:1, got '4x3'"),
        (["4x1x3", "--methods", "milp,best"], "got 'best'"),
        (["--table", "nowhere.jsonl"], "nowhere.jsonl"),
        ([], "expected an instance such as 20x20x40:1, or --table"),
    ],
)
def test_bad_arguments_end_with_what_was_expected(call, capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        call(*arguments)
    assert message in capsys.readouterr().err


def test_the_peer_names_what_it_needs(call, capsys, monkeypatch):
    monkeypatch.setattr(offline.cpsat, "is_installed", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        call("4x1x3", "--methods", "cpsat")
    assert "cpsat needs OR-Tools: pip install" in capsys.readouterr().err
