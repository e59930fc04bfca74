"""Numbers in the prose of pages: which there are, and what each must be.

A *claim* quotes words of a page. Claims are data, in files ``claims_*.txt`` by page:

    = docs/figures-kod2.md
    Runs have @ seeds
        data("kod2-7")[0]["seeds"]
    that holds pods for an hour without ever
        if kod2.PATIENCE == 3600
    KTCCS 2022
        # year of a publication

``@`` stands for a number. Below the words stand expressions for these numbers in their order, or
``if`` and what must be true, or ``#`` and why a number cannot be wrong: an equation's number, a
year, what the sentence itself defines. In expressions ``page`` is the path of the page, and
``printed`` has its numbers. A line that is indented further goes on. A file begins with its
imports; what else its expressions call is in the module ``claims_*.py`` of the same name.

A claim fails if the words are gone or say another number. ``test_page_numbers`` runs the claims and
fails for each number of a page that is in none.

A number is a run of digits, or a number word from "three" on. Code that is not executed, links and
HTML are not prose; tables that are typed into a page are. Code between backticks is looked at where
it is a number and nothing else, and formulas where a number has a point or more than one digit.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("OASIS_DATA", ROOT / "../shared/data"))

WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
LARGE = (
    "thirty|forty|fifty|sixty|seventy|eighty|ninety"
    "|dozens?|hundreds?|thousands?|millions?|billions?"
)
DIGITS = r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?"
NUMBER = re.compile(rf"{DIGITS}|\b(?:{'|'.join(WORDS[3:])}|{LARGE})\b", re.IGNORECASE)
FURTHER = " " * 8  # of lines that go on
PRINTED = r"(-?\d+(?:,\d{3})*(?:\.\d+)?|[A-Za-z]+)"

SILENT = re.compile(  # directives whose content is prose keep it: glossaries and notes
    r"^(`{3,}|~{3,})(?!\{(?:glossary|note|tip|warning|admonition)\})[^\n]*\n.*?^\1[ ]*$",
    re.MULTILINE | re.DOTALL,
)
NOT_PROSE = (
    re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL),
    SILENT,
    re.compile(r"^(?:```.*|:sorted:|\([\w-]+\)=)$", re.MULTILINE),
    re.compile(r"(?<=\])\([^)\s]*\)"),
    re.compile(r"<[/\w][^>]*>"),
    re.compile(r"^ *\d+\. ", re.MULTILINE),
)
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
FORMULA = re.compile(r"\$+[^$]+\$+")

NUMBERED = (
    "Theorems?|Lemmas?|Propositions?|Definitions?|Algorithms?"
    "|Figs?\\.|Figures?|Tables?|Eq\\.|[Ss]tep"
)
ALWAYS = {
    r"\bFor example,(?:[^.]|\.\d)*\.": "an example makes its own numbers",
    r"\b\d\d:\d\d\b": "time of day",
    r"\b(?:Three|Four|three|four) (?:things|rules|places|steps)\b": "a list that follows",
    r"\(\d+[a-z]?\)(?:[–-]\(\d+\))?": "equation of the paper",
    rf"(?:{NUMBERED}) \d+(?: (?:and|to) \d+)?": "numbered in the paper or on the page",
    r"\b(?:1[89]|20)\d\d-\d\d-\d\d(?: \d\d:\d\d)?": "date",
    r"\b(?:ASPLOS|ATC|CLOSER|EuroSys|HPDC|INFOCOM|IPDPS|KTCCS|ICML|NSDI|OSDI|SoCC|SOSP|TPDS"
    r"|trace of|cluster|in|of|December) 20\d\d\b": "year",
    r"arXiv \d+\.\d+": "address of a paper",
    r"Apache[- ]2\.0|CC-BY 4\.0": "name of a licence",
    r"\bISO 8601\b|\bUTF-8\b|\bSHA-256\b|\bResNet-50\b": "name",
}


@dataclass(frozen=True)
class Claim:
    """Words of a page, and expressions that make them true: values, a condition, or a reason."""

    page: str
    sentence: str
    values: str = ""
    condition: str = ""
    why: str = ""
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression that finds the sentence, whatever its numbers are."""
        return re.compile(PRINTED.join(re.escape(part) for part in plain(self.sentence).split("@")))

    def check(self) -> None:
        """Fail unless the page has the words, and they are true."""
        found = self.pattern.findall(prose(self.page))
        assert found, f"{self.page} does not say: {self.sentence}"
        assert self.values or self.condition or self.why, self.sentence
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
    names: dict[str, Any] = {}
    if path.with_suffix(".py").exists():
        names |= vars(import_module(f"tests.packaging.{path.stem}"))
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
    kinds = {"if": "condition", "#": "why"}
    marked = (line.partition(" ") for line in lines)
    return {kinds.get(m, "values"): rest if m in kinds else m + _ + rest for m, _, rest in marked}


def plain(text: str) -> str:
    """The text without its code, on one line."""
    for part in NOT_PROSE:
        text = part.sub(" ", text)
    return " ".join(text.split())


def text_of(page: str) -> str:
    """A page as it stands in the file."""
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def prose(page: str) -> str:
    """The text of a page without its code, on one line."""
    return plain(text_of(page))


def _spans(pattern: re.Pattern[str] | str, text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in re.finditer(pattern, text))


def unexplained(page: str, claims: Sequence[Claim]) -> list[str]:
    """Numbers of a page that no claim has, with the words around them."""
    text = prose(page)
    known = [span for claim in claims for span in _spans(claim.pattern, text)]
    known += [span for part in ALWAYS for span in _spans(part, text)]
    for match in CODE.finditer(text):
        if not NUMBER.fullmatch(match[2]):
            known.append(match.span())
    for match in FORMULA.finditer(text):
        known += [number.span() for number in _small(text, *match.span())]
    inside = _Spans(known)
    return [
        f"{match[0]}: ...{text[max(0, match.start() - 50) : match.end() + 30]}..."
        for match in NUMBER.finditer(text)
        if match.span() not in inside
    ]


def _small(text: str, begin: int, end: int) -> Iterator[re.Match[str]]:
    """Single digits of a formula: indices, exponents, the numbers that an equation has."""
    return (m for m in NUMBER.finditer(text, begin, end) if len(m[0]) == 1 or not m[0][0].isdigit())


class _Spans:
    """Pieces of a text, to ask what lies inside one of them."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        for begin, end in sorted(spans):
            if self.ends and begin <= self.ends[-1]:
                self.ends[-1] = max(end, self.ends[-1])
            else:
                self.begins.append(begin)
                self.ends.append(end)

    def __contains__(self, span: tuple[int, int]) -> bool:
        k = bisect_right(self.begins, span[0]) - 1
        return k >= 0 and span[1] <= self.ends[k]


def spelled(number: int) -> str:
    """A whole number up to twenty as a word."""
    return WORDS[number]


def fixed(value: float, digits: int) -> str:
    """A number with this many digits after the point."""
    return f"{value:.{digits}f}"


def trace(name: str) -> Path:
    """A public trace; the test is skipped where it is not at hand."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{name} is not at hand: set OASIS_DATA to the directory that has it")
    return path
