"""Tables that pages show from CSV files are what their commands write."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.benchmarks import traces
from tests.packaging.page_numbers import ROOT, trace

BENCHMARKS = ROOT / "docs" / "benchmarks"


def shown(name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with (BENCHMARKS / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def data() -> Path:
    """Where the public traces lie; the test is skipped where one is missing."""
    return [trace(name) for name in traces.FILES][0].parent


def of_trace(number: int) -> dict[str, str]:
    """The column of a trace: a value for each row."""
    name, *columns = traces.COLUMNS
    return {row[name]: row[columns[number]] for row in shown("traces")}


@pytest.mark.parametrize("number", range(2), ids=traces.COLUMNS[1:])
def test_the_defaults_of_a_public_trace_give_what_the_page_says(number: int) -> None:
    found = dict(traces.column(traces.TRACES[number], data()))
    page = of_trace(number)
    assert {name: page.get(name) for name in found} == found


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(2), ids=traces.COLUMNS[1:])
def test_other_seeds_of_a_public_trace_give_the_ratios_on_the_page(number: int) -> None:
    read = traces.TRACES[number]
    rows = dict([*traces.column(read, data()), *traces.seeds(read, data())])
    assert of_trace(number) == rows
