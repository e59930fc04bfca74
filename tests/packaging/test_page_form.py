"""The form of the pages: formulas have a font, numbers line up, words of readers find a page."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("sphinx")  # the extra `docs`

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import api_pages  # noqa: E402
from mathml import mathml  # noqa: E402
from search_words import PHRASES  # noqa: E402

STYLE = (DOCS / "_static" / "oasis.css").read_text(encoding="utf-8")
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w\\])\$(?!\$)([^$\n]+)\$(?!\w)", re.DOTALL)


def characters_of_the_font() -> set[int]:
    listed = re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", STYLE)
    spans = (range(int(first, 16), int(last or first, 16) + 1) for first, last in listed)
    return set(chain.from_iterable(spans))


def drawn(formula: str) -> set[str]:
    """What a browser draws: a name of one letter stands in italics."""
    text = re.sub(r"<mi>(\w)</mi>", lambda name: italic(name[1]), mathml(formula, is_block=True))
    return set(re.sub(r"<[^>]*>|&\w+;|\s", "", text))


def italic(letter: str) -> str:
    if letter == "h":
        return "\u210e"
    name = (
        unicodedata.name(letter).replace("LATIN ", "").replace("GREEK ", "").replace(" LETTER", "")
    )
    try:
        return unicodedata.lookup(f"MATHEMATICAL ITALIC {name}")
    except KeyError:
        return letter


def test_every_character_of_every_formula_is_in_the_font_that_comes_with_the_pages() -> None:
    assert (DOCS / "_static" / "stix-two-math.woff2").stat().st_size < 60_000
    licence = (DOCS / "_static" / "stix-two-math-OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in licence
    found: dict[str, set[str]] = {}
    for page in DOCS.glob("*.md"):
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.M | re.S)
        for block, inline in FORMULA.findall(text):
            found.setdefault(page.stem, set()).update(drawn(block or inline))
    assert len(found["theory"]) > 40
    assert italic("τ") in found["theory"]
    font = characters_of_the_font()
    missing = {page: {c for c in used if ord(c) not in font} for page, used in found.items()}
    assert {page: used for page, used in missing.items() if used} == {}


def test_words_of_readers_lead_to_one_page_that_exists() -> None:
    written = api_pages.pages((DOCS / "api.md").read_text(encoding="utf-8"))
    names = {f"{api_pages.LIST}/{name}" for name in written}
    names |= {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert set(PHRASES) - names == set()
    orders = [tuple(sorted(text.split())) for texts in PHRASES.values() for text in texts]
    assert len(set(orders)) == len(orders)
    assert "csv trace" in PHRASES["gallery/own-trace"]
