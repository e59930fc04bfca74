"""Tables that pages show from CSV files are what their commands write."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from said import PAGES, prose

from tests.benchmarks import distribution, dorm, sizes, table, traces
from tests.packaging.commands import Oasis
from tests.philly_shape import philly_jobs
from tests.unit.benchmarks import ablation, whole_numbers

BENCHMARKS = PAGES / "benchmarks"


def trace(name: str) -> Path:
    """A public trace; the test is skipped where it is not at hand."""
    path = traces.DATA / name
    if not path.is_file():
        pytest.skip(f"{name} is not at hand: set OASIS_DATA to the directory that has it")
    return path


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


def test_pages_say_on_what_the_benchmarks_run() -> None:
    dorms = f"with {dorm.SERVERS} + {dorm.SERVERS} servers and {dorm.SLOTS} slots"
    assert dorms in prose("benchmarks/simulator")
    assert f"2<sup>{whole_numbers.BITS}</sup>" in prose("benchmarks/offline")
    assert f"after {sizes.WORK:g} units of work" in prose("how-long")


def test_pages_say_how_many_jobs_and_gpus_the_public_traces_have() -> None:
    philly, nodes = (trace(name) for name in ("philly_sia.csv", "openb_node_list_gpu_node.csv"))
    assert f"({len(philly_jobs(philly, '0e4a51')):,} jobs, 64 GPUs" in prose("simulator")
    gpus, machines = (
        [int(line.split(",")[column]) for line in path.read_text().splitlines()[1:] if line]
        for path, column in ((philly, 2), (nodes, 3))
    )
    assert f"{100 * gpus.count(1) / len(gpus):.0f} % of the jobs of Philly" in prose("traces")
    assert f"({sum(machines):,} GPUs in openb)" in prose("traces")
