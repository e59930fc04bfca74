"""Entries of documents, and a table that stands beside another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from oasis.model.errors import InstanceError
from oasis.traces import read_plain
from oasis.traces.table import MalformedError, TraceSource, cell, entry_rows


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
