"""The figures that the documentation shows are drawn from the data beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.figures import EXPERIMENTS, FIGURES, DirectFigure, PublishedFigure, reproduce
from experiments.figures.figure import Case, Row, read_csv, write_csv
from experiments.figures.oasis import FIG3, FIG4, FIG8, paper_name
from experiments.figures.settings import FigureSettings
from tests.unit.experiments.test_plotting import assert_readable

PUBLISHED_PICTURES = Path(__file__).parents[3] / "docs" / "figures"


SIMULATED = sorted(
    path
    for path in PUBLISHED_PICTURES.rglob("fig*.csv")
    if path.parent.name != "kubernetes"  # measured on a cluster, with fewer seeds
)


@pytest.mark.parametrize("path", SIMULATED, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_data_in_the_documentation_are_whole_and_drawn(path):
    assert min(row["seeds"] for row in read_csv(path)) >= 5
    FIGURES[path.stem].draw(whole_rows(FIGURES[path.stem], path), "")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_data_of_elastic_jobs_are_whole_and_drawn_readably(name):
    figure = EXPERIMENTS[name]
    rows = whole_rows(figure, PUBLISHED_PICTURES / f"{name}.csv")
    least = 1 if name == "deadlines" else 20  # as its page says
    assert max(row.get("seeds", 20) for row in rows) >= least
    assert_readable(figure.draw(rows, "20 seeds"))


def whole_rows(figure: PublishedFigure | DirectFigure, path: Path) -> list[Row]:
    """Rows that have all that a table shows, with a picture beside them."""
    rows = read_csv(path)
    ranges = {key.removesuffix("_low") for key in rows[0] if key.endswith("_low")}
    assert set(figure.shown) <= rows[0].keys() | ranges
    assert path.with_suffix(".svg").is_file()
    return rows


def test_published_numbers_in_the_documentation_are_the_published_ones():
    for row in read_csv(PUBLISHED_PICTURES / "fig3.csv"):
        assert row["published"] == FIG3.get(paper_name(row["policy"]), {}).get(row["jobs"])
    for row in read_csv(PUBLISHED_PICTURES / "fig8.csv"):
        assert row["published"] == FIG8.get(paper_name(row["policy"]))


def test_nothing_is_called_published_where_the_paper_gives_no_number():
    rows = read_csv(PUBLISHED_PICTURES / "fig4.csv")
    known = {row["policy"] for row in rows if row["published_low"] is not None}
    assert known == set(FIG4) == {"fifo", "drf", "dorm"}


def only_testbed(grid: Callable[[FigureSettings], dict[str, Any]]) -> Any:
    """The grid of a study with its smallest instances alone."""
    return lambda settings: (
        (whole := grid(settings))
        | {"instances": [each for each in whole["instances"] if each["preset"] == "testbed"]}
    )


def same(row: Row, kept: Row) -> bool:
    """Whether two rows agree; how often a policy is first depends on the others that are run."""
    names = kept.keys() - {"first", "share", "share_low", "share_high"}
    return all(kept[name] == row[name] or near(kept[name], row[name]) for name in names)


def near(one: Any, other: Any) -> bool:
    are_numbers = all(isinstance(value, int | float) for value in (one, other))
    return are_numbers and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fig8", {"policies": ("oasis", "las")}),
        *(
            pytest.param(name, settings, marks=pytest.mark.nightly)
            for name, settings in (
                ("fig3", {"jobs": (100,), "policies": ("oasis", "srtf", "las", "fifo")}),
                ("fig4", {"policies": ("oasis",)}),
                ("fig6", {"jobs": (100,)}),
                ("fig8", {"policies": ("rrh", "srtf", "recourse")}),
                ("fig9", {"policies": ("oasis", "rrh", "srtf", "las")}),
                ("floor", {"seeds": 10}),
                ("commitment", {"seeds": 5}),
            )
        ),
    ],
)
def test_data_in_the_documentation_are_those_of_the_command(name, settings, tmp_path):
    """The rows that take little time, so that data of an older version are noticed."""
    figure = FIGURES[Path(name).name]
    if name in ("floor", "commitment"):
        figure = replace(figure, grid=only_testbed(figure.grid))
    assert_kept(name, reproduce(figure, figure.settings(**settings), tmp_path).rows)


def assert_kept(name: str, made: list[Row]) -> None:
    kept = read_csv(PUBLISHED_PICTURES / f"{name}.csv")
    assert made
    for row in made:
        assert any(same(row, one) for one in kept), (name, row)


# Runs that take little time, and of how many seeds the page is.
SOME: dict[str, tuple[int, Callable[[Case], bool]]] = {
    "dragon-7": (1, lambda case: case["seed"] is None),
    "dragon-8": (1, lambda case: case["seed"] is None),
    "kod2-4": (1, lambda case: True),
    "kod2-7": (20, lambda case: (case["model"], case["batch"]) == ("CNN-rand", 64)),
    "kod2-8": (20, lambda case: case["model"] == "CNN-rand"),
    "controllers": (20, lambda case: case["policy"] in ("dragon", "las") and case["load"] == 1.0),
    "deadlines": (5, lambda case: case["policy"] == "dragon" and case["load"] == 1.0),
    "priority-queue": (1, lambda case: True),
    "specon-2": (20, lambda case: True),
    "specon-9": (1, lambda case: True),
    "specon-sensitivity": (
        100,
        lambda case: (
            (case["figure"], case["crowding"]) == ("5", "costs nothing")
            and case["choice"] in (None, "cluster")
        ),
    ),
}
NIGHTLY = ("specon-5", "specon-table3")


@pytest.mark.parametrize(
    "name", [*SOME, *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHTLY)]
)
def test_data_of_elastic_jobs_are_those_of_the_command(name, tmp_path):
    seeds, is_chosen = SOME.get(name, (100, lambda case: True))
    figure = EXPERIMENTS[name]
    runs = [figure.measure(case) for case in figure.cases(seeds) if is_chosen(case)]
    write_csv(tmp_path / "again.csv", figure.table(runs))
    assert_kept(name, read_csv(tmp_path / "again.csv"))
