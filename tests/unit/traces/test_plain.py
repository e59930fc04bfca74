"""Tables of jobs with any names of columns, which jobs of them are taken, and what is said."""

from __future__ import annotations

import csv
import json
import tracemalloc
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oasis
from oasis.model.errors import InstanceError
from oasis.model.utility import Constant
from oasis.simulator import Workload
from oasis.traces import PlainOptions, read_instance, read_plain
from oasis.traces.plain_instance import columns_of, delimiter_of, parse_map
from oasis.traces.plain_job import COMPLETED, KILLED, PlainJob
from oasis.traces.table import MalformedError, TraceSource, cell, entry_rows, source_of

HEADER = "id,submitted,duration,gpus"


def written(directory: Path, text: str) -> Path:
    path = directory / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def plain(directory: Path, *rows: str) -> Path:
    return written(directory, "\n".join((HEADER, *rows)) + "\n")


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
def test_jobs_are_counted_off_after_large_ones_are_left_out(options, expected, tmp_path):
    path = plain(tmp_path, "a,0,1,4", "b,10,1,8", "c,20,1,2", "d,30,1,1")
    trace = read_plain(path, **options)
    assert "".join(job.id for job in trace.jobs) == expected
    assert trace.jobs[0].submitted == 0.0  # and time counts from the first that is left


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"first": 1}, "1 by skip (1)"),
        ({"max_gpus": 3}, "1 by GPUs (1..3)"),
        ({"jobs": 0}, "1 by max_jobs (0)"),
        ({"virtual_cluster": "a"}, "virtual_cluster: expected a file with a column of it, got 'a'"),
    ],
)
def test_no_job_left_is_an_error(options, why, tmp_path):
    path = plain(tmp_path, "a,0,1,4")
    with pytest.raises(InstanceError) as caught:
        read_plain(path, **options)
    expected = f"jobs: expected at least one job, got none from {path}: "
    assert str(caught.value) == (why if ":" in why else f"{expected}kept 0 of 1 job: {why}")
    with pytest.raises(InstanceError) as caught:
        read_plain(plain(tmp_path))
    assert str(caught.value) == f"{expected}no rows"


@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 99), st.integers(1, 16)),
        min_size=1,
        max_size=8,
    )
)
def test_every_good_row_is_a_job_in_order_of_submission(tmp_path_factory, rows):
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


ODD = """\
"Job No";"Sent (ms)";"Began";"Took";"Cards";"Who";"Final status"
"a";1709280000000;1709280060000;"2 days 03:00:00";"4";"Ann";"Succeeded"
"b";1709280030000;"";"90,5";"1,0";"bob; the other";"cancelled by 7"
"c";1709280031000;1709280090000;"1:30";"0";"bob";"failed"
"d";1709280032000;"";"";"2";"bob";"RUNNING"
"""
MAP = "id=Job No,submitted=Sent (ms),started=Began,duration=Took,gpus=Cards,owner=Who"
DAYS = (2 * 24 + 3) * 3600.0
EXPECTED = (
    PlainJob("a", 0.0, DAYS, 4, "Ann", 60.0, 60.0 + DAYS, COMPLETED),
    PlainJob("b", 30.0, 90.5, 1, "bob; the other", None, None, KILLED),
)


def test_a_table_with_odd_names_is_read_by_a_map(tmp_path):
    trace = read_plain(written(tmp_path, ODD), options={"map": MAP})
    assert trace.jobs == EXPECTED
    assert trace.kept == "kept 2 of 4 jobs: 1 has not ended, 1 without GPUs"
    assert len(trace.notes) == 3
    trace = read_plain(written(tmp_path, ODD), options={"map": MAP, "cpu_jobs": True})
    assert [(job.id, job.gpus) for job in trace.jobs] == [("a", 4), ("b", 1), ("c", 1)]
    assert "jobs without GPUs, which hold one each here: 1" in trace.notes


def test_parts_of_gpus_become_whole_and_are_counted(tmp_path):
    path = written(tmp_path, "id,submitted,duration,gpus\na,0,60,0.25\nb,1,60,1.5\nc,2,60,2.0\n")
    trace = read_plain(path)
    assert [job.gpus for job in trace.jobs] == [1, 2, 2]
    assert (trace.shares, trace.malformed) == (2, {})
    instance = read_instance(path, PlainOptions(min_gpus=1, min_duration=0.0))
    assert instance.metadata["notes"]["jobs"] == [
        "durations read as seconds; median 60 s (--duration-unit)",
        "jobs with a part of a GPU, which count with the next whole number: 2",
    ]


def test_jobs_of_one_owner_can_be_taken(tmp_path):
    text = "id,submitted,duration,gpus,who,vc\na,0,60,1,ann,x\nb,1,60,1,bob,y\n"
    path = written(tmp_path, text)
    options: dict[str, Any] = {"map": "owner=who"}
    assert [j.id for j in read_plain(path, options={**options, "user": "bob"}).jobs] == ["b"]
    trace = read_plain(path, options={**options, "virtual_cluster": "x"})
    assert [j.id for j in trace.jobs] == ["a"]


def test_an_imported_job_has_its_owner_in_the_instance_and_for_the_policies(tmp_path):
    rows = "a,0,7200,1,ann\nb,1,7200,1,\n"
    path = written(tmp_path, "id,submitted,duration,gpus,user\n" + rows)
    instance = read_instance(path, PlainOptions(min_gpus=1))
    assert [job.owner for job in instance.jobs] == ["ann", None]
    oasis.write(instance, tmp_path / "i.json")
    assert oasis.read(tmp_path / "i.json") == instance
    assert [job.owner for job in Workload.from_instance(instance).jobs] == ["ann", ""]


def test_worth_follows_the_signs_of_its_column(tmp_path):
    text = "id;submitted;duration;gpus;worth\na;0;60;1;1.234,5\nb;1;60;1;2.000\n"
    jobs = read_plain(written(tmp_path, text)).jobs
    assert [job.utility for job in jobs] == [Constant(1234.5), Constant(2000.0)]


def test_maps_and_delimiters():
    assert parse_map("") == {}
    assert parse_map('gpus=n,"owner=a, b"') == {"gpus": "n", "owner": "a, b"}
    assert [delimiter_of(text) for text in ("a;b,c;d", "a\tb", "a|b|c", "a")] == [
        ";",
        "\t",
        "|",
        ",",
    ]
    found = columns_of(["vc", "submit", "gpus", "duration"], {}, "f", {})
    assert found["owner"] == "vc"
    assert "virtual_cluster" not in found


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_parquet_file_is_read_as_the_same_table(unit, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "job": ["a", "b"],
            "submit_time": pandas.to_datetime([1709280000, 1709280030], unit="s", utc=True),
            "start_time": pandas.to_datetime([1709280060, None], unit="s", utc=True),
            "elapsed": pandas.to_timedelta([DAYS, 90.5], unit="s"),
            "gpus": pandas.array([4, 1], dtype="Int64"),
            "user": ["Ann", "bob; the other"],
            "state": ["COMPLETED", "CANCELLED"],
        }
    )
    times = frame.select_dtypes(["datetimetz"]).columns
    frame[times] = frame[times].apply(lambda column: column.dt.as_unit(unit))
    path = tmp_path / "jobs.parquet"
    frame.to_parquet(path)
    assert read_plain(path, options={"map": "id=job"}).jobs == EXPECTED
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InstanceError, match=r"^expected a whole Parquet file"):
        read_plain(path)


INDEXES = [["job_id"], ["user", "job_id"]]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("ids", [[1, 2, 3], [2**60 + 1, 2**60 + 3, 2**60 + 2]])
def test_an_index_of_pandas_is_columns_of_the_table(index, ids, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = {"job_id": ids, "user": ["a", "b", "c"], "submitted": [0, 1, 2]}
    frame = pandas.DataFrame({**columns, "duration": 60, "gpus": 1, "script": "one\r\ntwo"})
    path = tmp_path / "jobs.parquet"
    frame.astype({"script": "category"}).set_index(index).to_parquet(path)
    trace = read_plain(path)
    assert [(job.id, job.owner) for job in trace.jobs] == [
        (str(name), user) for name, user in zip(ids, "abc", strict=True)
    ]
    assert trace.malformed == {}


def test_whole_numbers_of_parquet_stay_whole_beside_missing_ones(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"submitted": [0, 1, 2], "duration": [60, 60, 60], "gpus": [1, 1, 1]}
    path = tmp_path / "jobs.parquet"
    table = arrow.table({"id": arrow.array([2**60 + 1, 2**60 + 2, None], arrow.int64()), **columns})
    parquet.write_table(table, path)
    trace = read_plain(path)
    assert [job.id for job in trace.jobs] == [str(2**60 + 1), str(2**60 + 2)]
    assert trace.malformed == {"no id": {"count": 1, "first_row": 4}}


def test_memory_grows_with_the_jobs_and_not_with_the_columns(tmp_path):
    """A row leaves its job and nothing else; 20,000 of 40 columns stay below 1,200 bytes each."""
    count, more = 20_000, 36
    header = ",".join(["id", "submitted", "duration", "gpus", *(f"x{k}" for k in range(more))])
    row = ",".join(["60", "1", *(["some text"] * more)])
    path = written(tmp_path, header + "\n" + "\n".join(f"j{k},{k},{row}" for k in range(count)))
    tracemalloc.start()
    try:
        trace = read_plain(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace.jobs) == count
    text = path.stat().st_size
    # The file is there twice, as text and as lines; as dictionaries it would be ten times that.
    assert peak < 3 * text + 1200 * count


DAY = "2024-03-01T0{}:00:00".format


TABLE = "id,submitted,duration,gpus\na,0,60,{}\nb,0,60,2\n"
SACCT = f"JobID|Submit|ElapsedRaw|AllocTRES\na|{DAY(8)}|60|{{}}\nb|{DAY(8)}|60|gres/gpu=2\n"
PARTS = ("1g.10gb=1", "7g.80gb", "gres/shard=2")


@pytest.mark.parametrize("text", [*map(TABLE.format, (*PARTS, "0.5")), *map(SACCT.format, PARTS)])
def test_parts_of_gpus_are_whole_or_left_out(text, tmp_path):
    trace = read_plain(written(tmp_path, text))
    assert ([job.gpus for job in trace.jobs], trace.shares) == ([1, 2], 1)
    assert trace.malformed == {}
    left = read_plain(written(tmp_path, text), options={"parts": "leave-out"})
    assert [job.id for job in left.jobs] == ["b"]
    assert left.kept == "kept 1 of 2 jobs: 1 by parts (leave-out)"


def test_what_is_no_table_of_jobs_is_named(tmp_path):
    for url in ("https://example.org/jobs.csv", "s3://bucket/jobs.parquet"):
        with pytest.raises(InstanceError, match=r"^expected a file, got a URL"):
            read_plain(url)
    with pytest.raises(InstanceError, match=r"got JSON without jobs of a known format$"):
        read_plain(written(tmp_path, "[]\n"))


UNIT_OF = {"duration": 1.0, "dur_min": 60.0, "hours": 3600.0, "runtime_d": 86400.0}


@given(
    jobs=st.lists(
        st.tuples(
            st.integers(1, 900), st.integers(1, 10**6), st.integers(1, 64), st.integers(1, 9)
        ),
        min_size=1,
        max_size=12,
    ),
    column=st.sampled_from(sorted(UNIT_OF)),
    delimiter=st.sampled_from(",;\t|"),
    begin=st.sampled_from([1, 1_600_000_000]),
    form=st.sampled_from(["table", "list", "lines"]),
)
@settings(max_examples=60, deadline=None)
def test_whoever_writes_a_table_reads_the_same_jobs(jobs, column, delimiter, begin, form):
    records = [
        {
            "job": f"a {k}\nb",
            "submit": begin + gap * k,
            column: took,
            "n_gpus": gpus,
            "workers": each,
        }
        for k, (gap, took, gpus, each) in enumerate(jobs)
    ]
    if form == "table":
        text = StringIO()
        writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)
        content = text.getvalue()
    else:
        lines = [json.dumps(record) for record in records]
        content = f"[{','.join(lines)}]" if form == "list" else "\n".join(lines)
    source = source_of("jobs", content.encode())
    unit = {"duration": "s", "dur_min": "min", "hours": "h", "runtime_d": "d"}[column]
    options = {"map": "id=job,instances=workers", "duration_unit": unit}
    found = read_plain(source, format="plain", options=options).jobs
    first = min(record["submit"] for record in records)
    assert sorted((job.submitted, job.duration, job.gpus) for job in found) == sorted(
        (record["submit"] - first, record[column] * UNIT_OF[column], record["n_gpus"] * each)
        for record, (_, _, _, each) in zip(records, jobs, strict=True)
    )


def test_an_entry_of_a_document_that_is_no_cell_is_named():
    cells = [{"a": 1.5}, {"a": {"b": 1}}, {"a": None}, {}]
    assert [cell(one, "a") for one in cells] == ["1.5", '{"b": 1}', "", ""]
    for value in (True, [1]):
        with pytest.raises(MalformedError, match=r"^bad a$"):
            cell({"a": value}, "a")
    source = TraceSource("jobs.json", ())
    rows = entry_rows(source, [{"id": "1"}, 7], "jobs", lambda job: [job])
    assert rows.texts("id").tolist() == ["1"]
    assert rows.malformed == {"not an object": {"count": 1, "first_entry": 2}}
    for jobs, got in ((None, "None"), ([], "an empty list")):
        expected = f"^jobs: expected a list of at least one job, got {got}"
        with pytest.raises(InstanceError, match=expected):
            entry_rows(source, jobs, "jobs", lambda job: [job])


def test_the_table_of_tasks_must_be_there(tmp_path):
    (tmp_path / "jobs").write_text("j0,i,ann,Failed,5.0,9.0\n")
    with pytest.raises(InstanceError, match=r"^tasks: .* there is no pai_task_table.csv beside"):
        read_plain(tmp_path / "jobs")
