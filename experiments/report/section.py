"""What a page says of one result."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.evaluation.facts import Facts

MOST_ROWS = 200  # of a table; a page of thousands of rows helps nobody


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings.

    Parameters
    ----------
    title : str
        What they are.
    columns : tuple of (str, bool)
        Headings, and whether a column holds numbers.
    rows : tuple of tuple of str
        The first `MOST_ROWS` rows.
    left_out : int
        Rows beyond.
    """

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """One result on the page.

    Parameters
    ----------
    name : str
        Name of the file that it is from.
    title : str
        What it is, in words.
    was_run : list of (str, str)
        What was run on what: policy, options, instance, version.
    facts : list of (str, str)
        What came out.
    tables : tuple of Table
        The same in rows.
    proofs : list of (str, str)
        What is proven or checked, and how.
    again : tuple of str
        Commands that make it again.
    picture : str
        An ``<svg>`` element, without references to anything outside of it; empty without a picture.
    notes : tuple of str
        What is missing, and why.
    """

    name: str
    title: str
    was_run: Facts
    facts: Facts
    tables: tuple[Table, ...]
    proofs: Facts
    again: tuple[str, ...]
    picture: str
    notes: tuple[str, ...] = ()


def table(title: str, columns: tuple[tuple[str, bool], ...], rows: list[tuple[str, ...]]) -> Table:
    """A table of the first `MOST_ROWS` of `rows`.

    Examples
    --------
    >>> table("jobs", (("job", False),), [(f"j{k}",) for k in range(300)]).left_out
    100
    """
    return Table(title, columns, tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS))
