"""``oasis whatif``: what it prints and writes, what it refuses, and what Ctrl-C leaves."""

from __future__ import annotations

import csv
import json
import math
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.cli.commands import whatif
from experiments.evaluation.whatif_result import WhatIf, answer
from experiments.plotting.whatif import loads_figure, over_time_figure
from experiments.report.sections import whatif_section
from experiments.sweep import Cell, CellResult
from experiments.sweep.executors import Here
from oasis.model.errors import InputError
from tests.builders import exit_code

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        return exit_code(*arguments), *capfd.readouterr()

    return call


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Forty jobs of three owners, which really waited 900 s each."""
    rows = ["id,submitted,start,end,gpus,owner"]
    for k in range(40):
        came, lasts = 100 * k, 300 + 1500 * (k % 5 == 0)
        owner = ("ann", "bob", "a team with a long name")[k % 3]
        rows.append(f"job{k},{came},{came + 900},{came + 900 + lasts},{2 ** (k % 4)},{owner}")
    file = tmp_path / "jobs.csv"
    file.write_text("\n".join(rows) + "\n")
    return file


def test_the_tables_the_answer_and_the_notes(run: Run, trace: Path) -> None:
    code, out, err = run("whatif", trace, "--machines", "2x8", "--policies", "fifo,srtf,las")
    assert code == 0
    assert "serves these 40 jobs best" in " ".join(out.split())
    for text in ("in reality", "srtf+", "lower bound", "load x 1.5", "2-4 GPUs", "GPUs in use"):
        assert text in out
    assert "a team with a long name" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "read as plain" in err


def test_the_default_machines_and_the_policies_left_out_are_said(run: Run, trace: Path) -> None:
    code, _, err = run("whatif", trace, "--max-jobs", 5, "--loads", "1", "--json")
    assert code == 0
    assert "the fewest that hold the busiest moment of what really happened" in err
    assert "not run unless --policies names them: " in err
    assert "dorm" in err


def test_the_page_says_what_was_guessed_and_left_out(run: Run, tmp_path: Path) -> None:
    trace, result, page = (tmp_path / name for name in ("odd.csv", "r.json", "p.html"))
    trace.write_text("job_id,submit_min,wait,runtime,gpus\na,0,5,60,4\nb,1,,60,four\nc,2,7,60,2\n")
    assert run("whatif", trace, "--loads", "1", "--policies", "fifo", "-o", result)[0] == 0
    said = json.loads(result.read_text())["notes"]
    assert len(said) == 5
    for note, begin in zip(
        said,
        (
            "left out: jobs: 1 malformed row (bad gpus), first at line 3",
            "durations read as seconds; median 60 s (--duration-unit)",
            "columns guessed from their names: id=job_id, submitted=submit_min, waiting=wait",
            "units guessed from the names of columns: submit_min in min",
            "machines: 8 GPUs (1 x 8), the fewest that hold the busiest moment of what really",
        ),
        strict=True,
    ):
        assert note.startswith(begin)
    assert run("report", result, "-o", page)[0] == 0
    assert all(note in page.read_text() for note in said)


def test_jobs_that_still_run_may_leave_nothing_of_the_machines_in_reality(
    run: Run, tmp_path: Path
) -> None:
    trace, result = tmp_path / "held.csv", tmp_path / "r.json"
    rows = ("a,0,0,60,4", "h,0,0,,16", "b,10,10,70,4")
    trace.write_text("\n".join(("job,submitted,started,ended,gpus", *rows)))
    options = ("--machines", "1x8", "--policies", "fifo", "--loads", "1")
    code, out, err = run("whatif", trace, *options, "-o", result)
    assert code == 0
    assert "hold 16 GPUs, but there are 8" in err
    found = oasis.read_result(result)
    assert found.first.policies["recorded"]["gpu_utilisation"] is None
    assert found.first.policies["recorded"]["peak"] == 24
    assert "up to 24 GPUs were in use at once" in out


def test_the_document_is_a_result_that_a_report_takes(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    result, page = tmp_path / "r.json", tmp_path / "p.html"
    options = ("--machines", "2x8", "--policies", "fifo,srsf", "--loads", "1")
    options += ("--fewer", "1", "--more", "2", "--goal", "p95 wait < 10 min")
    assert run("whatif", trace, *options, "-o", result)[0] == 0
    found = oasis.read_result(result)
    assert isinstance(found, WhatIf)
    assert [len(setting.machines) for setting in found.settings] == [2, 1, 4]
    for name, goal in found.about["goal"]["policies"].items():
        tried = dict(goal["tried"])
        fewest = goal["machines"]
        assert tried[fewest] < 600 <= tried.get(fewest - 1, math.inf)
        if fewest == 2:
            assert tried[2] == found.first.policies[name]["waiting"]["p95"]
    assert found.reference == "recorded"
    assert found.first.policies["recorded"]["waiting"]["mean"] == 900.0
    document = json.loads(result.read_text())
    assert found.to_dict() == document
    for name in ("notes", "missing", "failed", "goal"):
        with pytest.raises(InputError, match=rf"^{name}: expected .*, got None"):
            WhatIf.from_dict(document | {name: None})
    goal = document["goal"] | {"policies": {"fifo": {"machines": 9, "tried": [[1, 2.0]]}}}
    with pytest.raises(InputError, match=r"^goal.policies.fifo.tried: expected a value with 9 mac"):
        WhatIf.from_dict(document | {"goal": goal})
    assert run("report", result, "-o", page)[0] == 0
    for text in ("1 machine fewer", "2 machines more", "Fewest machines for p95 wait &lt; 10 min"):
        assert text in page.read_text()
    picture = tmp_path / "p.png"
    assert run("plot", result, "-o", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command_on_the_page_makes_the_same_document(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    first = tmp_path / "r.json"
    options = ("--machines", "2x8", "--policies", "fifo,las", "--set", "las.thresholds=2,5")
    assert run("whatif", trace, *options, "--loads", "1.5", "-o", first, "--processes", "1")[0] == 0
    document = json.loads(first.read_text())
    words = document["command"].split()
    assert words[:2] == ["oasis", "whatif"]
    assert "-o" not in words, "to run it again overwrites nothing"
    code, out, _ = run(*words[1:], "--json")
    assert code == 0
    again = json.loads(out)
    for each in (document, again):
        each.pop("command")
    assert again == document


def test_two_processes_find_what_one_finds(run: Run, trace: Path) -> None:
    base = ("whatif", trace, "--machines", "2x8", "--policies", "fifo,easy", "--loads", "1.2")
    settings = [json.loads(run(*base, "--processes", n, "--json")[1])["settings"] for n in (1, 2)]
    assert settings[0] == settings[1]


def read(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def test_tables_of_jobs_and_owners(run: Run, trace: Path, tmp_path: Path) -> None:
    options = ("--machines", "2x8", "--policies", "fifo,srtf", "--loads", "1.5")
    assert run("whatif", trace, *options, "--csv", tmp_path / "my")[0] == 0
    rows = read(tmp_path / "my-jobs.csv")
    assert len(rows) == 3 * 40  # in reality, and two policies at the load as it is
    assert {row["policy"] for row in rows} == {"recorded", "fifo", "srtf"}
    real = [row for row in rows if row["policy"] == "recorded"]
    assert {float(row["waiting"]) for row in real} == {900.0}
    owners = read(tmp_path / "my-owners.csv")
    assert len(owners) == 3 * (3 + 2)
    for row in owners:
        if row["load"] == "1.0" and row["policy"] == "fifo":
            mine = [r for r in rows if r["policy"] == "fifo" and r["owner"] == row["owner"]]
            mean = sum(float(r["waiting"]) for r in mine) / len(mine)
            assert float(row["mean_waiting"]) == pytest.approx(mean)
    (tmp_path / "tables").mkdir()
    assert run("whatif", trace, *options, "--csv", tmp_path / "tables")[0] == 0
    assert (tmp_path / "tables" / "jobs.csv").exists()


class Interrupted:
    """Ctrl-C after this many cells."""

    def __init__(self, after: int) -> None:
        self._after = after

    def run(self, some: list[Cell]) -> Iterator[tuple[Cell, CellResult]]:
        for k, found in enumerate(Here().run(some)):
            if k == self._after:
                raise KeyboardInterrupt
            yield found


def test_ctrl_c_keeps_what_is_done_and_the_next_run_goes_on(
    run: Run, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = ("whatif", trace, "--machines", "2x8", "--policies", "fifo,srtf,las", "--loads", "1")
    base = (*base, "--records", tmp_path / "kept", "--json", "--processes", "1")
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=3))
    code, out, err = run(*base)
    assert code == 3
    assert set(json.loads(out)["settings"][0]["policies"]) == {"recorded", "fifo", "srtf"}
    assert "interrupted: without las (as it is); " in err
    assert "keeps the others: the same command goes on" in " ".join(err.split())
    (first, *_) = answer(WhatIf.from_dict(json.loads(out)))
    assert "of the policies that ended, " in first
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=1))
    code, out, _ = run(*base)  # only las is left
    assert code == 0
    assert "las" in json.loads(out)["settings"][0]["policies"]
    assert "that ended" not in answer(WhatIf.from_dict(json.loads(out)))[0]


def test_without_records_an_interruption_says_that_nothing_is_kept(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=2))
    code, _, err = run(
        "whatif", trace, "--policies", "fifo,las", "--loads", "1", "--processes", "1"
    )
    assert code == 3
    assert "the runs that are done are not kept (--records DIR keeps them)" in " ".join(err.split())


@pytest.mark.parametrize(
    ("wait", "warning"),
    [
        (6000, "Warning: jobs take 600 times their duration on average"),
        (None, "Warning: at most 0.000195% of the GPUs are in use"),
        (0, "Warning: at most"),
        (60, ""),
    ],
)
def test_numbers_that_no_cluster_has_are_warned_of(
    run: Run, tmp_path: Path, wait: int | None, warning: str
) -> None:
    """Ten jobs of 5 s, one an hour: with their hours read as seconds, or their GPUs as machines."""
    rows = ["id,submitted,duration,gpus,started"]
    rows += [f"j{k},{3600 * k},5,1,{'' if wait is None else 3600 * k + wait}" for k in range(10)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    machines = "1x1" if wait == 60 else "99x8"
    options = ("--machines", machines, "--loads", "1", "--policies", "fifo,easy")
    code, out, _ = run("whatif", tmp_path / "t.csv", *options)
    text = " ".join(out.split())
    assert code == 0
    assert text.startswith(warning or "On 1 GPU")
    assert ("check the unit of durations (--duration-unit), --machines" in text) == bool(warning)
    assert ("without that column, holds and dependencies count" in text) == (wait is not None)
    assert "easy promises the first in line" in text


def test_ctrl_c_before_the_first_policy_leaves_no_result(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=1))  # the bound alone
    code, out, _ = run("whatif", trace, "--policies", "fifo", "--processes", "1")
    assert (code, out) == (130, "")


def test_a_policy_that_fails_is_named_and_costs_no_other(
    run: Run, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from oasis.scheduling.policy import BasePolicy\n"
        "class Bad(BasePolicy):\n"
        "    name = 'bad'\n"
        "    def decide(self, view):\n"
        "        raise KeyError('oh')\n"
    )
    monkeypatch.chdir(tmp_path)
    policies = f"fifo,{tmp_path / 'mine.py'}:Bad"
    code, out, err = run("whatif", trace, "--policies", policies, "--loads", "1")
    assert code == 4
    assert "fifo" in out
    assert "failed: " in err
    assert "KeyError" in err


REFUSED = Path(__file__).with_name("whatif_refused.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("row", REFUSED)
def test_what_is_refused(run: Run, trace: Path, row: str) -> None:
    options, message = row.split(" => ")
    code, out, err = run("whatif", trace, *shlex.split(options))
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("job", "options", "message"),
    [
        ("1e300,1", (), "row 2: bad duration: above 2^53 seconds"),
        (f"60,{2**53}", (), "--machines: expected at most 1,000,000 of 8 GPUs, the busiest moment"),
        (f"60,{2**53}", ("--machines", "8x8"), "--max-gpus 64 leaves larger jobs out"),
    ],
)
def test_jobs_that_no_run_can_have_are_one_line(
    run: Run, tmp_path: Path, job: str, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "jobs.csv").write_text(f"id,submitted,duration,gpus\na,0,{job}\n")
    code, out, err = run("whatif", tmp_path / "jobs.csv", "--duration-unit", "s", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_elastic_jobs_are_sent_to_replay(run: Run) -> None:
    code, _, err = run("whatif", Path(__file__).parents[3] / "docs/examples/elastic.json")
    assert code == 2
    assert "got what looks like a workload of elastic jobs" in err
    assert "or a workload of elastic jobs, got" not in err


def test_pictures_and_section_of_a_result_of_one_policy(run: Run, trace: Path) -> None:
    code, out, _ = run("whatif", trace, "--policies", "fifo", "--loads", "2", "--json")
    assert code == 0
    document: dict[str, Any] = json.loads(out)
    found = WhatIf.from_dict(document)
    section = whatif_section("r.json", document, found, ())
    assert len(section.pictures) == 4
    assert len(over_time_figure(found, "in_use").axes) == 2
    assert loads_figure(found).axes
    with pytest.raises(InputError, match="settings"):
        WhatIf.from_dict(document | {"settings": []})
    first, second = document["settings"]
    interrupted = document | {"settings": [first, second | {"policies": {}}]}
    assert WhatIf.from_dict(interrupted).to_dict() == interrupted


def test_utilities_of_the_table_are_added_and_bounded(run: Run, tmp_path: Path) -> None:
    """Two jobs that cannot both be in time: the second is worth more, and FIFO misses it."""
    table = tmp_path / "jobs.csv"
    table.write_text(
        "id,submitted,duration,gpus,owner,prize,due\na,0,60,8,ann,3,\nb,0,60,8,bob,5,60\n"
    )
    options = ("--map", "worth=prize,deadline=due", "--machines", "1x8", "--loads", "1")
    one = (*options, "--policies", "fifo", "--csv", tmp_path / "my")
    code, out, _ = run("whatif", table, *one, "-o", tmp_path / "page.html")
    assert code == 0
    assert "What the jobs are worth" in out
    assert "fifo earns: 3," in " ".join(out.split())
    two = (*options, "--policies", "fifo,srtf")
    assert "all policies earn the same: 3," in " ".join(run("whatif", table, *two)[1].split())
    assert "What the jobs are worth" in (tmp_path / "page.html").read_text()
    assert [row["utility"] for row in read(tmp_path / "my-jobs.csv")] == ["3.0", "0.0"]
    assert [row["utility"] for row in read(tmp_path / "my-owners.csv")] == ["3.0", "0.0"]
    document = json.loads(run("whatif", table, *options, "--json")[1])
    (setting,) = document["settings"]
    assert setting["policies"]["fifo"]["utility"] == 3.0
    assert 8.0 <= setting["utility_bound"] <= 8.0001  # a has no deadline, so b could go first
    assert WhatIf.from_dict(document).to_dict() == document


def test_utilities_are_drawn_by_a_rule_that_is_printed(run: Run, trace: Path) -> None:
    base = ("whatif", trace, "--machines", "2x8", "--policies", "fifo,srsf", "--loads", "1")
    code, out, err = run(*base, "--utilities", "drawn", "--seed", 3)
    assert code == 0
    assert "drawn with seed 3 as `oasis import` does" in " ".join(out.split())
    assert "drawn with seed 3" in err
    assert "in reality" in out
    settings = [
        json.loads(run(*base, "--utilities", "drawn", "--seed", n, "--json")[1])["settings"][0]
        for n in (3, 3, 4)
    ]
    assert settings[0] == settings[1] != settings[2]
    for row in settings[0]["policies"].values():
        assert 0 < row["utility"] <= settings[0]["utility_bound"]
    code, out, _ = run(*base)
    assert "worth" not in out


def test_machines_are_named_alike_in_replay_and_import(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("gpus,count\n8,2\n")
    base = ("replay", trace, "--policies", "fifo", "--json")
    rows = []
    for how in (("--machines", "2x8"), ("--machines", nodes), ("--servers", 2)):
        document = json.loads(run(*base, *how)[1])
        rows.append(document["policies"]["fifo"]["mean_completion"])
        if how[0] == "--machines":
            assert document["machines"] == [8, 8]
    assert rows[0] == rows[1] == rows[2]
    code, out, _ = run("replay", trace, "--machines", "2x8,1x16", "--policies", "fifo,easy")
    assert code == 0
    assert "on an import of several machines it promises places" in " ".join(out.split())
    assert out.startswith("40 jobs on 32 GPUs (2 x 8, 1 x 16), pooled\n")
    assert "min" in out
    assert "jobs/s" not in out
    made = tmp_path / "i.json"
    assert run("import", "plain", trace, "--machines", "3x8", "-o", made)[0] == 0
    (servers,) = json.loads(made.read_text())["worker_servers"]
    assert (servers["count"], servers["capacity"]["gpu"]) == (3, 8)
    for words, message in (
        (
            ("replay", trace, "--machines", "2x8", "--servers", 2),
            "--servers: expected no --machines beside it",
        ),
        (("import", "plain", trace, "-o", made, "--machines", "1x8,1x4"), "equally many GPUs"),
        (
            ("import", "plain", trace, "-o", made, "--machines", "1x8", "--worker-servers", 2),
            "--worker-servers: expected no --machines beside it",
        ),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert message in err
