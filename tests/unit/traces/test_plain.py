"""Plain traces: both formats, which rows count, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.errors import InstanceError
from oasis.traces.plain import PlainTrace, read_philly_plain, read_plain
from oasis.traces.plain_job import PlainJob

HEADER = "id,submitted,duration,gpus"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster"


def plain(directory: Path, *rows: str, header: str = HEADER) -> Path:
    path = directory / "jobs.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


def philly(directory: Path) -> Path:
    """Three good rows, out of order, of two virtual clusters; a bad one between them."""
    return plain(
        directory,
        "2017-10-09 07:01:00,3600,4,14400,a",
        "2017-10-09 07:00:00,60,8,480,b",
        "2017-10-09 07:00:30,60,none,480,b",
        "2017-10-09 07:02:00,30.5,1,30.5,b",
        header=PHILLY,
    )


def test_the_shape_of_a_job() -> None:
    job = PlainJob("a", 1.0, 60.0, 4)
    assert (job.id, job.submitted, job.duration, job.gpus) == ("a", 1.0, 60.0, 4)
    assert job == PlainJob("a", 1.0, 60.0, 4)
    with pytest.raises(AttributeError):
        job.gpus = 5  # type: ignore[misc]


# -- the simple format -----------------------------------------------------------------------------


def test_times_count_from_the_first_submission_whatever_they_are(tmp_path: Path) -> None:
    trace = read_plain(plain(tmp_path, "a,-50.5,60,4", "b,-20,0,1"))
    assert trace == PlainTrace((PlainJob("a", 0.0, 60.0, 4), PlainJob("b", 30.5, 0.0, 1)), "plain")


def test_jobs_of_one_instant_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    trace = read_plain(plain(tmp_path, "c,9,1,1", "b,5,1,1", "a,5,1,1"))
    assert [job.id for job in trace.jobs] == ["b", "a", "c"]


def test_columns_may_come_in_any_order_and_more_of_them(tmp_path: Path) -> None:
    path = plain(tmp_path, "4,x,60,100,a", header="gpus,note,duration,submitted,id")
    assert read_plain(path).jobs == (PlainJob("a", 0.0, 60.0, 4),)


def test_blank_rows_are_skipped_without_a_word(tmp_path: Path) -> None:
    trace = read_plain(plain(tmp_path, "a,0,60,4", "", ",,,", "b,1,60,4"))
    assert [job.id for job in trace.jobs] == ["a", "b"]
    assert trace.malformed == {}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("b,soon,60,4", "row 3, submitted: expected a number, got 'soon'"),
        ("b,inf,60,4", "row 3, submitted: expected a number, got 'inf'"),
        ("b,1,-1,4", "row 3, duration: expected a number >= 0, got '-1'"),
        ("b,1,nan,4", "row 3, duration: expected a number >= 0, got 'nan'"),
        ("b,1,,4", "row 3, duration: expected a number >= 0, got ''"),
        ("b,1,60,0", "row 3, gpus: expected a whole number >= 1, got '0'"),
        ("b,1,60,1.5", "row 3, gpus: expected a whole number >= 1, got '1.5'"),
        (
            "b,1,60," + "9" * 400,
            "row 3, gpus: expected a whole number >= 1, got '" + "9" * 39,
        ),
        ("a,1,60,4", "row 3: repeated id"),
        (",1,60,4", "row 3: no id"),
        ("b,1,60", "row 3: wrong number of columns"),
        (HEADER, "row 3: repeated header"),
    ],
)
def test_every_row_must_be_good(row: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        read_plain(plain(tmp_path, "a,0,60,4", row))
    assert str(caught.value) == message


def test_the_first_of_several_faults_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"^row 3: wrong number of columns$"):
        read_plain(plain(tmp_path, "a,0,60,4", "b", "a,1,1,1"))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        read_plain(plain(tmp_path, "a,0,60", header="id,submitted,duration"))
    assert str(caught.value) == (
        "gpus: expected this column once in the header of jobs.csv: id,submitted,duration"
    )


# -- choosing jobs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abcd"),
        ({"max_gpus": 4}, "acd"),
        ({"first": 1}, "bcd"),
        ({"jobs": 2}, "ab"),
        ({"first": 1, "jobs": 2}, "bc"),
        ({"max_gpus": 4, "first": 1, "jobs": 1}, "c"),
        ({"first": 3, "jobs": 9}, "d"),
    ],
)
def test_jobs_are_counted_off_after_large_ones_are_left_out(
    options: dict[str, int], expected: str, tmp_path: Path
) -> None:
    path = plain(tmp_path, "a,0,1,4", "b,10,1,8", "c,20,1,2", "d,30,1,1")
    trace = read_plain(path, **options)  # type: ignore[arg-type]
    assert "".join(job.id for job in trace.jobs) == expected
    assert trace.jobs[0].submitted == 0.0  # and time counts from the first that is left


@pytest.mark.parametrize("options", [{"first": 1}, {"max_gpus": 3}, {"jobs": 0}])
def test_no_job_left_is_an_error(options: dict[str, int], tmp_path: Path) -> None:
    path = plain(tmp_path, "a,0,1,4")
    with pytest.raises(InstanceError) as caught:
        read_plain(path, **options)  # type: ignore[arg-type]
    assert str(caught.value) == f"jobs: expected at least one job, got none from {path}"


def test_only_philly_has_virtual_clusters(tmp_path: Path) -> None:
    with pytest.raises(
        InstanceError, match=r"^virtual_cluster: expected a trace in Philly's format$"
    ):
        read_plain(plain(tmp_path, "a,0,1,4"), virtual_cluster="a")


@given(
    st.lists(
        st.tuples(st.integers(-1000, 1000), st.integers(0, 99), st.integers(1, 16)),
        min_size=1,
        max_size=8,
    )
)
def test_every_good_row_is_a_job_in_order_of_submission(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]
) -> None:
    path = plain(
        tmp_path_factory.mktemp("trace"), *(f"{k},{s},{d},{g}" for k, (s, d, g) in enumerate(rows))
    )
    jobs = read_plain(path).jobs
    assert sorted(int(job.id) for job in jobs) == list(range(len(rows)))
    assert [job.submitted for job in jobs] == sorted(job.submitted for job in jobs)
    begin = min(submitted for submitted, _, _ in rows)
    for job in jobs:
        submitted, duration, gpus = rows[int(job.id)]
        assert job == PlainJob(job.id, submitted - begin, duration, gpus)


# -- Philly's format -------------------------------------------------------------------------------


def test_philly_jobs_are_named_after_their_lines_and_bad_rows_are_counted(tmp_path: Path) -> None:
    trace = read_plain(philly(tmp_path))
    assert trace.format == "philly"
    assert trace.jobs == (
        PlainJob("philly-3", 0.0, 60.0, 8, "b"),
        PlainJob("philly-2", 60.0, 3600.0, 4, "a"),
        PlainJob("philly-5", 120.0, 30.5, 1, "b"),
    )
    assert trace.malformed == {"bad num_gpus": {"count": 1, "first_row": 4}}


def test_one_virtual_cluster_can_be_chosen(tmp_path: Path) -> None:
    found = read_philly_plain(philly(tmp_path), virtual_cluster="b")
    assert [job.id for job in found] == ["philly-3", "philly-5"]
    with pytest.raises(InstanceError, match="cluster: expected one of a, b, got 'c'"):
        read_philly_plain(philly(tmp_path), virtual_cluster="c")


def test_philly_needs_all_of_its_columns(tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        read_philly_plain(plain(tmp_path, "a,0,1,4"))
    assert str(caught.value) == "timestamp: expected this column once in the header of jobs.csv"
