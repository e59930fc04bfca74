"""What the commands write can be read back, verified and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oasis
from tests.packaging.commands import EXAMPLE, JOB, SMALL, Oasis, assert_refused


@pytest.mark.parametrize("command", ["run", "solve", "ratio", "compare", "replay", "quote"])
def test_every_document_is_read_back(run: Oasis, small: Path, tmp_path: Path, command: str) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("id,submitted,duration,gpus\na,0,60,1\nb,5,30,2\n")
    files = {"replay": (trace,), "quote": (EXAMPLE, JOB)}.get(command, (small,))
    code, out, _ = run(command, *files, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["kind"] == command
    path = tmp_path / "result.json"
    path.write_text(out)
    again = json.loads(json.dumps(oasis.read_result(path).to_dict()))
    added = {"instance", "utilisation", "kind", "policy", "parameters", "seed", "version", "change"}
    assert document.keys() - again.keys() <= added
    assert again == {name: document[name] for name in again}


@pytest.mark.parametrize("command", ["run", "solve", "ratio"])
def test_a_result_is_verified_and_drawn(
    run: Oasis, small: Path, tmp_path: Path, command: str
) -> None:
    path, picture = tmp_path / "result.json", tmp_path / "result.svg"
    assert run(command, small, "-o", path)[0] == 0
    code, out, err = run("verify", small, path)
    assert (code, err) == (0, "")
    assert "every constraint (2)-(13) holds" in out
    assert run("plot", path, "-o", picture) == (0, "", f"wrote {picture}\n")
    assert "<svg" in picture.read_text()


def test_a_schedule_of_anyone_that_breaks_a_constraint_is_one_line(
    run: Oasis, small: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.json"
    early = {"job_id": SMALL["jobs"][1]["id"], "workers": [[0, 0, 4]], "ps": [[0, 0, 1]]}
    mine.write_text(json.dumps({"schedules": [early]}))
    refused = run("verify", small, mine)
    assert_refused(refused, str(mine), "(9) workers after arrival [job b, slot 0, server w#0]")


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(
    run: Oasis, tmp_path: Path
) -> None:
    assert_refused(run("plot", tmp_path / "none.json", "-o", tmp_path / "no.gif"), ".png")
    assert_refused(run("plot", tmp_path / "none.json", "-o", tmp_path / "a.png"), "none.json")
