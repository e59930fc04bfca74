"""Plain traces: both formats, which rows count, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.errors import InstanceError
from oasis.traces import PhillyOptions, PlainOptions, read_instance, read_plain
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
    trace = read_plain(plain(tmp_path, "a,50.5,60,4", "b,81,1,1", "c,-1,5,1"))
    assert trace.jobs == (PlainJob("a", 0.0, 60.0, 4), PlainJob("b", 30.5, 1.0, 1))
    assert trace.kept == "kept 2 of 3 jobs: 1 bad submitted"


def test_an_empty_list_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text("[]\n")
    with pytest.raises(InstanceError, match=r"got JSON without jobs of a known format$"):
        read_plain(file)


def test_jobs_of_one_instant_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    trace = read_plain(plain(tmp_path, "c,9,1,1", "b,5,1,1", "a,5,1,1"))
    assert [job.id for job in trace.jobs] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("b,soon,60,4", "bad submitted: not a time"),
        ("b,inf,60,4", "bad submitted: not a time"),
        ("b,1,-1,4", "bad duration"),
        ("b,1,nan,4", "bad duration"),
        ("b,1,,4", "bad duration"),
        ("b,1,0,4", "never ran"),
        ("b,1,60,-1", "bad gpus"),
        ("b,1,60," + "9" * 400, "bad gpus"),
        ("a,1,60,4", "repeated id"),
        (",1,60,4", "no id"),
        ("b,1,60", "wrong number of columns"),
        (HEADER, "repeated header"),
    ],
)
def test_a_row_that_cannot_be_used_is_counted_by_replay_and_by_import_alike(
    row: str, fault: str, tmp_path: Path
) -> None:
    path = plain(tmp_path, "a,0,60,4", row)
    trace = read_plain(path)
    assert [job.id for job in trace.jobs] == ["a"]
    ((kind, count),) = trace.malformed.items()
    assert kind.startswith(fault)
    assert count == {"count": 1, "first_row": 3}
    instance = read_instance(path, PlainOptions(min_duration=0.0))
    assert [job.id for job in instance.jobs] == ["a"]
    assert instance.metadata["malformed"] == {"jobs": trace.malformed}


def test_jobs_without_gpus_are_left_out_by_that_rule(tmp_path: Path) -> None:
    trace = read_plain(plain(tmp_path, "a,0,60,4", "b,1,60,0"))
    assert trace.kept == "kept 1 of 2 jobs: 1 without GPUs"
    assert trace.left_out == {"cpu_jobs": 1}


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


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"first": 1}, "1 by skip (1)"),
        ({"max_gpus": 3}, "1 by GPUs (1..3)"),
        ({"jobs": 0}, "1 by max_jobs (0)"),
    ],
)
def test_no_job_left_is_an_error(options: dict[str, int], why: str, tmp_path: Path) -> None:
    path = plain(tmp_path, "a,0,1,4")
    with pytest.raises(InstanceError) as caught:
        read_plain(path, **options)  # type: ignore[arg-type]
    expected = f"jobs: expected at least one job, got none from {path}: kept 0 of 1 job: {why}"
    assert str(caught.value) == expected


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    path = plain(tmp_path)
    with pytest.raises(InstanceError) as caught:
        read_plain(path)
    assert str(caught.value) == f"jobs: expected at least one job, got none from {path}: no rows"


def test_a_table_may_have_no_virtual_clusters(tmp_path: Path) -> None:
    expected = "^virtual_cluster: expected a file with a column of it, got 'a'$"
    with pytest.raises(InstanceError, match=expected):
        read_plain(plain(tmp_path, "a,0,1,4"), virtual_cluster="a")


@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 99), st.integers(1, 16)),
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
    found = read_plain(philly(tmp_path), virtual_cluster="b").jobs
    assert [job.id for job in found] == ["philly-3", "philly-5"]
    with pytest.raises(InstanceError, match="virtual_cluster: expected one of a, b, got 'c'"):
        read_plain(philly(tmp_path), virtual_cluster="c")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("2017-10-09 07:01:00,3600,4,14401,a", "gpu_time is not duration times num_gpus"),
        ("2017-10-09 07:01:00,0,4,0,a", "never ran"),
        ("2017-10-09 07:01:00,3600,4,,a", "bad gpu_time"),
    ],
)
def test_replay_and_import_use_the_same_rows_of_philly(
    row: str, fault: str, tmp_path: Path
) -> None:
    good = [f"2017-10-09 07:0{k}:00,60,1,60,a" for k in range(3)]
    path = plain(tmp_path, *good, row, header=PHILLY)
    trace = read_plain(path)
    instance = read_instance(path, PhillyOptions(min_gpus=1, min_duration=0.0))
    assert [job.id for job in trace.jobs] == [job.id for job in instance.jobs]
    assert trace.malformed == instance.metadata["malformed"]["jobs"]
    assert trace.malformed == {fault: {"count": 1, "first_row": 5}}
