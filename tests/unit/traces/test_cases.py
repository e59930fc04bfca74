"""Texts and the jobs that are read from them (cases/FORMAT.json); each says what it shows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from oasis.model.errors import InstanceError
from oasis.traces.job_table import combined
from oasis.traces.plain import FORMATS, format_of
from oasis.traces.table import TraceSource, pd

FOUND = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(Path(__file__).parent.glob("cases/*.json"))
}
CASES = [
    pytest.param(name, case, id=f"{name}-{case['about']}-{k}")
    for name, cases in sorted(FOUND.items())
    for k, case in enumerate(cases)
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_read_of_a_text(
    name: str, case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # options name the files beside it
    for file, lines in case.get("files", {}).items():
        Path(file).write_text("\n".join(lines), encoding="utf-8")
    trace = FORMATS[name]
    source = TraceSource(
        f"jobs.{name}", tuple(case["lines"]), "jobs" if "files" in case else "FILE"
    )
    options = trace.options(**case["options"])
    if "detected" in case:
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
    assert table.malformed == case["malformed"]
    assert table.notes == case["notes"]


@pytest.mark.parametrize("gpus", [[2, 2], [2, 4], [1, 2, 4]])
def test_runs_that_are_joined_keep_their_work(gpus: list[int]) -> None:
    begins = [100.0 * k for k in range(len(gpus))]
    runs = pd.DataFrame({"key": "7", "submitted": begins, "started": begins, "gpus": gpus})
    runs = runs.assign(duration=50.0, ended=runs["started"] + 50.0, state="")
    runs = runs.assign(has_ended=True, is_share=False)
    (found,) = combined(runs, ["key"], "max").to_dict("records")
    assert found["gpus"] * found["duration"] == pytest.approx(50.0 * sum(gpus))
    assert (found["submitted"], found["ended"]) == (0.0, 100.0 * (len(gpus) - 1) + 50.0)
