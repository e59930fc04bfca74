"""The same file through import, describe, replay, whatif and ratio, and another program's FIFO.

`tests.oracle.reference_schedulers` shares nothing with the toolkit. A file of each format is a case
of tests/unit/traces, which has the rows that were written. Counts, GPUs and durations, mean
waiting, completion and makespan must agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oasis
from tests.oracle import reference_schedulers
from tests.packaging.commands import Oasis

CASES = Path(__file__).parents[1] / "unit/traces/cases"
FORMATS = sorted(path.stem for path in CASES.glob("*.json"))
SAMPLES = dict.fromkeys(FORMATS, "a trace is recognised and its jobs are those that were written")
SAMPLES |= {
    "plain": "plain jobs",
    "swf": "swf jobs that ran",
    "openb": "what really happened is kept",
    "philly": "every kind of malformed row is reported",  # in the other, a job holds its GPU on
}
Rows = list[tuple[float, float, int]]  # submitted, duration, GPUs


def means(rows: Rows, starts: Iterable[float]) -> dict[str, float]:
    runs = [(s, begin, begin + d) for (s, d, _), begin in zip(rows, starts, strict=True)]
    return {
        "mean_waiting": sum(begin - s for s, begin, _ in runs) / len(runs),
        "mean_completion": sum(end - s for s, _, end in runs) / len(runs),
        "makespan": max(end for _, _, end in runs) - min(s for s, _, _ in runs),
    }


def replayed(run: Oasis, path: Path, servers: int, gpus: int, *options: object) -> Any:
    sizes = ("--servers", servers, "--gpus-per-server", gpus)
    code, out, err = run("replay", path, *sizes, "--policies", "fifo,easy", "--json", *options)
    assert code == 0, err
    return json.loads(out), err


def assert_agree(found: Any, rows: Rows, gpus: int) -> None:
    assert found["jobs"] == len(rows)
    for name in ("fifo", "easy"):
        expected = means(rows, getattr(reference_schedulers, name)(rows, [gpus]).starts)
        assert expected["mean_waiting"] > 0  # or nothing would be compared
        figures = found["policies"][name]
        assert figures["finished"] == len(rows)
        assert {key: figures[key] for key in expected} == pytest.approx(expected, rel=1e-9)


# --- a file of each format -----------------------------------------------------------------------

# An instance with the recorded workers alone, whose jobs take as long as recorded.
EXACT = ("--elasticity", 1, "--epochs", 1, "--gradient-mb", 0, "--minibatch-seconds", 0.001)


def sample(name: str, directory: Path) -> tuple[list[object], list[object], Rows]:
    """The files of a format, the options that they need, and the rows in order of submission."""
    cases = json.loads((CASES / f"{name}.json").read_text("utf-8"))
    case = next(case for case in cases if case["about"] == SAMPLES[name])
    for file, lines in {"jobs": case["lines"], **case.get("files", {})}.items():
        (directory / file).write_text("\n".join(lines), encoding="utf-8")
    options: list[object] = []
    for key, value in case.get("options", {}).items():
        options += [f"--{key.replace('_', '-')}", *([] if value is True else [value])]
    rows = ((row[1], row[2], row[3]) for row in case["jobs"] if row[3])
    return ["jobs"], options, sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("name", FORMATS)
def test_five_commands_and_another_program_agree(
    name: str, run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files, options, rows = sample(name, tmp_path)
    gpus = max(row[2] for row in rows)
    replay, err = replayed(run, Path("jobs"), 1, gpus, *options)
    assert_agree(replay, rows, gpus)
    if name == "openb":
        lines = [
            "sn,cpu_milli,memory_mib,gpu,model",
            *(f"n{k},96000,786432,8,T4" for k in range(9)),
        ]
        (tmp_path / "nodes").write_text("\n".join(lines))
        files.append("nodes")
    given = ("--all", "--ps-servers", 1, *EXACT, "-o", "all.json")
    code, _, err = run("import", name, *files, *options, *given)
    assert code == 0, err
    chosen = next(line for line in err.splitlines() if line.startswith("chosen to fit: "))
    assert "--horizon" in chosen
    assert "--ps-servers" not in chosen  # it was given
    instance = oasis.read("all.json")
    slot = instance.slot_seconds
    found = [
        (job.arrival, job.minibatches * job.minibatch_time * slot, job.chunks)
        for job in instance.jobs
    ]
    expected = [((submitted - rows[0][0]) // slot, *row) for submitted, *row in rows]
    np.testing.assert_allclose(sorted(found), sorted(expected), rtol=1e-9)
    described = json.loads(run("describe", "all.json", "--json")[1])
    assert (described["jobs"], described["can_finish"]) == (len(rows), len(rows))
    assert described["kept"] in err
    code, out, err = run("ratio", "all.json", "--json", "--work-limit", 1, "--gap", "inf")
    assert code in (0, 3), err
    assert json.loads(out)["jobs"] == len(rows)
    assert all(note in err for note in described["notes"])
    given = ("--machines", f"1x{gpus}", "--policies", "fifo,easy", "--loads", 1, "--json")
    code, out, err = run("whatif", "jobs", *options, *given)
    assert code == 0, err
    (setting,) = json.loads(out)["settings"]
    hours = sum(duration * held for _, duration, held in rows) / 3600
    for policy in ("fifo", "easy"):
        figures = setting["policies"][policy]
        assert figures["finished"] == len(rows)
        assert sum(figures["by_size"]["gpu_hours"]) == pytest.approx(hours)
        for key in ("waiting", "completion"):
            one = replay["policies"][policy][f"mean_{key}"]
            assert figures[key]["mean"] == pytest.approx(one)


@pytest.mark.parametrize("name", ["helios", "slurm", "batsim"])
def test_easy_on_a_trace_and_on_its_import(
    name: str, run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, options, rows = sample(name, tmp_path)
    gpus = max(row[2] for row in rows)
    given = ("--all", "--workload", "--elasticity", 1, "--machines", f"1x{gpus}", "-o", "all.json")
    code, _, err = run("import", name, "jobs", *options, *given)
    assert code == 0, err
    code, out, err = run("replay", "all.json", "--policies", "easy", "--json")
    assert code == 0, err
    found = json.loads(out)["policies"]["easy"]
    expected = replayed(run, Path("jobs"), 1, gpus, *options)[0]["policies"]["easy"]
    for key in ("finished", "mean_waiting", "mean_completion", "makespan"):
        assert found[key] == pytest.approx(expected[key], rel=1e-9)
