"""A table of jobs with any names of columns: named by --map, or guessed and told."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import oasis
from oasis.model.errors import InstanceError
from oasis.model.utility import Constant
from oasis.simulator import Workload
from oasis.traces import PlainOptions, read_instance, read_plain
from oasis.traces.plain_instance import columns_of, delimiter_of, parse_map
from oasis.traces.plain_job import COMPLETED, KILLED, PlainJob

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


def written(directory: Path, text: str, name: str = "jobs.csv") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_with_odd_names_is_read_by_a_map(tmp_path: Path) -> None:
    trace = read_plain(written(tmp_path, ODD), options={"map": MAP})
    assert trace.format == "plain"
    assert trace.jobs == EXPECTED
    assert trace.kept == "kept 2 of 4 jobs: 1 has not ended, 1 without GPUs"
    assert trace.notes == (
        "durations read as seconds; median 90.5 s (--duration-unit)",
        "columns guessed from their names: state=Final status (--map names others)",
        "cells such as 3,5, read as numbers with decimals: 2",
    )


def test_jobs_without_gpus_can_be_kept(tmp_path: Path) -> None:
    trace = read_plain(written(tmp_path, ODD), options={"map": MAP, "cpu_jobs": True})
    assert [(job.id, job.gpus) for job in trace.jobs] == [("a", 4), ("b", 1), ("c", 1)]
    assert "jobs without GPUs, which hold one each here: 1" in trace.notes


HEADERS = {  # tables that were made of what sacct says: no output of its own
    "JobID,User,Submit,Start,End,GPUs": "%Y-%m-%dT%H:%M",
    '"JobID","User Name","Submit","Start Time","End Time","GPU Count"': "%Y-%m-%dT%H:%M",
    "JobID;State;Submit Time;Start;End;Number of GPUs": "%d/%m/%Y %H:%M",
}


def test_parts_of_gpus_become_whole_and_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "id,submitted,duration,gpus\na,0,60,0.25\nb,1,60,1.5\nc,2,60,2.0\n")
    trace = read_plain(path)
    assert [job.gpus for job in trace.jobs] == [1, 2, 2]
    assert (trace.shares, trace.malformed) == (2, {})
    instance = read_instance(path, PlainOptions(min_gpus=1, min_duration=0.0))
    assert instance.metadata["notes"]["jobs"] == [
        "durations read as seconds; median 60 s (--duration-unit)",
        "jobs with a part of a GPU, which count with the next whole number: 2",
    ]


def test_jobs_of_one_owner_can_be_taken(tmp_path: Path) -> None:
    text = "id,submitted,duration,gpus,who,vc\na,0,60,1,ann,x\nb,1,60,1,bob,y\n"
    path = written(tmp_path, text)
    options: dict[str, Any] = {"map": "owner=who"}
    assert [j.id for j in read_plain(path, options={**options, "user": "bob"}).jobs] == ["b"]
    trace = read_plain(path, options={**options, "virtual_cluster": "x"})
    assert [j.id for j in trace.jobs] == ["a"]


def test_an_imported_job_has_its_owner_in_the_instance_and_for_the_policies(tmp_path: Path) -> None:
    rows = "a,0,7200,1,ann\nb,1,7200,1,\n"
    path = written(tmp_path, "id,submitted,duration,gpus,user\n" + rows)
    instance = read_instance(path, PlainOptions(min_gpus=1))
    assert [job.owner for job in instance.jobs] == ["ann", None]
    oasis.write(instance, tmp_path / "i.json")
    assert oasis.read(tmp_path / "i.json") == instance
    assert [job.owner for job in Workload.from_instance(instance).jobs] == ["ann", ""]


def test_a_cell_that_cannot_be_read_is_told_by_row_and_column(tmp_path: Path) -> None:
    path = written(tmp_path, ODD.replace('"4"', '"four"'))
    with pytest.raises(InstanceError) as caught:
        read_plain(path, options={"map": MAP, "user": "Ann"})
    assert "user: expected one of" in str(caught.value)
    trace = read_plain(path, options={"map": MAP})
    assert trace.malformed["bad Cards"] == {"count": 1, "first_row": 2}


def test_worth_follows_the_signs_of_its_column(tmp_path: Path) -> None:
    text = "id;submitted;duration;gpus;worth\na;0;60;1;1.234,5\nb;1;60;1;2.000\n"
    jobs = read_plain(written(tmp_path, text)).jobs
    assert [job.utility for job in jobs] == [Constant(1234.5), Constant(2000.0)]


def test_maps_and_delimiters() -> None:
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
def test_a_parquet_file_is_read_as_the_same_table(unit: str, tmp_path: Path) -> None:
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
def test_an_index_of_pandas_is_columns_of_the_table(
    index: list[str], ids: list[int], tmp_path: Path
) -> None:
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


def test_whole_numbers_of_parquet_stay_whole_beside_missing_ones(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"submitted": [0, 1, 2], "duration": [60, 60, 60], "gpus": [1, 1, 1]}
    path = tmp_path / "jobs.parquet"
    table = arrow.table({"id": arrow.array([2**60 + 1, 2**60 + 2, None], arrow.int64()), **columns})
    parquet.write_table(table, path)
    trace = read_plain(path)
    assert [job.id for job in trace.jobs] == [str(2**60 + 1), str(2**60 + 2)]
    assert trace.malformed == {"no id": {"count": 1, "first_row": 4}}


def test_memory_grows_with_the_jobs_and_not_with_the_columns(tmp_path: Path) -> None:
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
