"""Numbers in the prose of pages are those of the code and of the tables beside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from said import prose

from tests.packaging.test_docs import DOCS, blocks

FIRST = "# The numbers of this page\n"
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
HIDDEN = [
    (path.relative_to(DOCS).with_suffix("").as_posix(), cell)
    for path in sorted(DOCS.rglob("*.md"))
    for cell in blocks(path.read_text(encoding="utf-8"), r"{code-cell}\n:tags: \[remove-cell\]")
]
CELLS = {page: cell for page, cell in HIDDEN if cell.startswith(FIRST)}


def test_no_hidden_cell_on_what_is_said_is_left_out() -> None:
    assert [
        page for page, cell in HIDDEN if "said import" in cell and CELLS.get(page) != cell
    ] == []


@pytest.mark.parametrize("page", CELLS)
def test_the_numbers_of_a_page_are_computed(page: str) -> None:
    """The cell that checks them runs here and where the page is built."""
    exec(compile(CELLS[page], f"docs/{page}.md", "exec"), {})


@pytest.mark.parametrize("page", CELLS)
def test_what_is_computed_is_what_the_page_says(page: str) -> None:
    assert list(unsaid(CELLS[page], prose(page))) == []


def unsaid(cell: str, said: str) -> Iterator[str | float]:
    """Numbers that stand in the prose not once, nor in what the lines around them quote of it."""
    for run in re.split(r"\n\n+", cell):
        quotes = re.findall(r"""^# ["'](.*)["']$""", run, re.MULTILINE)
        yield from (quote for quote in quotes if quote not in said)
        for number in numbers(run):
            written = re.compile(pattern(number))
            if not any(map(written.search, quotes)) and len(written.findall(said)) != 1:
                yield number


def numbers(cell: str) -> Iterator[str | float]:
    """What an assertion compares with, as it is written there: numbers, also in quotes."""
    for node in ast.walk(ast.parse(cell)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            literals = [node.comparators[-1]]
            for one in literals:
                literals += getattr(one, "elts", [])
                if isinstance(one, ast.Constant) and re.match(r"-?\d", str(one.value)):
                    yield one.value


def pattern(number: str | float) -> str:
    """The ways in which prose writes a number."""
    ways = [str(number)]
    if not isinstance(number, str):
        power = f"{number:.0e}".partition("e")[2].replace("-0", "-").lstrip("+")
        ways = [f"{number:g}", f"{number:,}", f"1e{power}", f"10^{{{power}}}"]
        ways += [WORDS[int(number)]] if number in range(len(WORDS)) else []
    return rf"(?i)(?<![\d.,])\b(?:{'|'.join(map(re.escape, ways))})(?![\d]|[.,]\d)"


def test_a_number_that_is_another_is_found() -> None:
    said = "Three jobs, 1,000 s, $10^{-9}$ and 1.50, not 12.4; 20 seeds, 20 nodes"
    cell = (
        "assert (f(), s) == (3, 1000)\nassert x == 1e-9 and f'{y:.2f}' == '1.50'\nassert z == 2 * 5"
    )
    assert list(numbers(cell)) == [3, 1000, 1e-9, "1.50"]
    assert list(unsaid(cell, said)) == []
    quoted = '# "20 seeds"\nassert seeds == 20'
    assert list(unsaid(f"{quoted}\n\nassert nodes == 20", said)) == [20]
    assert list(unsaid(quoted, said.replace("20 seeds", "30 seeds"))) == ["20 seeds"]
    for number in (4, 12, 1e-8, "1.5"):
        assert list(unsaid(f"assert a == {number!r}", said)) == [number]
