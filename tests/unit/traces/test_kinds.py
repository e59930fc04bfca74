"""Kinds of tables that were once read wrongly in silence: each with the right value, three ways."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oasis.model.errors import InstanceError
from oasis.traces import PlainOptions, PlainTrace, read_plain
from oasis.traces.plain import plain_jobs
from oasis.traces.plain_instance import PLAIN
from oasis.traces.table import source_of

HOURS = 11 * 3600 + 28 * 60.0
DAY = "2024-03-01T0{}:00:00".format


def read(directory: Path, text: str, **options: Any) -> PlainTrace:
    path = directory / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return read_plain(path, options=options)


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "cell", "options", "unit"),
    [
        ("hours", "11.466666666666667", {}, "hours"),
        ("hrs", "11.466666666666667", {}, "hours"),
        ("minutes", "688", {}, "minutes"),
        ("dur_d", "0.47777777777777775", {}, "days"),
        ("Laufzeit in Stunden", "11.466666666666667", {}, "hours"),
        ("duration", "11.466666666666667", {"duration_unit": "hours"}, "hours"),
        ("duration", "41280", {}, "seconds"),
    ],
)
def test_the_unit_of_durations_is_known_and_always_said(
    header: str, cell: str, options: dict[str, str], unit: str, tmp_path: Path
) -> None:
    rows = [f"id,submitted,{header},gpus", *(f"{k},{k},{cell},1" for k in range(3))]
    trace = read(tmp_path, "\n".join(rows), **options)
    assert [job.duration for job in trace.jobs] == pytest.approx([HOURS] * 3)
    assert trace.notes[0].startswith(f"durations read as {unit}; median ")


@pytest.mark.parametrize(
    ("name", "options", "scale"),
    [("submit_ms", {}, 1e-3), ("submit", {"time_unit": "ms"}, 1e-3), ("submitted", {}, 1.0)],
)
@pytest.mark.parametrize("last", [700_000_000, 1_500_000_000, 3_000_000_000])
def test_the_clock_belongs_to_the_column(
    name: str, options: dict[str, str], scale: float, last: int, tmp_path: Path
) -> None:
    """A trace of many days in milliseconds has times that look like dates of our time."""
    times = [0, 60_000, 400_000_000, last]
    rows = [f"id,{name},duration,gpus", *(f"{k},{time},60,1" for k, time in enumerate(times))]
    trace = read(tmp_path, "\n".join(rows), **options)
    assert [job.submitted for job in trace.jobs] == pytest.approx([t * scale for t in times])


@pytest.mark.parametrize("text", ["PT1H30M", "1h30m", "1 h 30 min", "01:30:00"])
def test_durations_may_name_their_units(text: str, tmp_path: Path) -> None:
    (job,) = read(tmp_path, f"id,submitted,duration,gpus\na,0,{text},1\n").jobs
    assert job.duration == 5400.0


def test_a_later_time_of_an_autumn_night_is_the_second_of_its_name(tmp_path: Path) -> None:
    rows = [
        "id,submitted,started,ended,gpus",
        "a,2024-10-27 02:50:00,2024-10-27 02:20:00,2024-10-27 03:10:00,1",
        "b,2024-10-27 01:50:00,2024-10-27 02:40:00,2024-10-27 02:10:00,1",
        "c,2024-10-27 01:50:00,2024-10-27 02:10:00,2024-10-27 02:40:00,1",
    ]
    trace = read(tmp_path, "\n".join(rows), time_zone="Europe/Berlin")
    assert {job.id: job.duration for job in trace.jobs} == {"a": 3000, "b": 1800, "c": 1800}


# --- GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "instances"),
    [
        ("gpu_request", "worker_num"),
        ("num_gpu", "num_inst"),
        ("gpus", "replicas"),
        ("gpus", "nodes"),
    ],
)
def test_gpus_beside_a_count_of_instances_are_asked_about(
    gpus: str, instances: str, tmp_path: Path
) -> None:
    text = f"id,submitted,duration,{gpus},{instances}\na,0,60,2,47\nb,1,60,8,1\n"
    with pytest.raises(InstanceError, match=f"^map: expected instances={instances} if {gpus} is"):
        read(tmp_path, text)
    each = read(tmp_path, text, map=f"instances={instances}")
    assert [job.gpus for job in each.jobs] == [94, 8]
    assert [job.gpus for job in read(tmp_path, text, map="instances=").jobs] == [2, 8]
    alone = read(tmp_path, text.replace("47", "1"))
    assert [job.gpus for job in alone.jobs] == [2, 8]


@pytest.mark.parametrize(
    "cell", ["nvidia.com/gpu=4", "amd.com/gpu: 4", '{"nvidia.com/gpu": "4"}', "gpu:a100:4"]
)
def test_gpus_by_the_names_of_kubernetes(cell: str, tmp_path: Path) -> None:
    quoted = cell.replace('"', '""')
    text = f'id,submitted,duration,gpus\na,0,60,"{quoted}"\nb,0,60,1\n'
    assert [job.gpus for job in read(tmp_path, text).jobs] == [4, 1]


@pytest.mark.parametrize("cell", ["1g.10gb=1", "7g.80gb", "0.5", "gres/shard=2"])
@pytest.mark.parametrize("form", ["plain", "slurm"])
def test_parts_of_gpus_are_whole_or_left_out(cell: str, form: str, tmp_path: Path) -> None:
    if form == "plain":
        text = f"id,submitted,duration,gpus\na,0,60,{cell}\nb,0,60,2\n"
    elif cell != "0.5":
        text = (
            f"JobID|Submit|ElapsedRaw|AllocTRES\na|{DAY(8)}|60|{cell}\nb|{DAY(8)}|60|gres/gpu=2\n"
        )
    else:
        pytest.skip("sacct counts whole GPUs")
    trace = read(tmp_path, text)
    assert ([job.gpus for job in trace.jobs], trace.shares) == ([1, 2], 1)
    assert trace.malformed == {}
    left = read(tmp_path, text, parts="leave-out")
    assert [job.id for job in left.jobs] == ["b"]
    assert left.kept == "kept 1 of 2 jobs: 1 by parts (leave-out)"


@pytest.mark.parametrize("order", ["gpu,gpu_count", "gpu_count,gpu", "gpu,num_gpus"])
def test_a_column_of_words_is_no_count_but_a_model(order: str, tmp_path: Path) -> None:
    names = order.split(",")
    cells = ",".join("A100" if name == "gpu" else "4" for name in names)
    trace = read(tmp_path, f"id,submitted,duration,{order}\na,0,60,{cells}\n")
    assert [(job.gpus, job.model) for job in trace.jobs] == [(4, "A100")]
    assert trace.notes[-1].startswith("jobs that ask for a model of GPU, which is not respected")


# --- when a job could run, and when it ended ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("JobID|Submit|Eligible|Start|ElapsedRaw|AllocTRES\n"
         f"1|{DAY(1)}|{DAY(1)}|{DAY(1)}|3600|gpu:1\n2|{DAY(1)}|{DAY(2)}|{DAY(2)}|3600|gpu:1\n",
         [0.0, 0.0]),
        ("id,submit,eligible_time,start,duration,gpus\na,0,0,10,60,1\nb,0,70,80,60,1\n", [10, 10]),
        ("id,submit,time_eligible,start,duration,gpus\na,0,,10,60,1\nb,0,70,90,60,1\n", [10, 20]),
    ],
)  # fmt: skip
def test_waiting_begins_when_a_job_could_run(
    text: str, expected: list[float], tmp_path: Path
) -> None:
    waits = [job.started - job.submitted for job in read(tmp_path, text).jobs if job.started]
    assert [0.0, *waits][-len(expected) :] == expected


@pytest.mark.parametrize(("start", "end", "elapsed"), [(1, 4, 3900), (2, 5, 60), (0, 9, 3600)])
def test_a_suspended_job_ended_when_it_says(
    start: int, end: int, elapsed: int, tmp_path: Path
) -> None:
    text = "JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"
    text += f"1|{DAY(0)}|{DAY(start)}|{DAY(end)}|{elapsed}|COMPLETED|gres/gpu=1\n"
    (job,) = read(tmp_path, text).jobs
    assert (job.duration, job.ended) == (elapsed, end * 3600.0)


@pytest.mark.parametrize("state", ["PD", "R", "CG", "running", "REQUEUE_HOLD"])
@pytest.mark.parametrize("form", ["plain", "slurm"])
def test_words_of_jobs_that_go_on_are_one_list(state: str, form: str, tmp_path: Path) -> None:
    text = f"id,submitted,duration,gpus,state\na,0,60,1,{state}\nb,0,60,1,CD\n"
    if form == "slurm":
        text = f"JobID|Submit|ElapsedRaw|State|AllocTRES\na|{DAY(1)}|60|{state}|gpu:1\n"
        text += f"b|{DAY(1)}|60|COMPLETED|gpu:1\n"
    trace = read(tmp_path, text)
    assert [job.id for job in trace.jobs] == ["b"]
    assert list(trace.malformed) == ["has not ended"]


@pytest.mark.parametrize("state", ["RUNNING", "S", "CG"])
@pytest.mark.parametrize("form", ["plain", "slurm"])
def test_gpus_of_jobs_that_still_run_are_told(state: str, form: str, tmp_path: Path) -> None:
    text = f"id,submitted,started,duration,gpus,state\na,0,5,,16,{state}\nb,0,1,60,1,FAILED\n"
    if form == "slurm":
        text = "JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"
        text += f"a|{DAY(1)}|{DAY(2)}|Unknown|60|{state}|gres/gpu=16\n"
        text += f"b|{DAY(1)}|{DAY(2)}|{DAY(3)}|3600|FAILED|gres/gpu=1\n"
    assert read(tmp_path, text).notes[-1] == (
        "jobs that had begun and not ended: 1, on 16 GPUs; they are left out, so that these count "
        "as free"
    )


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\nb", "a\n\nb", 'a ""\nb""'])
def test_a_record_ends_outside_of_quotes(name: str, tmp_path: Path) -> None:
    trace = read(tmp_path, f'name,id,submitted,duration,gpus\n"{name}",x,0,60,4\nz,y,0,60,2\n')
    assert [(job.id, job.gpus) for job in trace.jobs] == [("x", 4), ("y", 2)]
    stray = read(tmp_path, 'name,id,submitted,duration,gpus\n"a,x,0,60,4\nz,y,0,60,2\n')
    assert [job.id for job in stray.jobs] == ["y"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["3.600", "7.200,5"], [3600.0, 7200.5]),
        (["3,600", "7,200.5"], [3600.0, 7200.5]),
        (["90,5", "1.234.567"], [90.5, 1234567.0]),
        (["3.600", "7.200"], [3.6, 7.2]),
        (["1,800,000", "3,600", "5"], [1_800_000.0, 3600.0, 5.0]),
    ],
)
def test_signs_of_decimals_are_those_of_the_column(
    cells: list[str], expected: list[float], tmp_path: Path
) -> None:
    rows = ["id;submitted;duration;gpus", *(f"{k};0;{cell};1" for k, cell in enumerate(cells))]
    assert [job.duration for job in read(tmp_path, "\n".join(rows)).jobs] == expected


ROWS = [{"id": "a", "submitted": 0, "duration": 60, "gpus": 4}, {"id": "b", "submitted": 5}]
LISTED = json.dumps(ROWS), "\n".join(map(json.dumps, ROWS)), json.dumps(ROWS, indent=1)


@pytest.mark.parametrize("text", LISTED)
def test_records_of_json_are_a_table(text: str, tmp_path: Path) -> None:
    trace = read(tmp_path, text)
    assert [(job.id, job.duration, job.gpus) for job in trace.jobs] == [("a", 60.0, 4)]
    assert trace.malformed == {"bad duration": {"count": 1, "first_entry": 2}}


@pytest.mark.parametrize("begin", ["sep=;\n", "# jobs of March\n", "\n# one\n# two\n"])
def test_lines_before_the_header_are_passed_over(begin: str, tmp_path: Path) -> None:
    trace = read(tmp_path, f"{begin}id;submitted;duration;gpus\na;0;60;4\nb;x;60;4\nc;1;60;4\n")
    assert [job.id for job in trace.jobs] == ["a", "c"]
    (fault,) = trace.malformed.values()
    assert fault["first_row"] == begin.count("\n") + 3


@pytest.mark.parametrize("url", ["https://example.org/jobs.csv", "s3://bucket/jobs.parquet"])
def test_a_url_is_named_as_one(url: str) -> None:
    with pytest.raises(InstanceError, match=r"^expected a file, got a URL"):
        read_plain(url)


@pytest.mark.parametrize(
    "names", ["jobid,submit,elapsedraw,alloctres", "JOBID,SUBMIT,ELAPSEDRAW,ALLOCTRES"]
)
def test_names_of_columns_of_sacct_are_taken_in_any_letters(names: str, tmp_path: Path) -> None:
    (job,) = read(tmp_path, f"7|{DAY(1)}|60|gres/gpu=2\n", columns=names).jobs
    assert (job.id, job.duration, job.gpus) == ("7", 60.0, 2)


def test_gavels_lines_of_seven_columns(tmp_path: Path) -> None:
    rates = tmp_path / "rates.json"
    rates.write_text(json.dumps({"v100": {"('LM', 2)": {"null": 4.0}}}))
    text = "LM\tpython main.py\t--steps\t1\t400\t2\t5.0\nLM\tpython main.py\t--steps\t0\t80\t2\t9\n"
    trace = read(tmp_path, text, throughputs=str(rates))
    assert trace.format == "gavel"
    assert [(job.submitted, job.duration) for job in trace.jobs] == [(0.0, 100.0), (4.0, 20.0)]


# --- all at once ----------------------------------------------------------------------------------

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
def test_whoever_writes_a_table_reads_the_same_jobs(
    jobs: list[tuple[int, int, int, int]], column: str, delimiter: str, begin: int, form: str
) -> None:
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
    options = PlainOptions(map="id=job,instances=workers", duration_unit=unit)
    found = plain_jobs(source, PLAIN, options).jobs
    first = min(record["submit"] for record in records)
    assert sorted((job.submitted, job.duration, job.gpus) for job in found) == sorted(
        (record["submit"] - first, record[column] * UNIT_OF[column], record["n_gpus"] * each)
        for record, (_, _, _, each) in zip(records, jobs, strict=True)
    )
