"""Jobs of known formats: policies start them when another program does (cases have the rows)."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

import pytest

from baselines import EASY, FIFO
from oasis.model.errors import InstanceError
from oasis.simulator import replay, rigid_workload
from oasis.traces import read_plain
from oasis.traces.table import MalformedError, TraceSource, cell, entry_rows, source_of
from tests.oracle import fifo_easy

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
REAL = ("philly_sia.csv", "openb_pod_list_default.csv")
MADE = ("helios", "acme", "supercloud", "tiresias", "philly", "batsim", "slurm")


@pytest.mark.parametrize("name", [*REAL, *MADE])
@pytest.mark.parametrize("easy", [False, True])
def test_fifo_and_easy_start_each_job_when_another_program_does(name: str, easy: bool) -> None:
    limits = {}
    if name in MADE:
        cases = json.loads((Path(__file__).parent / f"cases/{name}.json").read_text("utf-8"))
        (lines,) = [case["lines"] for case in cases if case["about"].startswith("a trace is rec")]
        source = TraceSource("jobs", tuple(lines))
    elif not (DATA / name).exists():
        pytest.skip(f"{name} is not at hand: set OASIS_DATA to the directory that has it")
    else:
        limits = {"first": 400, "jobs": 250}
        with (DATA / name).open("rb") as stream:
            source = source_of(name, b"".join(islice(stream, 2000)))
    trace = read_plain(source, max_gpus=8, **limits)
    rows = [(job.submitted, job.duration, job.gpus) for job in trace.jobs]
    outcome = replay(rigid_workload(trace.jobs, 1, 8), EASY() if easy else FIFO())
    assert [job.start for job in outcome.jobs] == fifo_easy.starts(rows, 8, easy)
    assert len(rows) == 40 or limits


def test_an_entry_of_a_document_that_is_no_cell_is_named() -> None:
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


def test_the_table_of_tasks_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("j0,i,ann,Failed,5.0,9.0\n")
    with pytest.raises(InstanceError, match=r"^tasks: .* there is no pai_task_table.csv beside"):
        read_plain(tmp_path / "jobs")
