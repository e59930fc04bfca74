"""Traces of Slurm and SWF through ``oasis import``, ``describe``, ``replay`` and ``ratio``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oasis
from tests.oracle import fifo_easy
from tests.packaging.commands import Oasis, assert_refused

SACCT = """\
JobID|User|Submit|Start|End|ElapsedRaw|State|AllocTRES|AllocGRES|ReqGRES|NNodes
838|ann|2024-03-01T01:00:00|2024-03-01T01:00:00|2024-03-01T02:00:00|3600|PREEMPTED|gres/gpu=4|||1
839|bob|2024-03-01T01:00:00|2024-03-01T01:00:00|2024-03-01T02:00:00|3600|FAILED|cpu=4|gpu:2(IDX:0-1)||1
838|ann|2024-03-01T02:00:00|2024-03-01T03:00:00|2024-03-01T04:00:00|3600|NODE_FAIL|gres/gpu=4|||1
838|ann|2024-03-01T02:30:00|2024-03-01T05:00:00|2024-03-01T06:00:00|3600|COMPLETED|gres/gpu=4|||1
840|eve|2024-03-01T01:30:00|2024-03-01T02:00:00|2024-03-01T03:00:00||COMPLETED|cpu=4||gpu:tesla|2
841|eve|2024-03-01T01:30:00|2024-03-01T02:00:00|2024-03-01T03:00:00|3600|COMPLETED|license/abq_gpu=8|||1
842|eve|2024-03-01T01:30:00|Unknown|Unknown|0|PENDING||||1
843|eve|2024-W09-5|2024-03-01T02:00:00|2024-03-01T03:00:00|3600|COMPLETED|gres/gpu=2|||1
850+0|eve|2024-03-01T02:00:00|2024-03-01T02:00:00|2024-03-01T04:00:00|7200|COMPLETED|gres/gpu=2|||1
850+1|eve|2024-03-01T02:00:00|2024-03-01T02:00:00|2024-03-01T04:00:00|7200|COMPLETED|gres/gpu=2|||1
"""
SWF = """\
; Version: 2.2
1 0 0 10800 4 -1 -1 4 -1 -1 1 3 1 -1 1 -1 -1 -1
1 0 0 3600 4 -1 -1 4 -1 -1 2 3 1 -1 1 -1 -1 -1
1 -1 3600 7200 4 -1 -1 4 -1 -1 3 3 1 -1 1 -1 -1 -1
2 0 0 3600 2 -1 -1 2 -1 -1 0 4 1 -1 1 -1 -1 -1
3 1800 0 3600 2 -1 -1 2 -1 -1 5 5 1 -1 1 -1 -1 -1
4 3600 0 7200 4 -1 -1 4 -1 -1 0 5 1 -1 1 -1 -1 -1
4 3600 0 3600 4 -1 -1 4 -1 -1 2 5 1 -1 1 -1 -1 -1
4 -1 0 3600 4 -1 -1 4 -1 -1 4 5 1 -1 1 -1 -1 -1
5 5400 0 -1 4 -1 -1 4 -1 -1 5 5 1 -1 1 -1 -1 -1
"""
JOBS = {  # arrival and duration in seconds, GPUs
    "slurm": {"838": (0, 10800, 4), "839": (0, 3600, 2), "840": (1800, 3600, 2)}
    | {"850": (3600, 7200, 4)},
    "swf": {"1": (0, 10800, 4), "2": (0, 3600, 2), "3": (1800, 3600, 2), "4": (3600, 7200, 4)},
}
ROWS = {"slurm": SACCT, "swf": SWF}


@pytest.fixture(params=ROWS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def trace(kind: str, tmp_path: Path) -> Path:
    path = tmp_path / f"trace.{kind}"
    path.write_text(ROWS[kind], encoding="utf-8")
    return path


def test_import_describe_and_ratio_agree(
    run: Oasis, kind: str, trace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    code, _, err = run("import", kind, trace, "-o", path, "--all")
    assert code == 0
    instance = oasis.read(path)
    slots = instance.slot_seconds
    found = {job.id: (job.arrival * slots, job.work(slots) * slots) for job in instance.jobs}
    expected = JOBS[kind]
    assert found == {name: (when, took * n) for name, (when, took, n) in expected.items() if n}
    code, out, _ = run("describe", path)
    assert code == 0
    kept = next(line for line in err.splitlines() if line.startswith("kept"))
    assert kept in out
    assert run("ratio", path)[0] == 0


def test_replay_agrees_with_a_program_of_its_own(run: Oasis, kind: str, trace: Path) -> None:
    code, out, err = run("replay", trace, "--machines", "1x8", "--policies", "fifo", "--json")
    assert code == 0
    rows = sorted(JOBS[kind].values(), key=lambda row: row[0])
    starts = fifo_easy.starts(rows, 8, easy=False)
    times = [start + row[1] - row[0] for start, row in zip(starts, rows, strict=True)]
    policy = json.loads(out)["policies"]["fifo"]
    assert policy["mean_completion"] == pytest.approx(sum(times) / len(times))
    assert f"kept {len(times)} of" in err


def test_what_the_rows_of_sacct_were_read_as_is_said(run: Oasis, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT, encoding="utf-8")
    code, _, err = run("import", "slurm", path, "-o", tmp_path / "out.json")
    assert code == 0
    for text in (
        "1 malformed row (bad Submit: not a time: '2024-W09-5', expected ISO 8601",
        "first at line 9",
        "1 row (has not ended), first at line 8",
        "rows of jobs without GPUs: 1",
        "jobs with several runs: 1 in 3 rows; one job each, with the work of all its runs",
    ):
        assert text in err
    for rule, count in (("last", 4), ("each", 6)):
        code, out, _ = run("replay", path, "--runs", rule, "--json")
        assert code == 0
        assert json.loads(out)["jobs"] == count


HOURS = "id,submitted,duration,gpus\na,0,2,4\nb,60,0.5,4\nc,120,0.75,2\n"


@pytest.mark.parametrize("command", [("import", "plain"), ("replay",)])
def test_durations_that_cannot_be_seconds_name_the_flag(
    command: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path, out = tmp_path / "jobs.csv", tmp_path / "out.json"
    path.write_text(HOURS, encoding="utf-8")
    output = ("-o", out)
    assert_refused(run(*command, path, *output), "--duration-unit: expected s, ms, min, h or d")
    assert not out.exists()
    more = ("--min-duration", 0) if command[0] == "import" else ()
    assert run(*command, path, "--duration-unit", "h", *more, *output)[0] == 0


PLAIN = "id,submitted,duration,gpus\n{}\n"


@pytest.mark.parametrize("command", [("import", "plain"), ("replay",)])
@pytest.mark.parametrize(
    ("rows", "mentions"),
    [
        ("a,20171009,7200,4", ("row 2", "a date of 8 digits", "--time-format %Y%m%d reads it")),
        (
            "a,2017-W41-1,7200,4",
            ("row 2", "not a time: '2017-W41-1'", "expected seconds since the trace began"),
        ),
        ("a,1800-01-01,7200,4", ("row 2", "outside the years 1990 to 2100; --any-year takes it")),
        ("a,0,7200,4\nb,x,1,1\nc,y,1,1", ("2 of the 3 rows of jobs.csv", "--allow-malformed")),
    ],
)
def test_times_and_files_that_are_refused(
    command: tuple[str, ...], rows: str, mentions: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN.format(rows), encoding="utf-8")
    assert_refused(run(*command, path, "-o", tmp_path / "out.json"), *mentions)


@pytest.mark.parametrize(
    ("rows", "flags"),
    [
        ("a,20171009,7200,4", ("--time-format", "%Y%m%d")),
        ("a,1800-01-01,7200,4", ("--any-year",)),
        ("a,2017-10-09T07:00,7200,4\nb,2017-10-09T07:00Z,7200,4", ("--time-zone", "Europe/Berlin")),
        ("a,0,7200,4\nb,x,1,1\nc,y,1,1", ("--allow-malformed",)),
    ],
)
def test_the_flags_that_are_named_help(
    rows: str, flags: tuple[str, ...], run: Oasis, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN.format(rows), encoding="utf-8")
    assert run("import", "plain", path, *flags, "-o", tmp_path / "out.json")[0] == 0
    assert run("replay", path, *flags)[0] == 0


@pytest.mark.parametrize(
    ("rows", "mention"),
    [
        (SACCT.partition("\n")[2], "expected the names of the columns, got a row of values"),
        (SACCT.replace("|", "  "), "got columns with spaces between and no line of dashes"),
        (SACCT.replace("AllocTRES", "A").replace("GRES", "G"), "column AllocTRES: expected this"),
        (SACCT.replace("Submit", "When"), "column Submit: expected this column in"),
    ],
)
def test_other_forms_of_sacct_are_named(
    rows: str, mention: str, run: Oasis, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(rows, encoding="utf-8")
    assert_refused(run("import", "slurm", path, "-o", tmp_path / "out.json"), mention)


SAME = {
    "hours": "job,submit,hours,num_gpus\na,0,11.5,4\nb,60,2,8\nc,90,0.5,2\n",
    "parts": "id,submitted,duration,gpus\na,0,7200,1g.10gb=1\nb,60,3600,nvidia.com/gpu=2\n",
    "eligible": "id,submit,eligible,start,duration,gpus,state\na,0,,5,60,2,FAILED\n"
    "b,0,900,990,3600,2,CD\nc,5,,70,,16,RUNNING\n",
}


@pytest.mark.parametrize("name", SAME)
def test_all_commands_read_the_same_and_say_the_same(name: str, run: Oasis, tmp_path: Path) -> None:
    path, made = tmp_path / "jobs.csv", tmp_path / "out.json"
    path.write_text(SAME[name], encoding="utf-8")
    assert run("import", "plain", path, "--all", "-o", made)[0] == 0
    described = json.loads(run("describe", made, "--json")[1])
    notes = [note for note in described["notes"] if "part of a GPU" not in note]
    assert any(note.startswith("durations read as ") for note in notes)
    code, out, err = run("replay", path, "--policies", "fifo", "--json")
    assert code == 0
    assert json.loads(out)["jobs"] == described["jobs"]
    assert [line for line in err.splitlines() if line in notes] == notes
    code, out, err = run("whatif", path, "--machines", "2x8", "--policies", "fifo", "--json")
    assert code == 0
    assert json.loads(out)["jobs"] == described["jobs"]
    assert [line for line in err.splitlines() if line in notes] == notes
    assert run("ratio", made, "--json", "--work-limit", 1, "--gap", "inf")[0] in (0, 3)
