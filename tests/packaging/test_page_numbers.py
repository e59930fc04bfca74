"""Numbers in the prose of pages are those of the code and of the tables beside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.packaging.test_docs import DOCS, blocks  # and its path to the modules of docs

FIRST = "# The numbers of this page\n"
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
CELLS = {
    path.relative_to(DOCS).with_suffix("").as_posix(): cell
    for path in sorted(DOCS.rglob("*.md"))
    for cell in blocks(path.read_text(encoding="utf-8"), r"{code-cell}\n:tags: \[remove-cell\]")
    if cell.startswith(FIRST)
}


@pytest.mark.parametrize("page", CELLS)
def test_the_numbers_of_a_page_are_computed(page: str) -> None:
    """The cell that checks them runs here and where the page is built."""
    exec(compile(CELLS[page], f"docs/{page}.md", "exec"), {})


@pytest.mark.parametrize("page", CELLS)
def test_what_is_computed_is_what_the_page_says(page: str) -> None:
    from said import prose

    said = prose(page)
    absent = [number for number in numbers(CELLS[page]) if not re.search(pattern(number), said)]
    assert not absent, f"docs/{page}.md does not say {absent}"


def numbers(cell: str) -> Iterator[str | float]:
    """What an assertion compares with, as it is written there: numbers, also in quotes."""
    for node in ast.walk(ast.parse(cell)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            literals = [node.comparators[-1]]
            for one in literals:
                literals += getattr(one, "elts", [])
                if isinstance(one, ast.Constant) and re.search(r"\d", str(one.value)):
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
    assert list(numbers("assert (f(), 2) == ('1.50', 3)\nassert a == 1 + 1")) == ["1.50", 3]
    said = "Three jobs, 1,000 s, $10^{-9}$ and 1.50, not 12.4"
    for number in (3, 1000, 1e-9, "1.50"):
        assert re.search(pattern(number), said), number
    for number in (4, 12, 1e-8, "1.5"):
        assert not re.search(pattern(number), said), number
