"""Results of solving and comparing are read back; one that is not what it says is refused."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import oasis
from baselines import DRF, FIFO
from experiments.cli.commands.kept import plot, verify
from experiments.evaluation.comparison import compare
from experiments.evaluation.competitive_ratio import CompetitiveRatio, competitive_ratio
from experiments.evaluation.provenance import check_document, instance_reference

INSTANCE = oasis.generate("testbed", jobs=5, seed=3)
RATIO = competitive_ratio(INSTANCE, method="milp")
RUN, SOLVED = RATIO.run, RATIO.offline


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


COMPARED = compare(INSTANCE, {"fifo": FIFO, "drf": DRF})


def test_a_ratio_that_was_interrupted_is_read_back_as_such() -> None:
    part = CompetitiveRatio(RUN, SOLVED, None, is_complete=False)
    again = CompetitiveRatio.from_dict(through_json(part.to_dict()))
    assert (again.proven, again.certificate, again.upper) == (False, None, part.upper)


def test_frames_have_a_row_for_each_job_and_for_each_policy() -> None:
    assert set(SOLVED.to_frame()["job_id"]) == set(SOLVED.schedules)
    frame = COMPARED.to_frame()
    assert list(frame["policy"]) == ["fifo", "drf"]
    assert frame["total_utility"][0] == COMPARED.policies["fifo"]["total_utility"]


SCHEDULES = {"schedules": SOLVED.to_dict()["schedules"]}


@pytest.mark.parametrize(
    ("document", "schedules", "totals"),
    [
        (RUN.to_dict(), 2, {"total_utility": RUN.total_utility}),
        (SOLVED.to_dict(), 3, {"objective": SOLVED.objective}),
        (
            RATIO.to_dict(),
            5,
            {"total_utility": RUN.total_utility, "objective": SOLVED.objective},
        ),
        (SCHEDULES, 3, {"total_utility": SOLVED.objective}),
        (SCHEDULES | {"total_utility": SOLVED.objective}, 3, {"total_utility": SOLVED.objective}),
    ],
    ids=["run", "solve", "ratio", "schedules", "schedules with a total"],
)
def test_what_agrees_is_said_with_its_totals(
    document: dict[str, Any], schedules: int, totals: dict[str, float]
) -> None:
    found = check_document(INSTANCE, through_json(document))
    assert (found.schedules, found.totals) == (schedules, pytest.approx(totals))


def changed(document: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """A copy with another value at one place."""
    copy = through_json(deepcopy(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    found: dict[str, Any] = copy
    return found


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(RUN.to_dict(), "total_utility", to=1.0), "total_utility: states 1.0, recomputed"),
        (changed(RUN.to_dict(), "admitted", to=3), "admitted: states 3, recomputed 2"),
        (changed(RUN.to_dict(), "alpha", to=1.0), "alpha: states 1.0, recomputed"),
        (changed(RUN.to_dict(), "decisions", 0, "utility", to=90.0), "decisions [job j0]"),
        (
            changed(RUN.to_dict(), "decisions", 0, "schedule", "workers", 0, 2, to=99),
            "(3) workers at most chunks [job j0",
        ),
        (changed(SOLVED.to_dict(), "gap", to=0.5), "gap: states 0.5, recomputed"),
        (changed(SOLVED.to_dict(), "objective", to=1.0), "(1) objective: objective is 1.0"),
        (changed(SOLVED.to_dict(), "upper_bound", to=1.0), "(1) bound: upper_bound is 1.0"),
        (changed(SOLVED.to_dict(), "upper_bound", to=1e3), "status: states optimal, but the gap"),
        (changed(RATIO.to_dict(), "ratio", to=1.0), "ratio: states 1.0, recomputed"),
        (changed(RATIO.to_dict(), "certificate", "payoff_gap", to=0.0), "certificate.payoff_gap"),
        (changed(RATIO.to_dict(), "payoff_gap", to=0.0), "payoff_gap: states 0.0, recomputed"),
        (SCHEDULES | {"total_utility": 1.0}, "total_utility: states 1.0, recomputed"),
        (SCHEDULES | {"objective": "x"}, "objective: expected a finite number, got 'x'"),
        (changed(SCHEDULES, "schedules", 0, "job_id", to="zz"), "(1) jobs [job zz]"),
        ({}, "kind: missing"),
        (COMPARED.to_dict(), "kind: expected schedules to verify"),
        (
            SCHEDULES | {"instance": instance_reference(oasis.generate("testbed", jobs=2), None)},
            "instance.sha256: the result is of another instance",
        ),
        (SCHEDULES | {"instance": {}}, "instance.sha256: missing"),
    ],
)
def test_what_does_not_agree_is_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(oasis.OasisError, match=f"^{re.escape(message)}"):
        check_document(INSTANCE, document)


# --- commands ---------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, Path]:
    """An instance file and a result that names it."""
    path, result = tmp_path / "instance.json", tmp_path / "result.json"
    oasis.write(INSTANCE, path)
    reference = {"instance": instance_reference(INSTANCE, str(path))}
    result.write_text(json.dumps(RUN.to_dict() | reference))
    return path, result


def test_verify_prints_what_was_checked(
    kept: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    verify(*kept)
    assert "2, every constraint (2)-(13) holds" in capsys.readouterr().out
    verify(*kept, as_json=True)
    assert json.loads(capsys.readouterr().out)["schedules"] == 2


def test_verify_names_the_file_and_what_is_wrong(kept: tuple[Path, Path]) -> None:
    path, result = kept
    result.write_text(json.dumps(SCHEDULES | {"total_utility": 1.0}))
    with pytest.raises(oasis.OasisError, match=rf"^{result}: total_utility: states 1\.0"):
        verify(path, result)


def test_plot_draws_schedules_on_the_instance_that_is_given(
    kept: tuple[Path, Path], tmp_path: Path
) -> None:
    path, result = kept
    result.write_text(json.dumps(SCHEDULES))
    with pytest.raises(oasis.OasisError, match="names no instance file; expected --instance too"):
        plot(result, tmp_path / "picture.png")
    plot(result, tmp_path / "picture.png", path)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_plot_says_of_what_there_are_pictures(kept: tuple[Path, Path], tmp_path: Path) -> None:
    _, result = kept
    result.write_text(json.dumps(COMPARED.to_dict() | {"kind": "describe"}))
    kinds = "run, quote, solve, ratio, compare, replay, whatif"
    with pytest.raises(oasis.OasisError, match=f"kind: expected one of {kinds}, got 'describe'$"):
        plot(result, tmp_path / "picture.png")
