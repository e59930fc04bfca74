"""Sweeps: what is in the grid, what is recorded, done again or shared, and what is not."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import oasis
from baselines import FIFO
from experiments.sweep import tasks
from experiments.sweep.cells import SweepConfig, expand, sweep_config
from experiments.sweep.executors import Local, execute
from experiments.sweep.run import SweepProgress, run_sweep
from experiments.sweep.store import ResultStore, read_frame, repeatable
from experiments.sweep.summary import summarise
from tests.sweeping import FATES, SMALL, counted, small
from tests.unit.experiments.test_values import VALUES

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "congested.json"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return run_sweep(small(), tmp_path_factory.mktemp("swept") / "small.parquet")


RATIO = {"name": "ratio", "work_limit": 5, "seed": 2, "method": "milp"}


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def test_a_value_and_a_list_of_it_are_the_same_axis():
    instances = [{"preset": ["testbed"], "jobs": [4], "priority": [[1, 50]]}]
    scalar = [{"preset": "testbed", "jobs": 4, "priority": [1, 50]}]
    keys = [[cell.key for cell in expand(small(instances=some))] for some in (instances, scalar)]
    assert keys[0] == keys[1]


def test_options_of_every_policy_are_axes():
    policies = [
        {"name": "las", "thresholds": [[1.0], [0.5, 2]], "line": ["strict", "fit"]},
        {"name": "rrh", "weight": [0.2, 0.8]},
        {"name": ["srtf", "las"], "line": "fit", "seed": 7},
    ]
    found = [
        (cell.policy, cell.make_case().make_policy().parameters)
        for cell in expand(_one(policies=policies))
    ]
    seen = [(name, o.get("thresholds"), o.get("line"), o.get("weight")) for name, o in found]
    assert seen == [
        ("las", [1.0], "strict", None),
        ("las", [1.0], "fit", None),
        ("las", [0.5, 2.0], "strict", None),
        ("las", [0.5, 2.0], "fit", None),
        ("rrh", None, None, 0.2),
        ("rrh", None, None, 0.8),
        ("srtf", None, "fit", None),
        ("las", [1.0], "fit", None),
    ]
    assert [o["seed"] for _, o in found] == [1] * 6 + [7] * 2, "it is the cell's"


def test_counted_seeds_are_consecutive():
    assert small(seeds={"count": 3}).seeds == [0, 1, 2]
    assert small(seeds=3).seeds == [0, 1, 2]  # as --seeds 3 on the command line
    assert small(seeds=[3]).seeds == [3]
    assert small(seeds={"first": 5, "count": 2}).seeds == [5, 6]


def test_key_depends_on_everything_that_the_result_follows_from():
    (base,) = expand(_one())
    others = [_one(**change) for change in VALUES["cells"]["changes"]]
    keys = {cell.key for config in others for cell in expand(config)}
    assert len(keys) == len(others)
    assert base.key not in keys


def test_key_follows_the_content_of_a_file_not_its_name(tmp_path):
    data = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(data, indent=3), encoding="utf-8")
    data["jobs"].pop()
    (tmp_path / "c.json").write_text(json.dumps(data), encoding="utf-8")
    config = _one(instances=[{"file": ["a.json", "b.json", "c.json"]}])
    a, b, c = (cell.key for cell in expand(config, base=tmp_path))
    assert a == b != c


def test_code_of_the_task_is_part_of_the_fingerprint():
    prints = [tasks.fingerprint(tasks.TASKS[name].function) for name in ("run", "ratio")]
    assert prints[0] == prints[1] != tasks.fingerprint(counted)


def _one(**changes: Any) -> Any:
    one = {"instances": [{"preset": "testbed", "jobs": 3}], "policies": [{"name": "oasis"}]}
    return small(**one | {"seeds": [1]} | changes)


def test_rows_are_what_the_library_computes_in_grid_order(swept):
    policies = [("oasis", 0.5), ("oasis", 1.0), ("fifo", None)]
    points = product((3, 5), policies, (1, 0))
    for row, (jobs, (policy, scale), seed) in zip(
        swept.frame.to_dict("records"), points, strict=True
    ):
        instance = oasis.generate("testbed", jobs=jobs, horizon=8, seed=seed)
        made = oasis.OASiS.from_instance(instance, scale=scale) if scale else FIFO(seed)
        run = oasis.simulate(instance, made)
        found = (row["instance.jobs"], row["policy.name"], row["seed"], row["status"])
        assert found == (jobs, policy, seed, "done")
        assert row["total_utility"] == run.total_utility
        assert row["finished"] == len(run.schedules)
        assert row["version"] == oasis.__version__
    assert swept.progress == SweepProgress(total=12, done=12)
    pd.testing.assert_frame_equal(read_frame(swept.output), swept.frame)


def test_measured_times_are_marked_and_come_last(swept):
    names = list(swept.frame.columns)
    marked = [name for name in names if name.startswith(tasks.MEASURED)]
    assert names[-len(marked) :] == marked
    assert {f"{tasks.MEASURED}decision_seconds.median", f"{tasks.MEASURED}cell_seconds"} <= set(
        marked
    )
    timed = [name for name in names if "seconds" in name and name not in marked]
    assert timed == ["instance.slot_seconds"]
    assert list(repeatable(swept.frame).columns) == names[: -len(marked)]


def test_lateness_is_completion_minus_target_job_by_job(tmp_path):
    config = _one(task={"name": "lateness"})
    (row,) = run_sweep(config, tmp_path / "late.parquet").frame.to_dict("records")
    instance = oasis.generate("testbed", jobs=3, seed=1)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    ends = {decision.job_id: decision.completion for decision in run.decisions}
    for job, late, decay in zip(
        instance.jobs_by_arrival(), row["lateness"], row["decay"], strict=True
    ):
        assert decay == job.utility.decay
        if ends[job.id] is None:
            assert math.isnan(late)
        else:
            assert late == pytest.approx(ends[job.id] - job.arrival - job.utility.target)


@pytest.mark.parametrize(
    ("limits", "recorded", "ended"),
    [
        ({"gap": 1.0, "no_improvement": math.inf}, {"gap": 1.0}, ("gap_limit", False)),
        ({"gap": math.inf}, {"gap": None}, ("gap_limit", False)),  # JSON has no infinity
        ({"time_limit": math.inf}, {"time_limit": None}, ("optimal", True)),
    ],
)
def test_limits_end_the_solve_and_are_part_of_the_cell_where_they_are_given(
    limits, recorded, ended, tmp_path
):
    (plain,) = expand(_one(task={"name": "ratio"}))
    assert plain.identity["task"].keys() == {"name", "time_limit", "work_limit", "seed", "method"}
    config = _one(task={"name": "ratio"} | limits)
    (cell,) = expand(config)
    assert cell.identity["task"] == plain.identity["task"] | recorded
    (row,) = run_sweep(config, tmp_path / "ratio.parquet").frame.to_dict("records")
    assert (row["offline_status"], row["proven"]) == ended
    assert {name: row[f"task.{name}"] for name in recorded} == recorded
    assert run_sweep(config, tmp_path / "ratio.parquet").progress.kept == 1


def test_parameters_of_the_method_reach_it_and_are_part_of_the_cell(tmp_path):
    (plain,) = expand(_one(task={"name": "ratio", "method": "bruteforce"}))
    task = {"name": "ratio", "method": "bruteforce", "params": {"max_steps": 1}}
    (cell,) = expand(_one(task=task))
    assert cell.identity["task"] == plain.identity["task"] | {"params": {"max_steps": 1}}
    (row,) = run_sweep(_one(task=task), tmp_path / "ratio.parquet").frame.to_dict("records")
    assert "968 steps, at most 1" in row["error"]


def test_recorded_cells_are_not_run_again_and_new_ones_are(tmp_path):
    task = {"name": "counted", "folder": str(tmp_path)}
    output = tmp_path / "out.parquet"
    first = run_sweep(small(task=task), output, tasks=FATES)
    assert calls(tmp_path) == 12
    again = run_sweep(small(task=task), output, tasks=FATES)
    assert calls(tmp_path) == 12
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert again.progress == SweepProgress(total=12, done=12, kept=12)
    wider = run_sweep(small(task=task, seeds=[2, 1]), output, tasks=FATES)
    assert calls(tmp_path) == 18
    assert wider.progress.kept == 6
    assert wider.frame["seed"].tolist() == [2, 1] * 6


@pytest.mark.parametrize("damage", ["", "{", "[]", "changed", "other"])
def test_damaged_record_is_noted_and_its_cell_run_again(tmp_path, damage):
    config, output = _one(), tmp_path / "out.parquet"
    before = run_sweep(config, output).frame
    (cell,) = expand(config)
    store = ResultStore.beside(output)
    path = store.path(cell.key)
    if damage == "other":
        record = store.load(cell.key, cell.identity)
        store.save(cell.key, {**cell.identity, "seed": 9}, record)
    elif damage == "changed":
        path.write_text(path.read_text().replace('"admitted":', '"admitted":1'))
    else:
        path.write_text(damage)
    notes: list[str] = []
    result = run_sweep(config, output, on_note=notes.append)
    assert len(notes) == 1
    assert str(path) in notes[0]
    assert result.progress.kept == 0
    pd.testing.assert_frame_equal(repeatable(result.frame), repeatable(before))


def test_failing_cell_is_recorded_and_the_rest_goes_on(tmp_path):
    (tmp_path / "broken").touch()
    config = small(task={"name": "failing", "folder": str(tmp_path), "doomed": [0]})
    output = tmp_path / "out.parquet"
    result = run_sweep(config, output, tasks=FATES)
    assert result.progress == SweepProgress(total=12, done=12, failed=6)
    for row in result.frame.to_dict("records"):
        doomed = row["seed"] == 0
        assert row["status"] == ("failed" if doomed else "done")
        assert pd.isna(row["error"]) != doomed
        assert not doomed or row["error"] == "ValueError: seed 0 is doomed"
        assert math.isnan(row["total_utility"]) == doomed

    (tmp_path / "broken").unlink()
    kept = run_sweep(config, output, tasks=FATES)
    assert kept.progress.failed == 6
    mended = run_sweep(config, output, tasks=FATES, retry_failed=True)
    assert mended.progress == SweepProgress(total=12, done=12, failed=0, kept=6)


def test_cell_whose_worker_dies_is_recorded_and_takes_no_other_with_it(tmp_path):
    config = _one(task={"name": "dying", "folder": "", "doomed": [0]}, seeds=[1, 0, 2, 3])
    frame = run_sweep(config, tmp_path / "out.parquet", tasks=FATES).frame
    assert list(zip(frame["seed"], frame["status"], strict=True)) == [
        (1, "done"),
        (0, "failed"),
        (2, "done"),
        (3, "done"),
    ]
    assert frame["error"][1].startswith("WorkerDied: ")


def test_what_a_cell_may_be_and_return():
    (cell,) = expand(_one())
    assert execute(cell).status == "done"
    refused = execute(dataclasses.replace(cell, code="0123"))
    assert refused.status == "failed"
    assert refused.error.startswith("RuntimeError: the worker runs other code than the sweep: ")
    (untidy,) = expand(_one(task={"name": "untidy"}), tasks=FATES)
    assert execute(untidy).error == "TypeError: Object of type object is not JSON serializable"
    (linear,) = expand(_one(task={"name": "threads"}), tasks=FATES)
    assert set(execute(linear).figures["threads"]) == {1}
    shared = expand(small(task=RATIO))[0].shared_cell
    assert shared.identity["policy"] is None
    with pytest.raises(ValueError, match="a shared cell has no policy"):
        shared.make_case().make_policy()


def test_summary_is_mean_and_student_interval_over_seeds():
    values = [3.0, 5.0, 10.0]
    frame = pd.DataFrame(
        {
            "policy.name": ["a"] * 3 + ["b"] * 2,
            "seed": [0, 1, 2, 0, 1],
            "status": ["done"] * 4 + ["failed"],
            "utility": [*values, 7.0, None],
        }
    )
    a, b = summarise(frame, ["utility", "absent"]).to_dict("records")
    low, high = stats.t.interval(0.95, 2, loc=6.0, scale=stats.sem(values))
    assert (a["seeds"], a["failed"], a["utility"]) == (3, 0, 6.0)
    assert (6.0 - a["utility.ci95"], 6.0 + a["utility.ci95"]) == pytest.approx((low, high))
    assert (b["seeds"], b["failed"], b["utility"], b["utility.n"]) == (1, 1, 7.0, 1)
    assert math.isnan(b["utility.ci95"])


WRONG = tomllib.loads(Path(__file__).with_name("wrong_sweeps.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "change",
    [*WRONG["wrong"], {"instances": None, "says": "instances: "}],
    ids=lambda row: row["says"],
)
def test_wrong_configuration_is_refused_by_key(change):
    wrong = {name: value for name, value in change.items() if name != "says"}
    with pytest.raises(oasis.OasisError) as caught:
        expand(sweep_config(SMALL | wrong))
    assert str(caught.value).startswith(change["says"])
    assert "\n" not in str(caught.value)


def test_one_worker_gives_the_rows_of_many(swept, tmp_path):
    alone = run_sweep(small(), tmp_path / "alone.parquet", executor=Local(1))
    pd.testing.assert_frame_equal(repeatable(alone.frame), repeatable(swept.frame))


def test_output_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    task = {"name": "counted", "folder": str(tmp_path)}
    taken = tmp_path / "taken.parquet"
    ResultStore.beside(taken).directory.symlink_to(tmp_path / "gone" / "away")
    for output, error in (
        (tmp_path / "none" / "out.parquet", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (taken, FileExistsError),
    ):
        with pytest.raises(error):
            run_sweep(small(task=task), output, tasks=FATES)
    assert calls(tmp_path) == 0


@dataclass(frozen=True)
class FolderOptions(tasks.Options):
    """Where the shared task counts its calls, and whether it fails."""

    folder: str = ""
    fails: bool = False


def solved(case: tasks.Case) -> tasks.Figures:
    """Leave a line in a file, in place of a solve."""
    with (Path(case.options.folder) / "solves").open("a", encoding="utf-8") as stream:
        stream.write(f"{len(case.instance.jobs)} {case.seed}\n")
    if case.options.fails:
        raise ValueError("no solution")
    return {"jobs": len(case.instance.jobs)}


def used(case: tasks.Case) -> tasks.Figures:
    """What the shared task found, beside the policy."""
    return {"total_utility": 1.0, "jobs": case.shared["jobs"]}


COUNTING = {
    **tasks.TASKS,
    "used": tasks.CellTask(
        "used", used, FolderOptions, shared=tasks.CellTask("s", solved, FolderOptions)
    ),
}


def counting(folder: Path, **options: Any) -> SweepConfig:
    return small(task={"name": "used", "folder": str(folder), **options})


def solves(folder: Path) -> list[str]:
    return sorted((folder / "solves").read_text(encoding="utf-8").splitlines())


def test_shared_task_runs_once_an_instance_and_seed(tmp_path):
    reports: list[SweepProgress] = []
    output = tmp_path / "o.parquet"
    result = run_sweep(counting(tmp_path), output, tasks=COUNTING, on_progress=reports.append)
    assert solves(tmp_path) == ["3 0", "3 1", "5 0", "5 1"]
    assert result.frame["jobs"].tolist() == [3] * 6 + [5] * 6
    assert result.progress == SweepProgress(12, 12, shared_total=4, shared_done=4)
    assert (reports[0].done, reports[0].shared_done) == (0, 0)
    steps = [report.done + report.shared_done for report in reports]
    assert steps == list(range(17)), "each solve and each run is a step"


def test_recorded_solves_are_not_repeated(tmp_path):
    output = tmp_path / "o.parquet"
    first = run_sweep(counting(tmp_path), output, tasks=COUNTING)
    store = ResultStore.beside(output)
    for cell in expand(counting(tmp_path), tasks=COUNTING):
        store.path(cell.key).unlink()
    again = run_sweep(counting(tmp_path), output, tasks=COUNTING)
    assert len(solves(tmp_path)) == 4
    assert again.progress == SweepProgress(12, 12, shared_total=4, shared_done=4)
    pd.testing.assert_frame_equal(repeatable(again.frame), repeatable(first.frame))
    kept = run_sweep(counting(tmp_path), output, tasks=COUNTING)
    assert kept.progress == SweepProgress(12, 12, kept=12), "nothing is left to solve for"


def test_an_instance_file_is_solved_once_whatever_the_seeds(tmp_path):
    path = tmp_path / "a.json"
    oasis.write(oasis.generate("testbed", jobs=2, seed=1), path)
    one_file = small(instances=[{"file": str(path)}]).instances
    grid = replace(counting(tmp_path), instances=one_file)
    run_sweep(grid, tmp_path / "o.parquet", tasks=COUNTING)
    assert solves(tmp_path) == ["2 0"]


def test_what_ends_the_shared_task_ends_its_cells(tmp_path):
    output = tmp_path / "o.parquet"
    result = run_sweep(counting(tmp_path, fails=True), output, tasks=COUNTING)
    assert result.progress.failed == 12
    assert set(result.frame["error"]) == {"ValueError: no solution"}
    run_sweep(counting(tmp_path, fails=True), output, tasks=COUNTING)
    assert len(solves(tmp_path)) == 4
    run_sweep(counting(tmp_path, fails=True), output, tasks=COUNTING, retry_failed=True)
    assert len(solves(tmp_path)) == 8


def case(objective: float, upper: float, proven: bool) -> tasks.Case:
    """FIFO on an instance, with an offline solve that found this."""
    changes = {"instances": [{"preset": "testbed", "jobs": 3}], "policies": [{"name": "fifo"}]}
    (cell,) = expand(small(**changes, seeds=[1], task=RATIO))
    shared = {
        "proven": proven,
        "offline_status": "x",
        "offline_objective": objective,
        "offline_upper_bound": upper,
        "offline_method": "milp",
        "measured.offline_seconds": 0.0,
    }
    return replace(cell.make_case(), shared=shared)


def test_a_policy_better_than_the_unfinished_solve_is_the_better_lower_bound():
    earned = float(tasks.ratio(case(1e9, 1e9, proven=True))["total_utility"])  # type: ignore[arg-type]
    found = tasks.ratio(case(earned / 2, earned * 3, proven=False))
    assert (found["ratio"], found["ratio_lower"]) == (None, 1.0)
    assert found["ratio_upper"] == pytest.approx(3.0)
    assert found["offline_objective"] == earned
    with pytest.raises(oasis.SolverError, match=r"^fifo earned .*, more than the offline upper"):
        tasks.ratio(case(0.5, 0.5, proven=True))
