"""Texts and the jobs that are read from them (cases/FORMAT.json); each says what it shows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oasis.model.errors import InstanceError
from oasis.simulator import rigid_workload
from oasis.traces import read_plain
from oasis.traces.job_table import combined
from oasis.traces.plain import FORMATS, format_of
from oasis.traces.table import TraceSource, pd


def variants(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cases of which only some words differ: those of `each` stand for <0>, <1>, ..."""
    for words in case.get("each", [[]]):
        text = json.dumps({name: value for name, value in case.items() if name != "each"})
        for k, word in enumerate(words):
            text = text.replace(f"<{k}>", json.dumps(word)[1:-1])
        yield json.loads(text)


CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}-{case['about']}-{k}")
    for path in sorted(Path(__file__).parent.glob("cases/*.json"))
    for k, each in enumerate(json.loads(path.read_text("utf-8")))
    for case in variants(each)
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_read_of_a_text(name, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # options name the files beside it
    for file, lines in case.get("files", {}).items():
        Path(file).write_text("\n".join(lines), encoding="utf-8")
    trace = FORMATS[name]
    source = TraceSource(
        f"jobs.{name}", tuple(case["lines"]), "jobs" if "files" in case else "FILE"
    )
    options = trace.options(**case.get("options", {}))
    if case.get("detected", True):
        assert format_of(source) == name
    if "error" in case:
        with pytest.raises(InstanceError) as caught:
            trace.table(source, options)
        assert str(caught.value).replace("jobs.txt", source.name) == case["error"].replace(
            "jobs.txt", source.name
        )
        return
    table = trace.table(source, options)
    parts = table.frame["is_share"].tolist()
    jobs = [
        [*list(dataclasses.asdict(job).values())[:8], is_part]
        for job, is_part in zip(table.jobs, parts, strict=True)
    ]
    assert jobs == case["jobs"]
    assert table.frame["model"].tolist() == case.get("models", [""] * len(jobs))
    assert table.malformed == case.get("malformed", {})
    table.choose(trace.options())  # whose GPUs are held depends on which jobs are chosen
    assert list(table.notes) == case.get("notes", [])


@pytest.mark.parametrize("gpus", [[2, 2], [2, 4], [1, 2, 4], [0.5, 1]])
def test_runs_that_are_joined_keep_their_work(gpus):
    begins = [100.0 * k for k in range(len(gpus))]
    runs = pd.DataFrame({"key": "7", "submitted": begins, "started": begins, "gpus": gpus})
    runs = runs.assign(duration=50.0, ended=runs["started"] + 50.0, state="")
    runs = runs.assign(has_ended=True, is_share=False)
    (found,) = combined(runs, ["key"], "max").to_dict("records")
    assert found["gpus"] * found["duration"] == pytest.approx(50.0 * sum(gpus))
    assert (found["submitted"], found["ended"]) == (0.0, 100.0 * (len(gpus) - 1) + 50.0)


@pytest.mark.parametrize("name", ["plain", "philly", "openb", "swf", "slurm"])
def test_what_really_happened_is_kept_to_the_workload(name):
    """In another order of the rows, what is recorded still stands beside its own job."""
    about = f"{name}-what really happened is kept-"
    (lines,) = [case.values[1]["lines"] for case in CASES if str(case.id).startswith(about)]
    jobs = read_plain(TraceSource("jobs", tuple(lines))).jobs
    assert any(job.owner or job.started for job in jobs)
    workload = rigid_workload(reversed(jobs), servers=1, gpus_per_server=8)
    assert [job.id for job in workload.recorded] == [job.id for job in workload.jobs]
    assert [job.owner for job in workload.recorded] == [job.owner for job in workload.jobs]
    assert set(workload.recorded) == set(jobs)
