"""Texts and the jobs that are read from them (cases/FORMAT.json); each says what it shows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from oasis.model.errors import InstanceError
from oasis.traces.job_table import plain_jobs_of
from oasis.traces.plain import FORMATS
from oasis.traces.runs import JobRun, combined
from oasis.traces.table import TraceSource

FOUND = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in Path(__file__).parent.glob("cases/*.json")
}
CASES = [
    pytest.param(name, case, id=f"{name}-{case['about']}-{k}")
    for name, cases in sorted(FOUND.items())
    for k, case in enumerate(cases)
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_read_of_a_text(name: str, case: dict[str, Any]) -> None:
    trace = FORMATS[name]
    source = TraceSource(f"jobs.{name}", tuple(case["lines"]))
    options = trace.options(**case["options"])
    if "error" in case:
        with pytest.raises(InstanceError) as caught:
            trace.table(source, options)
        assert str(caught.value).replace("jobs.txt", source.name) == case["error"].replace(
            "jobs.txt", source.name
        )
        return
    table = trace.table(source, options)
    parts = table.jobs["is_share"].tolist()
    jobs = [
        [*list(dataclasses.asdict(job).values())[:8], is_part]
        for job, is_part in zip(plain_jobs_of(table.jobs), parts, strict=True)
    ]
    assert jobs == case["jobs"]
    assert table.malformed == case["malformed"]
    assert table.notes == case["notes"]


@pytest.mark.parametrize("gpus", [[2, 2], [2, 4], [1, 2, 4]])
def test_runs_that_are_joined_keep_their_work(gpus: list[int]) -> None:
    runs = [JobRun("7", k, 100.0 * k, 50.0, n, {}, 100.0 * k) for k, n in enumerate(gpus)]
    found = combined(runs, max(gpus))
    assert found.work == pytest.approx(50.0 * sum(gpus))
    assert (found.submitted, found.ended) == (0.0, 100.0 * (len(gpus) - 1) + 50.0)
