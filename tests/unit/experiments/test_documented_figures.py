"""The figures that the documentation shows are drawn from the data beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import FIGURES, FigureSettings, reproduce
from experiments.figures.figure import Row, read_csv
from experiments.figures.oasis import FIG3, FIG4, FIG8, paper_name

PUBLISHED_PICTURES = Path(__file__).parents[3] / "docs" / "figures"


SIMULATED = sorted(
    path
    for path in PUBLISHED_PICTURES.rglob("fig*.csv")
    if path.parent.name != "kubernetes"  # measured on a cluster, with fewer seeds
)


@pytest.mark.parametrize("path", SIMULATED, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_data_in_the_documentation_are_whole_and_drawn(path):
    figure = FIGURES[path.stem]
    rows = read_csv(path)
    assert min(row["seeds"] for row in rows) >= 5
    assert set(figure.shown) <= {key.removesuffix("_low") for key in rows[0]}
    assert path.with_suffix(".svg").is_file()
    figure.draw(rows, "")


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
    return all(
        kept[name] == row[name] or kept[name] == pytest.approx(row[name], rel=1e-9)
        for name in names
    )


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
    kept = read_csv(PUBLISHED_PICTURES / f"{name}.csv")
    made = reproduce(figure, figure.settings(**settings), tmp_path).rows
    keys = [key for key in ("jobs", "policy", "kind", "scale", "family", "floor") if key in kept[0]]
    by_key = {tuple(row[key] for key in keys): row for row in kept}
    assert made
    for row in made:
        assert same(row, by_key[tuple(row[key] for key in keys)]), (name, row)
