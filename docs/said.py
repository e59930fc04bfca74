"""The tables beside the pages, for the cells that check what the prose says of them."""

import re
from functools import cache
from pathlib import Path

from experiments.figures.figure import Row, read_csv

PAGES = Path(__file__).parent
ROOT = PAGES.parent


@cache
def data(name: str) -> tuple[Row, ...]:
    """Rows of a figure or a benchmark."""
    figure = PAGES / "figures" / f"{name}.csv"
    return tuple(read_csv(figure if figure.is_file() else PAGES / "benchmarks" / f"{name}.csv"))


def rows(name: str, **where: object) -> list[Row]:
    """Those that have these values."""
    return [each for each in data(name) if all(each[key] == value for key, value in where.items())]


def row(name: str, **where: object) -> Row:
    """The one that has them."""
    (found,) = rows(name, **where)
    return found


def halves(name: str, key: str, part: int = 0, **where: str) -> list[float]:
    """Medians (0) or 99th percentiles (1) in a column, of the rows whose cells begin so."""
    chosen = (r for r in data(name) if all(r[k].startswith(v) for k, v in where.items()))
    return [float(str(each[key]).split(" / ")[part]) for each in chosen]


def span(values: list[float], digits: int) -> list[str]:
    """Least and most."""
    return [f"{end(values):.{digits}f}" for end in (min, max)]


def percent(share: float, digits: int = 0) -> str:
    """A share as the pages print it."""
    return f"{100 * share:.{digits}f}"


def prose(page: str) -> str:
    """A page, and those whose names begin with its name, without their cells, on one line."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(PAGES.glob(f"{page}*.md")))
    return " ".join(re.sub(r"(?ms)^```\{code-cell\}.*?^```$", "", "\n".join(texts)).split())
