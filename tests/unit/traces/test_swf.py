"""The Standard Workload Format: parts of jobs, repeated jobs and the half of the rows."""

from __future__ import annotations

from typing import Any

import pytest

from oasis import InstanceError
from oasis.traces.swf import SWF, SwfOptions
from oasis.traces.table import TraceSource, TraceTable


def line(job: int, submitted: float, took: float, gpus: int, status: int, wait: float = 0) -> str:
    return f"{job} {submitted} {wait} {took} {gpus} -1 -1 {gpus} 7200 -1 {status} 3 1 -1 1 -1 -1 -1"


def table_of(*lines: str, **options: Any) -> TraceTable[Any]:
    return SWF.table(TraceSource("log.swf", lines), SwfOptions(**options))


def facts(*lines: str, **options: Any) -> dict[str, tuple[float, float, int]]:
    rows = table_of(*lines, **options).rows
    return {row.job.id: (row.job.submitted, row.job.duration, row.job.gpus) for row in rows}


WHOLE = line(1, 100, 900, 4, 1, wait=50)
PARTS = (
    line(1, 100, 300, 4, 2, wait=50),
    line(1, -1, 500, 4, 2, wait=10),
    line(1, -1, 100, 4, 3, wait=20),
)


def test_parts_belong_to_the_job_whose_own_line_is_there() -> None:
    for lines in ((WHOLE, *PARTS), (*PARTS, WHOLE)):
        assert facts(*lines) == {"1": (100, 900, 4)}
        assert table_of(*lines).notes == [
            "lines that are parts of jobs (status 2 to 4): 3; the jobs' own lines are read"
        ]
        assert not table_of(*lines).malformed


def test_parts_without_an_own_line_are_joined() -> None:
    assert facts(*PARTS) == {"1": (100, 900, 4)}
    assert table_of(*PARTS).notes == [
        "jobs with several runs: 1 in 3 rows; one job each, with the work of all its runs"
        " (--runs joined)"
    ]


@pytest.mark.parametrize("own", [True, False])
def test_a_part_without_submission_came_when_the_last_one_ended(own: bool) -> None:
    lines = (WHOLE, *PARTS) if own else PARTS
    assert facts(*lines, runs="each") == {
        "1": (100, 300, 4),
        "1#2": (450, 500, 4),
        "1#3": (960, 100, 4),
    }
    assert facts(*lines, runs="last") == {"1": (960, 100, 4)}


def test_a_job_of_which_the_last_part_is_not_there_has_not_ended() -> None:
    table = table_of(*PARTS[:2], line(2, 0, 60, 1, 0))
    assert [row.job.id for row in table.rows] == ["2"]
    assert table.malformed == {
        "run of a job that has not ended": {"count": 1, "first_row": 1},
        "has not ended": {"count": 1, "first_row": 2},
    }


@pytest.mark.parametrize("status", [-1, 0, 1, 5])
def test_a_job_that_ran_counts_however_it_ended(status: int) -> None:
    assert facts(line(1, 5, 60, 2, status)) == {"1": (5, 60, 2)}
    table = table_of(line(1, 5, -1, 2, status), line(2, 5, 60, 2, 1))
    kind = "no run time" if status == 1 else "never ran"  # one that was completed has run
    assert table.malformed == {kind: {"count": 1, "first_row": 1}}


def test_a_line_without_a_submission_is_not_read_as_one_at_minus_one() -> None:
    table = table_of(line(1, -1, 60, 2, 1), line(2, 5, 60, 2, 1))
    assert [row.job.id for row in table.rows] == ["2"]
    assert table.malformed == {"no submission": {"count": 1, "first_row": 1}}


def test_the_parts_of_a_job_count_where_its_own_line_says_that_it_never_ran() -> None:
    assert facts(*PARTS, line(1, 100, -1, 4, 5)) == {"1": (100, 900, 4)}
    assert facts(*PARTS[:2], line(1, 100, 0, 4, 0)) == {"1": (100, 800, 4)}


def test_a_repeated_job_is_named_with_both_rows() -> None:
    table = table_of(line(1, 5, 60, 2, 1), line(2, 5, 60, 2, 1), line(1, 9, 60, 2, 0))
    assert table.malformed == {"repeated job: 1 is in row 1 too": {"count": 1, "first_row": 3}}


def test_many_repeated_jobs_are_one_kind_of_fault() -> None:
    table = table_of(*[line(k % 3, k, 60, 2, 1) for k in range(5)])
    assert table.malformed == {"repeated job: 0 is in row 1 too": {"count": 2, "first_row": 4}}


def test_an_unknown_status_is_a_fault() -> None:
    table = table_of(line(1, 5, 60, 2, 1), line(2, 5, 60, 2, 7))
    assert list(table.malformed) == ["bad status"]


def test_fewer_than_half_usable_rows_are_an_error() -> None:
    lines = [line(1, 5, 60, 2, 1), "1 2 3", "1 2", line(2, 5, -1, 2, 5), line(3, 5, -1, 2, 5)]
    assert facts(line(4, 5, 60, 2, 1), *lines[:2])  # two of three
    message = r"^row 2: expected 18 numbers; 3 of the 6 rows of log.swf cannot be used; --allow-ma"
    with pytest.raises(InstanceError, match=message.replace("3 of the 6", "4 of the 7")):
        facts(*lines, "x", "y z")
    assert facts(*lines, "x", "y z", allow_malformed=True) == {"1": (5, 60, 2)}


def test_durations_in_another_unit_are_questioned_or_given() -> None:
    lines = [line(k, k, 0.5, 2, 1) for k in range(1, 4)]
    with pytest.raises(InstanceError, match=r"^duration_unit: expected s, ms, min or h"):
        facts(*lines)
    assert facts(*lines, duration_unit="h")["1"] == (1, 1800, 2)
