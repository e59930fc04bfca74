"""Numbers in the prose of pages that no cell of the page prints: what each must be.

A *claim* quotes words of a page. Claims are data, in files ``claims_*.txt`` by page:

    = docs/figures-kod2.md
    Runs have @ seeds
        data("kod2-7")[0]["seeds"]
    that holds pods for an hour without ever
        if kod2.PATIENCE == 3600

``@`` stands for a number. Below the words stand expressions for these numbers in their order, or
``if`` and what must be true. Expressions know the tables of the pages (`figure_rows`), ``page``,
the path of the page, ``printed``, its numbers, and what the first lines of their file import. A
line that is indented further goes on. A claim fails if its words are gone or say another number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.packaging import figure_rows
from tests.packaging.figure_rows import text_of

FURTHER = " " * 8  # of lines that go on
PRINTED = r"(-?\d+(?:,\d{3})*(?:\.\d+)?|[A-Za-z]+)"


@dataclass(frozen=True)
class Claim:
    """Words of a page, and expressions that make them true: values and a condition."""

    page: str
    sentence: str
    values: str = ""
    condition: str = ""
    names: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Fail unless the page has the words, and they are true."""
        words = PRINTED.join(re.escape(part) for part in " ".join(self.sentence.split()).split("@"))
        found = re.findall(words, prose(self.page))
        assert found, f"{self.page} does not say: {self.sentence}"
        assert self.values or self.condition, self.sentence
        marks = self.sentence.count("@")
        names = {**self.names, "page": self.page}
        for groups in found:
            printed = () if not marks else (groups,) if marks == 1 else groups
            if self.values:
                wanted = eval(f"({self.values})", names)
                one = isinstance(wanted, str) or not isinstance(wanted, Iterable)
                shown = tuple(map(shortly, [wanted] if one else wanted))
                assert printed == shown, (self.page, self.sentence)
            if self.condition:
                numbers = [float(text.replace(",", "")) for text in printed if text[-1].isdigit()]
                true = eval(self.condition, names | {"printed": numbers})
                assert true, (self.page, self.sentence, printed)


def shortly(value: object) -> str:
    """A value as pages print it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def claims_of(path: Path) -> list[Claim]:
    """The claims of a file."""
    names = dict(vars(figure_rows))
    imports, *parts = re.split(r"^= (\S+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    exec(imports, names)
    found: list[tuple[str, list[str]]] = []
    for page, text in zip(parts[::2], parts[1::2], strict=True):
        entry: list[str] = []
        for line in filter(None, text.splitlines()):
            if entry and (line.startswith(FURTHER) or (len(entry) == 1 and line[0] != " ")):
                entry[-1] += f" {line.strip()}"
            elif line[0] == " ":
                entry.append(line.strip())
            else:
                found.append((page, entry := [line]))
    return [Claim(page, words, **_parts(lines), names=names) for page, (words, *lines) in found]


def _parts(lines: list[str]) -> dict[str, str]:
    """The fields of a claim that are below its words."""
    is_condition = {line: line.startswith("if ") for line in lines}
    fields = {"condition" if test else "values": line for line, test in is_condition.items()}
    assert len(fields) == len(lines), lines
    return {name: line.removeprefix("if ") for name, line in fields.items()}


@cache
def prose(page: str) -> str:
    """A page on one line."""
    return " ".join(text_of(page).split())
