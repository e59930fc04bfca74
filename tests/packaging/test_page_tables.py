"""Tables that pages show from CSV files are what their commands write."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.benchmarks import ablation, distribution, dorm, table, traces
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
