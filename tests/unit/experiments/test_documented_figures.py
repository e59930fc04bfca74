"""The figures that the documentation shows are drawn from the data beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import FIGURES
from experiments.figures.oasis.published import FIG3, FIG4, FIG8
from experiments.figures.rows import read_csv

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
        assert row["published"] == FIG3.get(row["policy"], {}).get(row["jobs"])
    for row in read_csv(PUBLISHED_PICTURES / "fig8.csv"):
        assert row["published"] == FIG8.get(row["policy"])


def test_nothing_is_called_published_where_the_paper_gives_no_number():
    rows = read_csv(PUBLISHED_PICTURES / "fig4.csv")
    known = {row["policy"] for row in rows if row["published_low"] is not None}
    assert known == set(FIG4) == {"fifo", "drf", "dorm"}


def test_every_ratio_in_the_documentation_is_proven():
    for path in PUBLISHED_PICTURES.rglob("fig5.csv"):
        for row in read_csv(path):
            assert row["proven"] == row["seeds"]
