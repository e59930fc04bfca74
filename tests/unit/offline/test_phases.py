"""Every phase that users see in results is explained in docs/cli, and every method is named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import oasis
from oasis.solvers import SolveProgress
from offline import Gap, Stop, TimeLimit, WorkLimit, solve
from offline.solve import LONG_COUNTS, METHODS, SHORT, AutoParams, chosen_by_size
from offline.state import Phase

CLI = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")


def table() -> dict[str, list[str]]:
    """Methods by phase, as the page has them."""
    (section,) = re.findall(r"^### Phases of a solve\n(.*?)^##? ", CLI, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| .+ \|$", section, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    return {phase: methods.split(", ") for phase, methods in rows}


def test_every_phase_has_an_entry_and_every_entry_a_phase() -> None:
    assert list(table()) == [str(phase) for phase in Phase]


def test_a_method_enters_only_phases_that_the_page_names_for_it() -> None:
    sizes = {"jobs": 4, "worker_servers": 2, "ps_servers": 2, "horizon": 6}
    instance = oasis.generate("testbed", **sizes, seed=3)
    tiny = oasis.generate("testbed", jobs=2, worker_servers=1, ps_servers=1, horizon=3, seed=3)
    for method in METHODS[1:]:
        seen: list[SolveProgress] = []
        problem = tiny if method == "bruteforce" else instance
        solve(problem, method, work_limit=0.2, on_progress=seen.append)
        assert seen
        for phase in {news.phase for news in seen}:
            assert {"all", method} & set(table()[phase]), (method, phase)


def test_methods_in_the_table_exist() -> None:
    named = {method for methods in table().values() for method in methods}
    assert named == {"all", *METHODS} - {"auto"}


def test_rule_of_auto_is_the_one_in_the_code() -> None:
    """The table has the numbers of the code, and examples on either side of each."""
    numbers = [
        int(n.replace(",", ""))
        for n in re.findall(r"^\| (?:size|counts).*? ([\d,]{3,})", CLI, re.M)
    ]
    auto = AutoParams()
    assert numbers == [auto.compact_size, LONG_COUNTS, auto.counts_size]
    (seconds,) = re.findall(r"above (\d+) s, or none", CLI)
    assert float(seconds) == SHORT


@pytest.mark.parametrize(
    ("jobs", "horizon", "stop", "method"),
    [
        (2, 8, Stop(), "milp"),
        (50, 30, TimeLimit(60), "benders"),
        (50, 100, Stop(), "benders"),
        (50, 300, TimeLimit(SHORT), "benders"),
        (50, 300, TimeLimit(SHORT + 1), "colgen"),
        (50, 300, WorkLimit(SHORT), "benders"),
        (50, 300, TimeLimit(900) | WorkLimit(SHORT), "benders"),
        (50, 300, Gap(0.1), "colgen"),
        (50, 500, TimeLimit(1), "colgen"),
    ],
)
def test_auto_chooses_by_size_and_time(jobs: int, horizon: int, stop: Stop, method: str) -> None:
    job = oasis.generate("testbed", jobs=1, worker_servers=1, ps_servers=1, seed=1).jobs[0]
    tiny = oasis.generate("testbed", jobs=1, worker_servers=1, ps_servers=1, seed=1)
    several = tuple(replace(job, id=f"j{k}", arrival=0) for k in range(jobs))
    instance = replace(tiny, jobs=several, horizon=horizon)
    assert chosen_by_size(AutoParams(), instance, stop).name == method
