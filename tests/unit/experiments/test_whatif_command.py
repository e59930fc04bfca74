"""``oasis whatif``: what it prints and writes, and what Ctrl-C leaves."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
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
from tests.unit.experiments.conftest import Call

pytestmark = pytest.mark.usefixtures("trace")


def document_of(call: Call, line: str) -> dict[str, Any]:
    """What a run prints as JSON."""
    code, out, err = call(f"whatif {line} --json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_document_is_a_result_that_a_report_takes(call):
    options = "--policies fifo,srsf --loads 1 --fewer 1 --more 2 --goal 'p95 wait < 10 min'"
    assert call(f"whatif jobs.csv --machines 2x8 {options} -o r.json")[0] == 0
    found = oasis.read_result("r.json")
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
    document = json.loads(Path("r.json").read_text())
    assert found.to_dict() == document
    for name in ("notes", "missing", "failed", "goal"):
        with pytest.raises(InputError, match=rf"^{name}: expected .*, got None"):
            WhatIf.from_dict(document | {name: None})
    goal = document["goal"] | {"policies": {"fifo": {"machines": 9, "tried": [[1, 2.0]]}}}
    with pytest.raises(InputError, match=r"^goal.policies.fifo.tried: expected a value with 9 mac"):
        WhatIf.from_dict(document | {"goal": goal})
    assert call("report r.json -o p.html")[0] == 0
    for text in ("1 machine fewer", "2 machines more", "Fewest machines for p95 wait &lt; 10 min"):
        assert text in Path("p.html").read_text()
    assert call("plot r.json -o p.png")[0] == 0
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_on_the_page_and_two_processes_make_the_same_document(call):
    options = "--policies fifo,las --set las.thresholds=2,5 --loads 1.5 --processes 1 -o r.json"
    assert call(f"whatif jobs.csv --machines 2x8 {options}")[0] == 0
    document = json.loads(Path("r.json").read_text())
    command = document.pop("command")
    assert command.startswith("oasis whatif ")
    assert " -o " not in command, "to run it again overwrites nothing"
    again = document_of(call, command.removeprefix("oasis whatif "))
    assert again | {"command": None} == document | {"command": None}
    two = document_of(call, command.removeprefix("oasis whatif ") + " --processes 2")
    assert two["settings"] == document["settings"]


def read(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(file).read_text().splitlines()))


def test_tables_of_jobs_and_owners(call):
    line = "whatif jobs.csv --machines 2x8 --policies fifo,srtf --loads 1.5 --csv"
    assert call(f"{line} my")[0] == 0
    rows = read("my-jobs.csv")
    assert len(rows) == 3 * 40  # in reality, and two policies at the load as it is
    assert {row["policy"] for row in rows} == {"recorded", "fifo", "srtf"}
    real = [row for row in rows if row["policy"] == "recorded"]
    assert {float(row["waiting"]) for row in real} == {900.0}
    owners = read("my-owners.csv")
    assert len(owners) == 3 * (3 + 2)
    for row in owners:
        if row["load"] == "1.0" and row["policy"] == "fifo":
            mine = [r for r in rows if r["policy"] == "fifo" and r["owner"] == row["owner"]]
            mean = sum(float(r["waiting"]) for r in mine) / len(mine)
            assert float(row["mean_waiting"]) == pytest.approx(mean)
    Path("tables").mkdir()
    assert call(f"{line} tables")[0] == 0
    assert Path("tables/jobs.csv").exists()


class Interrupted:
    """Ctrl-C after this many cells."""

    def __init__(self, after: int) -> None:
        self._after = after

    def run(self, some: list[Cell]) -> Iterator[tuple[Cell, CellResult]]:
        for k, found in enumerate(Here().run(some)):
            if k == self._after:
                raise KeyboardInterrupt
            yield found


def test_ctrl_c_keeps_what_is_done_and_the_next_run_goes_on(call, monkeypatch):
    line = "whatif jobs.csv --machines 2x8 --policies fifo,srtf,las --loads 1 --processes 1"
    kept = f"{line} --records kept --json"
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=3))
    code, out, err = call(kept)
    assert code == 3
    assert set(json.loads(out)["settings"][0]["policies"]) == {"recorded", "fifo", "srtf"}
    assert "interrupted: without las (as it is); " in err
    assert "keeps the others: the same command goes on" in " ".join(err.split())
    (first, *_) = answer(WhatIf.from_dict(json.loads(out)))
    assert "of the policies that ended, " in first
    code, _, err = call(line)
    assert code == 3
    assert "the runs that are done are not kept (--records DIR keeps them)" in " ".join(err.split())
    monkeypatch.setattr(whatif, "engine_of", lambda *_: Interrupted(after=1))
    code, out, _ = call(kept)  # only las is left
    assert code == 0
    assert "las" in json.loads(out)["settings"][0]["policies"]
    assert "that ended" not in answer(WhatIf.from_dict(json.loads(out)))[0]
    assert call(line)[:2] == (130, ""), "the bound alone was done"


def test_pictures_and_section_of_a_result_of_one_policy(call):
    document = document_of(call, "jobs.csv --policies fifo --loads 2")
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


def test_utilities_are_drawn_by_a_rule_that_is_printed(call):
    line = "jobs.csv --machines 2x8 --policies fifo,srsf --loads 1"
    code, out, err = call(f"whatif {line} --utilities drawn --seed 3")
    assert code == 0
    assert "drawn with seed 3 as `oasis import` does" in " ".join(out.split())
    assert "drawn with seed 3" in err
    assert "in reality" in out
    settings = [
        document_of(call, f"{line} --utilities drawn --seed {seed}")["settings"][0]
        for seed in (3, 3, 4)
    ]
    assert settings[0] == settings[1] != settings[2]
    for row in settings[0]["policies"].values():
        assert 0 < row["utility"] <= settings[0]["utility_bound"]
    assert "worth" not in call(f"whatif {line}")[1]


def test_machines_are_named_alike_in_replay_and_import(call):
    Path("nodes.csv").write_text("gpus,count\n8,2\n")
    means = set()
    for how in ("--machines 2x8", "--machines nodes.csv", "--servers 2"):
        document = json.loads(call(f"replay jobs.csv --policies fifo --json {how}")[1])
        means.add(document["policies"]["fifo"]["mean_completion"])
        assert document.get("machines") == (None if "--servers" in how else [8, 8])
    assert len(means) == 1
    code, out, _ = call("replay jobs.csv --machines 2x8,1x16 --policies fifo,easy")
    assert code == 0
    assert "on an import of several machines it promises places" in " ".join(out.split())
    assert out.startswith("40 jobs on 32 GPUs (2 x 8, 1 x 16), pooled\n")
    assert "min" in out
    assert "jobs/s" not in out
    assert call("import plain jobs.csv --machines 3x8 -o i.json")[0] == 0
    (servers,) = json.loads(Path("i.json").read_text())["worker_servers"]
    assert (servers["count"], servers["capacity"]["gpu"]) == (3, 8)
