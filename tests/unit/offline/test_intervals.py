"""The records and the table of the benchmark of offline methods."""

from __future__ import annotations

import math

import pytest

from offline import Status
from offline.result import Milestone, OfflineResult
from tests.benchmarks import distribution, intervals
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


def test_solutions_that_are_not_verified_are_shown():
    assert interval(parameters={"refused": ["(4)"]}).line(TIMES).endswith(", 1 not verified")


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
    ended = interval(status=Status.INTERRUPTED).result
    monkeypatch.setattr(distribution, "solved", lambda *given: ended)
    words = ["--json", str(path), "--methods", "milp", "--sizes", "4x1x3"]
    with pytest.raises(SystemExit, match="130"):
        list(distribution.runs(distribution.arguments(words)))
    assert not path.exists()
