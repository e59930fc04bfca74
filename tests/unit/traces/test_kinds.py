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
from oasis.traces import PlainTrace, read_plain
from oasis.traces.table import source_of

DAY = "2024-03-01T0{}:00:00".format


def read(directory: Path, text: str, **options: Any) -> PlainTrace:
    path = directory / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return read_plain(path, options=options)


# --- GPUs -----------------------------------------------------------------------------------------


PLAIN = "id,submitted,duration,gpus\na,0,60,{}\nb,0,60,2\n"
SACCT = f"JobID|Submit|ElapsedRaw|AllocTRES\na|{DAY(8)}|60|{{}}\nb|{DAY(8)}|60|gres/gpu=2\n"
PARTS = ("1g.10gb=1", "7g.80gb", "gres/shard=2")


@pytest.mark.parametrize("text", [*map(PLAIN.format, (*PARTS, "0.5")), *map(SACCT.format, PARTS)])
def test_parts_of_gpus_are_whole_or_left_out(text: str, tmp_path: Path) -> None:
    trace = read(tmp_path, text)
    assert ([job.gpus for job in trace.jobs], trace.shares) == ([1, 2], 1)
    assert trace.malformed == {}
    left = read(tmp_path, text, parts="leave-out")
    assert [job.id for job in left.jobs] == ["b"]
    assert left.kept == "kept 1 of 2 jobs: 1 by parts (leave-out)"


@pytest.mark.parametrize("url", ["https://example.org/jobs.csv", "s3://bucket/jobs.parquet"])
def test_a_url_is_named_as_one(url: str) -> None:
    with pytest.raises(InstanceError, match=r"^expected a file, got a URL"):
        read_plain(url)


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
    options = {"map": "id=job,instances=workers", "duration_unit": unit}
    found = read_plain(source, format="plain", options=options).jobs
    first = min(record["submit"] for record in records)
    assert sorted((job.submitted, job.duration, job.gpus) for job in found) == sorted(
        (record["submit"] - first, record[column] * UNIT_OF[column], record["n_gpus"] * each)
        for record, (_, _, _, each) in zip(records, jobs, strict=True)
    )
