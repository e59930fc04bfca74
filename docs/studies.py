"""Tables of studies for the pages: read from the CSV files that ``oasis figure`` wrote."""

from pathlib import Path

from IPython.display import Markdown

from experiments.figures import FIGURES
from experiments.figures.figure import for_people, groups, read_csv


def table(name: str) -> Markdown:
    """All rows of a study, with intervals."""
    figure = FIGURES[name]
    lines = ["| " + " | ".join(figure.shown.values()) + " |", "|---" * len(figure.shown) + "|"]
    for row in read_csv(Path("docs/figures", f"{name}.csv")):
        lines.append("| " + " | ".join(for_people(row, column) for column in figure.shown) + " |")
    return Markdown("\n".join(lines))


def shares(name: str, axis: str) -> Markdown:
    """Mean share of the best, by family and value of `axis`, and the mean over the families."""
    rows = read_csv(Path("docs/figures", f"{name}.csv"))
    families = list(dict.fromkeys(row["family"] for row in rows))
    lines = [
        f"| {axis} | " + " | ".join(families) + " | mean |",
        "|---" * (len(families) + 2) + "|",
    ]
    for (value,), part in groups(rows, axis).items():
        means = [row["share"] for row in part]
        cells = [f"{mean:.3f}" for mean in (*means, sum(means) / len(means))]
        lines.append(f"| {value} | " + " | ".join(cells) + " |")
    return Markdown("\n".join(lines))
