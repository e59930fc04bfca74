"""Tables that pages show from CSV files are what their commands write."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from baselines import FIFO
from oasis.simulator import PlainJob, replay, rigid_workload
from tests.benchmarks import ablation, distribution, dorm, simulator_speed, table, traces
from tests.packaging.commands import Oasis
from tests.packaging.figure_rows import ROOT, trace
from tests.philly_shape import philly_jobs

BENCHMARKS = ROOT / "docs" / "benchmarks"


def shown(name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with (BENCHMARKS / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def data() -> Path:
    """Directory of the public traces; the test is skipped where one is missing."""
    return next(iter([trace(name) for name in traces.FILES])).parent


def of_trace(number: int) -> dict[str, str]:
    """The column of a trace: a value for each row."""
    name, *columns = traces.COLUMNS
    return {row[name]: row[columns[number]] for row in shown("traces")}


@pytest.mark.parametrize("number", range(2), ids=traces.COLUMNS[1:])
def test_the_defaults_of_a_public_trace_give_what_the_page_says(number: int) -> None:
    found = dict(traces.column(traces.TRACES[number], data()))
    page = of_trace(number)
    assert {name: page.get(name) for name in found} == found


@cache
def chosen(slices: int, *clusters: str) -> dict[str, list[PlainJob]]:
    """The jobs of the benchmark of the simulator."""
    path = trace("philly_sia.csv")
    found: dict[str, list[PlainJob]] = simulator_speed.chosen(
        path, slices=slices, clusters=clusters
    )
    return found


def by_size(row: dict[str, str]) -> Any:
    marks = [pytest.mark.nightly] if int(row["jobs"]) > 8000 else []
    return pytest.param(row, id=f"{row['jobs of']}-{row['placement']}", marks=marks)


@pytest.mark.parametrize("row", [by_size(row) for row in shown("simulator")])
def test_a_mean_of_the_benchmark_of_the_simulator_is_computed_again(row: dict[str, str]) -> None:
    assert row["policy"] == "fifo"
    name = row["jobs of"]
    jobs = (chosen(0, name) if name in simulator_speed.CLUSTERS else chosen(5))[name]
    outcome = replay(rigid_workload(jobs, 8, 8, row["placement"]), FIFO())
    found = (str(len(jobs)), f"{outcome.mean_completion:.4f}")
    assert (row["jobs"], row["mean completion (s)"]) == found


@pytest.fixture(scope="module")
def first_slice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jobs that were also run in other simulators, as a plain trace."""
    jobs = [job for job in philly_jobs(trace("philly_sia.csv"), "6c71a0") if job.gpus <= 8][:500]
    path = tmp_path_factory.mktemp("slice") / "jobs.csv"
    rows = [f"{job.id},{job.submitted},{job.duration},{job.gpus}" for job in jobs]
    path.write_text("\n".join(("id,submitted,duration,gpus", *rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("row", shown("slice"), ids=lambda row: f"{row['policy']}")
def test_a_slice_takes_as_long_as_beside_other_simulators(
    run: Oasis, first_slice: Path, row: dict[str, str]
) -> None:
    policy, *options = row["replayed with"].split()
    code, out, err = run("replay", first_slice, "--policies", policy, *options, "--json")
    assert code == 0, err
    mean = json.loads(out)["policies"][policy]["mean_completion"]
    assert f"{mean:.3f}" == row["here (s)"]


def test_the_ablation_follows_from_its_solves() -> None:
    solves = table.read(BENCHMARKS / "ablation-solves.csv", ablation.COLUMNS)
    heading, *rows = ablation.table(solves)
    assert [tuple(row.values()) for row in shown("ablation")] == rows
    assert tuple(shown("ablation")[0]) == heading


def test_the_distribution_of_solves_follows_from_the_solves() -> None:
    solves = distribution.known(BENCHMARKS / "solves.csv")
    rows = [tuple(row.values()) for row in shown("distribution")]
    assert sorted(rows) == sorted(distribution.distribution(solves))


def test_the_runs_of_dorm_are_those_of_its_program_and_every_milp_ends_somehow() -> None:
    rows = shown("dorm")
    assert tuple(rows[0]) == dorm.COLUMNS
    assert [(int(row["jobs"]), int(row["seed"])) for row in rows] == list(dorm.RUNS)
    for row in rows:
        ends = ("proven", "stopped by the node limit", "fell back")
        assert sum(int(row[end]) for end in ends) == int(row["MILPs"])


@pytest.mark.parametrize(
    "path",
    sorted(BENCHMARKS.rglob("*.csv")),
    ids=lambda path: path.relative_to(BENCHMARKS).as_posix(),
)
def test_a_table_has_a_cell_for_each_column_and_no_column_twice(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as stream:
        heading, *rows = csv.reader(stream)
    assert len(set(heading)) == len(heading)
    assert {len(row) for row in rows} == {len(heading)}
