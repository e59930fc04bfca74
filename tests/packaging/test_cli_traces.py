"""Traces that are refused by ``oasis import`` and ``replay``, and the flags that help."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.commands import Oasis, assert_refused

HOURS = "id,submitted,duration,gpus\na,0,2,4\nb,60,0.5,4\nc,120,0.75,2\n"


@pytest.mark.parametrize("command", [("import", "plain"), ("replay",)])
def test_durations_that_cannot_be_seconds_name_the_flag(
    command: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path, out = tmp_path / "jobs.csv", tmp_path / "out.json"
    path.write_text(HOURS, encoding="utf-8")
    output = ("-o", out)
    assert_refused(run(*command, path, *output), "--duration-unit: expected s, ms, min, h or d")
    assert not out.exists()
    more = ("--min-duration", 0) if command[0] == "import" else ()
    assert run(*command, path, "--duration-unit", "h", *more, *output)[0] == 0


PLAIN = "id,submitted,duration,gpus\n{}\n"


@pytest.mark.parametrize("command", [("import", "plain"), ("replay",)])
@pytest.mark.parametrize(
    ("rows", "mentions"),
    [
        ("a,20171009,7200,4", ("row 2", "a date of 8 digits", "--time-format %Y%m%d reads it")),
        (
            "a,2017-W41-1,7200,4",
            ("row 2", "not a time: '2017-W41-1'", "expected seconds since the trace began"),
        ),
        ("a,1800-01-01,7200,4", ("row 2", "outside the years 1990 to 2100; --any-year takes it")),
        ("a,0,7200,4\nb,x,1,1\nc,y,1,1", ("2 of the 3 rows of jobs.csv", "--allow-malformed")),
    ],
)
def test_times_and_files_that_are_refused(
    command: tuple[str, ...], rows: str, mentions: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN.format(rows), encoding="utf-8")
    assert_refused(run(*command, path, "-o", tmp_path / "out.json"), *mentions)


@pytest.mark.parametrize(
    ("rows", "flags"),
    [
        ("a,20171009,7200,4", ("--time-format", "%Y%m%d")),
        ("a,1800-01-01,7200,4", ("--any-year",)),
        ("a,2017-10-09T07:00,7200,4\nb,2017-10-09T07:00Z,7200,4", ("--time-zone", "Europe/Berlin")),
        ("a,0,7200,4\nb,x,1,1\nc,y,1,1", ("--allow-malformed",)),
    ],
)
def test_the_flags_that_are_named_help(
    rows: str, flags: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN.format(rows), encoding="utf-8")
    assert run("import", "plain", path, *flags, "-o", tmp_path / "out.json")[0] == 0
    assert run("replay", path, *flags)[0] == 0
