"""What the commands write can be read back, verified and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oasis
from tests.packaging.commands import EXAMPLE, JOB, Oasis


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
