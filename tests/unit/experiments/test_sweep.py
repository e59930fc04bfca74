"""Sweeps: what is in the grid, what is recorded, what is done again and what is not."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import oasis
from baselines import FIFO
from experiments.sweep.cells import expand, read_config, sweep_config
from experiments.sweep.executors import Local, execute
from experiments.sweep.run import SweepProgress, SweepResult, run_sweep
from experiments.sweep.store import ResultStore, read_frame, repeatable
from experiments.sweep.summary import summarise
from experiments.sweep.tasks import MEASURED, TASKS, fingerprint
from tests.sweeping import FATES, SMALL, counted, small

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "congested.json"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    return run_sweep(small(), tmp_path_factory.mktemp("swept") / "small.parquet")


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


# --- the grid ---------------------------------------------------------------------------------


def test_grid_is_the_product_of_its_axes_in_order() -> None:
    points = [
        (cell.columns["instance.jobs"], cell.policy, cell.policy_options.get("scale"), cell.seed)
        for cell in expand(small())
    ]
    policies = [("oasis", 0.5), ("oasis", 1.0), ("fifo", None)]
    wanted = [(jobs, *policy, seed) for jobs in (3, 5) for policy in policies for seed in (1, 0)]
    assert points == wanted


def test_a_value_and_a_list_of_it_are_the_same_axis() -> None:
    instances = [{"preset": ["testbed"], "jobs": [4], "priority": [[1, 50]]}]
    scalar = [{"preset": "testbed", "jobs": 4, "priority": [1, 50]}]
    keys = [[cell.key for cell in expand(small(instances=some))] for some in (instances, scalar)]
    assert keys[0] == keys[1]


def test_options_of_every_policy_are_axes() -> None:
    policies = [
        {"name": "las", "thresholds": [[1.0], [0.5, 2]], "line": ["strict", "fit"]},
        {"name": "rrh", "weight": [0.2, 0.8]},
        {"name": ["srtf", "las"], "line": "fit", "seed": 7},
    ]
    cells = expand(_one(policies=policies))
    found = [(cell.policy, dict(cell.policy_options)) for cell in cells]
    assert [(name, o["thresholds"], o["line"]) for name, o in found[:4]] == [
        ("las", [1.0], "strict"),
        ("las", [1.0], "fit"),
        ("las", [0.5, 2.0], "strict"),
        ("las", [0.5, 2.0], "fit"),
    ]
    assert [o["weight"] for name, o in found if name == "rrh"] == [0.2, 0.8]
    assert all("seed" not in options for _, options in found[:6]), "it is the cell's"
    for cell, (name, options) in zip(cells, found, strict=True):
        seed = 7 if "seed" in options else 1
        parameters = cell.make_case().make_policy().parameters
        assert parameters == {"seed": seed, **options}, name


def test_counted_seeds_are_consecutive() -> None:
    assert small(seeds={"count": 3}).seeds == [0, 1, 2]
    assert small(seeds=3).seeds == [0, 1, 2]  # as --seeds 3 on the command line
    assert small(seeds=[3]).seeds == [3]
    assert small(seeds={"first": 5, "count": 2}).seeds == [5, 6]


def test_key_depends_on_everything_that_the_result_follows_from() -> None:
    (base,) = expand(_one())
    others = [
        _one(seeds=[2]),
        _one(instances=[{"preset": "testbed", "jobs": 4}]),
        _one(instances=[{"preset": "testbed", "jobs": 3, "mix": [1, 0, 0]}]),
        _one(policies=[{"name": "oasis", "scale": 2.0}]),
        _one(policies=[{"name": "oasis", "normalize": False}]),
        _one(policies=[{"name": "drf"}]),
        _one(task={"name": "ratio"}),
        _one(task={"name": "ratio", "time_limit": 1}),
        _one(task={"name": "ratio", "work_limit": 1}),
        _one(task={"name": "ratio", "seed": 1}),
        _one(policies=[{"name": "fifo"}]),
        _one(policies=[{"name": "fifo", "seed": 1}]),
        _one(policies=[{"name": "las", "line": "fit"}]),
    ]
    keys = {cell.key for config in others for cell in expand(config)}
    assert len(keys) == len(others)
    assert base.key not in keys


def test_key_follows_the_content_of_a_file_not_its_name(tmp_path: Path) -> None:
    data = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(data, indent=3), encoding="utf-8")
    data["jobs"].pop()
    (tmp_path / "c.json").write_text(json.dumps(data), encoding="utf-8")
    config = _one(instances=[{"file": ["a.json", "b.json", "c.json"]}])
    a, b, c = (cell.key for cell in expand(config, base=tmp_path))
    assert a == b != c


def test_code_of_the_task_is_part_of_the_fingerprint() -> None:
    assert fingerprint(counted) != fingerprint(TASKS["run"].function)
    assert fingerprint(TASKS["ratio"].function) == fingerprint(TASKS["run"].function)


def _one(**changes: Any) -> Any:
    one = {"instances": [{"preset": "testbed", "jobs": 3}], "policies": [{"name": "oasis"}]}
    return small(**one | {"seeds": [1]} | changes)


# --- what comes out ---------------------------------------------------------------------------


def test_rows_are_what_the_library_computes_in_grid_order(swept: SweepResult) -> None:
    rows = iter(swept.frame.to_dict("records"))
    for jobs in (3, 5):
        for policy, scale in (("oasis", 0.5), ("oasis", 1.0), ("fifo", None)):
            for seed in (1, 0):
                row = next(rows)
                instance = oasis.generate("testbed", jobs=jobs, horizon=8, seed=seed)
                if scale is None:
                    run = oasis.simulate(instance, FIFO(seed))
                else:
                    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance, scale=scale))
                found = (row["instance.jobs"], row["policy.name"], row["seed"], row["status"])
                assert found == (jobs, policy, seed, "done")
                assert row["total_utility"] == run.total_utility
                assert row["finished"] == len(run.schedules)
                assert row["version"] == oasis.__version__
    assert swept.progress == SweepProgress(total=12, done=12)


def test_file_holds_what_is_returned(swept: SweepResult) -> None:
    pd.testing.assert_frame_equal(read_frame(swept.output), swept.frame)


def test_measured_times_are_marked_and_come_last(swept: SweepResult) -> None:
    names = list(swept.frame.columns)
    marked = [name for name in names if name.startswith(MEASURED)]
    assert names[-len(marked) :] == marked
    assert {f"{MEASURED}decision_seconds.median", f"{MEASURED}cell_seconds"} <= set(marked)
    timed = [name for name in names if "seconds" in name and name not in marked]
    assert timed == ["instance.slot_seconds"]
    assert list(repeatable(swept.frame).columns) == names[: -len(marked)]


def test_lateness_is_completion_minus_target_job_by_job(tmp_path: Path) -> None:
    config = _one(task={"name": "lateness"})
    (row,) = run_sweep(config, tmp_path / "late.parquet").frame.to_dict("records")
    instance = oasis.generate("testbed", jobs=3, seed=1)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    completion = {decision.job_id: decision.completion for decision in run.decisions}
    wanted = [
        math.nan
        if completion[job.id] is None
        else completion[job.id] - job.arrival - job.utility.target
        for job in instance.jobs_by_arrival()
    ]
    assert list(row["lateness"]) == pytest.approx(wanted, nan_ok=True)
    assert list(row["decay"]) == [job.utility.decay for job in instance.jobs_by_arrival()]


def test_ratio_is_that_of_the_library_and_bounds_every_policy(tmp_path: Path) -> None:
    from experiments import competitive_ratio

    policies = [{"name": ["oasis", "fifo"]}]
    task = {"name": "ratio", "time_limit": 30.0, "method": "milp"}
    config = _one(policies=policies, task=task)
    frame = run_sweep(config, tmp_path / "ratio.parquet").frame
    ours, fifo = frame.to_dict("records")
    instance = oasis.generate("testbed", jobs=3, seed=1)
    result = competitive_ratio(instance, time_limit=30.0, method="milp")
    assert ours["proven"]
    assert ours["ratio"] == result.ratio
    assert ours["bound_2alpha"] == 2 * result.certificate.alpha
    assert fifo["offline_objective"] == pytest.approx(result.offline_objective)
    assert fifo["ratio"] == pytest.approx(result.offline_objective / fifo["total_utility"])
    assert math.isnan(fifo["bound_2alpha"])


@pytest.mark.parametrize(
    ("limits", "recorded", "ended"),
    [
        ({"gap": 1.0, "no_improvement": math.inf}, {"gap": 1.0}, ("gap_limit", False)),
        ({"gap": math.inf}, {"gap": None}, ("gap_limit", False)),  # JSON has no infinity
        ({"time_limit": math.inf}, {"time_limit": None}, ("optimal", True)),
    ],
)
def test_limits_end_the_solve_and_are_part_of_the_cell_where_they_are_given(
    limits: dict[str, float], recorded: dict[str, Any], ended: tuple[str, bool], tmp_path: Path
) -> None:
    (plain,) = expand(_one(task={"name": "ratio"}))
    assert plain.identity["task"].keys() == {"name", "time_limit", "work_limit", "seed", "method"}
    config = _one(task={"name": "ratio"} | limits)
    (cell,) = expand(config)
    assert cell.identity["task"] == plain.identity["task"] | recorded
    (row,) = run_sweep(config, tmp_path / "ratio.parquet").frame.to_dict("records")
    assert (row["offline_status"], row["proven"]) == ended
    assert {name: row[f"task.{name}"] for name in recorded} == recorded
    assert run_sweep(config, tmp_path / "ratio.parquet").progress.kept == 1


def test_parameters_of_the_method_reach_it_and_are_part_of_the_cell(tmp_path: Path) -> None:
    (plain,) = expand(_one(task={"name": "ratio", "method": "bruteforce"}))
    task = {"name": "ratio", "method": "bruteforce", "params": {"max_steps": 1}}
    (cell,) = expand(_one(task=task))
    assert cell.identity["task"] == plain.identity["task"] | {"params": {"max_steps": 1}}
    (row,) = run_sweep(_one(task=task), tmp_path / "ratio.parquet").frame.to_dict("records")
    assert "968 steps, at most 1" in row["error"]


# --- records ----------------------------------------------------------------------------------


def test_recorded_cells_are_not_run_again_and_new_ones_are(tmp_path: Path) -> None:
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
def test_damaged_record_is_noted_and_its_cell_run_again(tmp_path: Path, damage: str) -> None:
    config, output = _one(), tmp_path / "out.parquet"
    before = run_sweep(config, output).frame
    (cell,) = expand(config)
    path = ResultStore.beside(output).path(cell.key)
    if damage == "changed":
        text = path.read_text(encoding="utf-8").replace('"admitted":', '"admitted":1')
    elif damage == "other":
        ResultStore.beside(output).save(
            cell.key, {**cell.identity, "seed": 9}, _record(cell, output)
        )
        text = path.read_text(encoding="utf-8")
    else:
        text = damage
    path.write_text(text, encoding="utf-8")
    notes: list[str] = []
    result = run_sweep(config, output, on_note=notes.append)
    assert len(notes) == 1
    assert str(path) in notes[0]
    assert result.progress.kept == 0
    pd.testing.assert_frame_equal(repeatable(result.frame), repeatable(before))


def _record(cell: Any, output: Path) -> Any:
    return ResultStore.beside(output).load(cell.key, cell.identity)


def test_failing_cell_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
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


def test_cell_whose_worker_dies_is_recorded_and_takes_no_other_with_it(tmp_path: Path) -> None:
    config = _one(task={"name": "dying", "folder": "", "doomed": [0]}, seeds=[1, 0, 2, 3])
    frame = run_sweep(config, tmp_path / "out.parquet", tasks=FATES).frame
    assert frame.groupby("seed")["status"].unique().map(list).to_dict() == {
        0: ["failed"],
        1: ["done"],
        2: ["done"],
        3: ["done"],
    }
    (error,) = frame["error"].dropna().unique()
    assert error.startswith("WorkerDied: ")


def test_task_that_returns_no_plain_data_fails_by_name(tmp_path: Path) -> None:
    frame = run_sweep(_one(task={"name": "untidy"}), tmp_path / "o.parquet", tasks=FATES).frame
    assert frame["error"].tolist() == ["TypeError: Object of type object is not JSON serializable"]


def test_worker_with_other_code_refuses() -> None:
    (cell,) = expand(_one())
    other = dataclasses.replace(cell, code="0123")
    assert execute(cell).status == "done"
    record = execute(other)
    assert record.status == "failed"
    assert record.error is not None
    assert record.error.startswith("RuntimeError: the worker runs other code than the sweep: ")


def test_one_thread_for_linear_algebra_in_a_cell() -> None:
    (cell,) = expand(_one(task={"name": "threads"}), tasks=FATES)
    assert set(execute(cell).figures["threads"]) == {1}


# --- summaries --------------------------------------------------------------------------------


def test_summary_is_mean_and_student_interval_over_seeds() -> None:
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


def test_summary_has_a_row_a_grid_point_and_names_what_varies(swept: SweepResult) -> None:
    table = summarise(swept.frame, swept.task.headline)
    points = table[["instance.jobs", "policy.name", "policy.scale"]].values.tolist()
    assert [point[:2] for point in points] == [
        [jobs, name] for jobs in (3, 5) for name in ("oasis", "oasis", "fifo")
    ]
    assert "instance.horizon" not in table
    assert table["seeds"].tolist() == [2] * 6


# --- configurations that are refused ----------------------------------------------------------

WRONG = tomllib.loads(Path(__file__).with_name("wrong_sweeps.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "change",
    [*WRONG["wrong"], {"instances": None, "says": "instances: "}],
    ids=lambda row: row["says"],
)
def test_wrong_configuration_is_refused_by_key(change: dict[str, Any]) -> None:
    wrong = {name: value for name, value in change.items() if name != "says"}
    with pytest.raises(oasis.OasisError) as caught:
        expand(sweep_config(SMALL | wrong))
    assert str(caught.value).startswith(change["says"])
    assert "\n" not in str(caught.value)


def test_one_worker_gives_the_rows_of_many(swept: SweepResult, tmp_path: Path) -> None:
    alone = run_sweep(small(), tmp_path / "alone.parquet", executor=Local(1))
    pd.testing.assert_frame_equal(repeatable(alone.frame), repeatable(swept.frame))


@pytest.mark.parametrize("text", ["seeds = [", "seeds = 1\nseeds = 2"])
def test_malformed_toml_is_refused_by_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        oasis.OasisError, match=r"^expected the configuration of a sweep, which is TOML: "
    ):
        read_config(path)


def test_output_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    task = {"name": "counted", "folder": str(tmp_path)}
    folder, taken = tmp_path / "folder", tmp_path / "taken.parquet"
    folder.mkdir()
    ResultStore.beside(taken).directory.symlink_to(tmp_path / "gone" / "away")
    with pytest.raises(FileNotFoundError, match="No such directory"):
        run_sweep(small(task=task), tmp_path / "none" / "out.parquet", tasks=FATES)
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        run_sweep(small(task=task), folder, tasks=FATES)
    with pytest.raises(FileExistsError):
        run_sweep(small(task=task), taken, tasks=FATES)
    assert calls(tmp_path) == 0
