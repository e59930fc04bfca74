"""What the commands write can be read back, verified and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oasis
from tests.packaging.commands import ELASTIC, EXAMPLE, JOB, SMALL, Oasis, assert_refused


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
    added |= {"command"}
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


@pytest.mark.parametrize("words", ["compare SMALL", "replay TRACE", "quote EXAMPLE JOB"])
def test_results_without_an_instance_are_drawn(
    run: Oasis, small: Path, tmp_path: Path, words: str
) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("id,submitted,duration,gpus\na,0,60,1\nb,5,30,2\n")
    files = {"SMALL": small, "TRACE": trace, "EXAMPLE": EXAMPLE, "JOB": JOB}
    given = [files.get(word, word) for word in words.split()]
    path, direct, again = (tmp_path / name for name in ("r.json", "direct.svg", "again.svg"))
    assert run(*given, "-o", path, "--plot", direct)[0] == 0
    assert run("plot", path, "-o", again) == (0, "", f"wrote {again}\n")
    assert direct.read_bytes() == again.read_bytes()


def test_a_report_is_refused_where_a_result_is_wrong(
    run: Oasis, small: Path, tmp_path: Path
) -> None:
    path, page = tmp_path / "r.json", tmp_path / "page.html"
    assert run("run", small, "-o", path)[0] == 0
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"admitted": 7}))
    assert_refused(run("report", path, "-o", page), str(path), "admitted: states 7, recomputed")
    path.write_text("[]")
    assert_refused(run("report", path, "-o", page), str(path))
    assert_refused(run("report", path, "-o", tmp_path / "no" / "page.html"), "No such directory")
    assert not page.exists()
    path.write_text(json.dumps(document))
    code, out, err = run("report", path, "-o", "-")
    assert (code, err, out.startswith("<!DOCTYPE html>")) == (0, "", True)
    assert run("report", path, "-o", page)[0] == 0
    assert page.read_text() == out


def test_a_schedule_of_anyone_that_breaks_a_constraint_is_one_line(
    run: Oasis, small: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.json"
    early = {"job_id": SMALL["jobs"][1]["id"], "workers": [[0, 0, 4]], "ps": [[0, 0, 1]]}
    mine.write_text(json.dumps({"schedules": [early]}))
    refused = run("verify", small, mine)
    assert_refused(refused, str(mine), "(9) workers after arrival [job b, slot 0, server w#0]")


def test_a_ratio_without_its_instance_is_drawn_without_the_jobs_and_says_so(
    run: Oasis, small: Path, tmp_path: Path
) -> None:
    path, whole, part = (tmp_path / name for name in ("r.json", "whole.svg", "part.svg"))
    assert run("ratio", small, "-o", path)[0] == 0
    assert run("plot", path, "-o", whole)[2] == f"wrote {whole}\n"
    moved = small.rename(tmp_path / "moved.json")
    code, _, err = run("plot", path, "-o", part)
    assert code == 0
    assert f"without the jobs that make the difference: {small} is not there" in err
    assert len(part.read_bytes()) < len(whole.read_bytes())
    assert run("plot", path, "-o", part, "--instance", moved)[0] == 0
    assert part.read_bytes() == whole.read_bytes()


def test_a_style_changes_the_picture_and_nothing_without_one(run: Oasis, tmp_path: Path) -> None:
    style = tmp_path / "mine.mplstyle"
    style.write_text("font.size: 15\n")
    names = ("plain", "mine", "again")
    paths = [tmp_path / f"{name}.svg" for name in names]
    words = ("compare", EXAMPLE, "--policies", "fifo,drf", "--plot")
    assert run(*words, paths[0])[0] == 0
    assert run(*words, paths[1], "--style", style)[0] == 0
    assert run(*words, paths[2])[0] == 0
    plain, mine, again = (path.read_bytes() for path in paths)
    assert plain == again
    assert plain != mine


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_what_comes_of_elastic_jobs_can_be_drawn_and_reported(
    run: Oasis, tmp_path: Path, command: str
) -> None:
    """The document names the format of its jobs; it is a result nevertheless."""
    result, page, picture = (tmp_path / name for name in ("r.json", "r.html", "r.svg"))
    assert run(command, ELASTIC, "--policies", "fifo,drf", "-o", result)[0] == 0
    assert run("plot", result, "-o", picture)[0] == 0
    assert run("report", result, "-o", page)[0] == 0
    assert picture.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert f"oasis {command} {ELASTIC}" in page.read_text(encoding="utf-8")


def test_a_schedule_of_the_library_is_checked(run: Oasis, tmp_path: Path) -> None:
    name, best = "testbed-t10-w7-p2-j12-mixed-s7", tmp_path / "best.json"
    best.write_text(run("library", "schedules", name)[1])
    code, out, _ = run("library", "check", best, "--name", name)
    assert (code, "verified: the same" in out) == (0, True)
    assert_refused(run("library", "check", best), str(best), "instance: missing")
    broken = json.loads(best.read_text())
    broken["schedules"][0]["workers"][0][2] += 1000
    best.write_text(json.dumps(broken))
    assert_refused(run("library", "check", best, "--name", name), str(best), "[job ")
