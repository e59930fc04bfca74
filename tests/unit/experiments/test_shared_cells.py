"""The optimum of an instance is solved once for all policies, and kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oasis
from experiments.sweep.cells import SweepConfig, expand
from experiments.sweep.run import SweepProgress, run_sweep
from experiments.sweep.store import FAILED, CellResult, ResultStore, repeatable
from experiments.sweep.tasks import TASKS, Case, CellTask, Figures, Options, ratio
from tests.sweeping import small

RATIO = {"name": "ratio", "work_limit": 5, "seed": 2, "method": "milp"}


@dataclass(frozen=True)
class FolderOptions(Options):
    """Where the shared task counts its calls, and whether it fails."""

    folder: str = ""
    fails: bool = False


def solved(case: Case) -> Figures:
    """Leave a line in a file, in place of a solve."""
    with (Path(case.options.folder) / "solves").open("a", encoding="utf-8") as stream:
        stream.write(f"{len(case.instance.jobs)} {case.seed}\n")
    if case.options.fails:
        raise ValueError("no solution")
    return {"jobs": len(case.instance.jobs)}


def used(case: Case) -> Figures:
    """What the shared task found, beside the policy."""
    return {"total_utility": 1.0, "jobs": case.shared["jobs"]}


COUNTING = {
    **TASKS,
    "used": CellTask("used", used, FolderOptions, shared=CellTask("s", solved, FolderOptions)),
}


def config(folder: Path, **options: Any) -> SweepConfig:
    return small(task={"name": "used", "folder": str(folder), **options})


def solves(folder: Path) -> list[str]:
    return sorted((folder / "solves").read_text(encoding="utf-8").splitlines())


def test_shared_task_runs_once_an_instance_and_seed(tmp_path: Path) -> None:
    reports: list[SweepProgress] = []
    output = tmp_path / "o.parquet"
    result = run_sweep(config(tmp_path), output, tasks=COUNTING, on_progress=reports.append)
    assert solves(tmp_path) == ["3 0", "3 1", "5 0", "5 1"]
    assert result.frame["jobs"].tolist() == [3] * 6 + [5] * 6
    assert result.progress == SweepProgress(12, 12, shared_total=4, shared_done=4)
    assert (reports[0].done, reports[0].shared_done) == (0, 0)
    steps = [report.done + report.shared_done for report in reports]
    assert steps == list(range(17)), "each solve and each run is a step"


def test_recorded_solves_are_not_repeated(tmp_path: Path) -> None:
    output = tmp_path / "o.parquet"
    first = run_sweep(config(tmp_path), output, tasks=COUNTING)
    store = ResultStore.beside(output)
    for cell in expand(config(tmp_path), tasks=COUNTING):
        store.path(cell.key).unlink()
    again = run_sweep(config(tmp_path), output, tasks=COUNTING)
    assert len(solves(tmp_path)) == 4
    assert again.progress == SweepProgress(12, 12, shared_total=4, shared_done=4)
    pd.testing.assert_frame_equal(repeatable(again.frame), repeatable(first.frame))
    kept = run_sweep(config(tmp_path), output, tasks=COUNTING)
    assert kept.progress == SweepProgress(12, 12, kept=12), "nothing is left to solve for"


def test_an_instance_file_is_solved_once_whatever_the_seeds(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    oasis.write(oasis.generate("testbed", jobs=2, seed=1), path)
    one_file = small(instances=[{"file": str(path)}]).instances
    grid = replace(config(tmp_path), instances=one_file)
    run_sweep(grid, tmp_path / "o.parquet", tasks=COUNTING)
    assert solves(tmp_path) == ["2 0"]


def test_what_ends_the_shared_task_ends_its_cells(tmp_path: Path) -> None:
    output = tmp_path / "o.parquet"
    result = run_sweep(config(tmp_path, fails=True), output, tasks=COUNTING)
    assert result.progress.failed == 12
    assert set(result.frame["error"]) == {"ValueError: no solution"}
    run_sweep(config(tmp_path, fails=True), output, tasks=COUNTING)
    assert len(solves(tmp_path)) == 4
    run_sweep(config(tmp_path, fails=True), output, tasks=COUNTING, retry_failed=True)
    assert len(solves(tmp_path)) == 8


def case(objective: float, upper: float, proven: bool) -> Case:
    """FIFO on an instance, with an offline solve that found this."""
    (cell,) = expand(
        small(
            instances=[{"preset": "testbed", "jobs": 3}],
            policies=[{"name": "fifo"}],
            seeds=[1],
            task=RATIO,
        )
    )
    real = cell.make_case()
    shared = {
        "proven": proven,
        "offline_status": "x",
        "offline_objective": objective,
        "offline_upper_bound": upper,
        "offline_method": "milp",
        "measured.offline_seconds": 0.0,
    }
    return Case(real.instance, real.make_policy, real.seed, real.options, shared)


def test_a_policy_better_than_the_unfinished_solve_is_the_better_lower_bound() -> None:
    earned = float(ratio(case(1e9, 1e9, proven=True))["total_utility"])  # type: ignore[arg-type]
    found = ratio(case(earned / 2, earned * 3, proven=False))
    assert (found["ratio"], found["ratio_lower"]) == (None, 1.0)
    assert found["ratio_upper"] == pytest.approx(3.0)
    assert found["offline_objective"] == earned


def test_a_policy_above_the_proven_bound_is_an_error() -> None:
    with pytest.raises(oasis.SolverError, match=r"^fifo earned .*, more than the offline upper"):
        ratio(case(0.5, 0.5, proven=True))


def test_a_shared_cell_has_no_policy_to_make() -> None:
    cell = expand(small(task=RATIO))[0].shared_cell
    assert cell is not None
    assert cell.identity["policy"] is None
    with pytest.raises(ValueError, match="a shared cell has no policy"):
        cell.make_case().make_policy()
    assert CellResult(FAILED).figures == {}
