"""Reports and pages of ``oasis whatif`` in a real browser: narrow, wide and in print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="needs the report extra")

from tests.browser import browser, missing
from tests.packaging.commands import Oasis

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

SIZES = """return Array.from(document.querySelectorAll('img')).map(
  one => [one.getBoundingClientRect().width, one.getBoundingClientRect().height])"""
HEADINGS = "return [...document.querySelectorAll('h2')].map(one => one.innerText)"
DRAWN = "return [...document.images].every(one => one.complete && one.naturalWidth > 100)"


def test_a_report_opens_in_a_browser(run: Oasis, small: Path, tmp_path: Path) -> None:
    names = ("run", "solve", "ratio")
    results = [tmp_path / f"{name}.json" for name in names]
    for name, path in zip(names, results, strict=True):
        assert run(name, small, "-o", path)[0] == 0
    page = tmp_path / "report.html"
    code, out, err = run("report", *results, "-o", page)
    assert (code, out, err) == (0, "", f"wrote {page}: 3 results\n")
    with browser() as window:
        for width in (1280, 480):
            window.open(page, width=width)
            assert window.run("return document.title") == "OASiS: results"
            assert window.run("return document.compatMode") == "CSS1Compat"  # no quirks
            assert window.run("return performance.getEntriesByType('resource').length") == 0
            wide = window.run("return document.documentElement.scrollWidth")
            assert wide <= window.run("return window.innerWidth"), width
            sizes: list[Any] = window.run(SIZES)
            assert len(sizes) == 3
            assert all(across > 0.6 * min(width, 600) and up > 100 for across, up in sizes)
        assert window.run(DRAWN)
        headings = window.run(HEADINGS)
        assert [text.split()[0] for text in headings] == ["Run", "Offline", "Competitive"]
        colours = "return getComputedStyle(document.querySelector('.note, h1')).color"
        assert window.run(colours) == "rgb(27, 31, 36)"  # the style inside is in force
        window.screenshot(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


LOADED = "return performance.getEntriesByType('resource').length"
OVER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = """return [...document.querySelectorAll('figure img')].map(one => {
  const box = one.getBoundingClientRect(); return [box.left, box.right, box.height]})"""
# Numbers end where their column ends, and no text is wider than its cell.
ALIGNED = """return [...document.querySelectorAll('.rows td.number')].every(
  one => getComputedStyle(one).textAlign === 'right')"""
CUT = """return [...document.querySelectorAll('.rows td, .rows th')].filter(
  one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"""
# What stays in place while a table scrolls leaves room for the numbers.
STAYS = """return Math.max(...[...document.querySelectorAll('.rows td:first-child')].map(
  one => one.getBoundingClientRect().width))"""
ANSWER = "return [...document.querySelectorAll('.answer')].map(one => one.innerText)"
MOST_BYTES = 5_000_000


def test_the_page_is_readable_at_two_widths_and_loads_nothing(run: Oasis, tmp_path: Path) -> None:
    long = "a-team-with-a-name-that-is-longer-than-most-names" + 60 * "x"
    rows = ["id,submitted,duration,gpus,owner"]
    rows += [f"job{k},{60 * k},{600 + 9000 * (k % 7 == 0)},{2 ** (k % 4)}," for k in range(60)]
    rows[1:] = [f"{row}{long if k % 2 else '<b>&'}" for k, row in enumerate(rows[1:])]
    trace, page = tmp_path / "jobs.csv", tmp_path / "page.html"
    trace.write_text("\n".join(rows) + "\n")
    words = ("--machines", "2x8", "--policies", "fifo,easy,srtf,las", "--loads", "0.8,1.5")
    code, _, err = run("whatif", trace, *words, "-o", page)
    assert code == 0
    assert f"wrote {page}" in err
    text = page.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert "<b>&" not in text
    with browser() as window:
        for width in (400, 1440):
            window.open(page, width=width)
            assert window.run(LOADED) == 0
            assert window.run(OVER) <= 0, width  # tables scroll inside, the page does not
            shown = window.run(PICTURES)
            assert len(shown) == 4
            assert all(0 <= left < right <= width and height > 80 for left, right, height in shown)
            assert window.run(ALIGNED)
            assert window.run(CUT) == []
            assert window.run(STAYS) < 0.7 * width
            answer = window.run(ANSWER)
            assert len(answer) == 4
            assert "serves these 60 jobs best" in answer[0]
            assert "of 2 owners" in answer[2]
            assert "the queue grows for ever" in answer[3]
            assert long in window.run("return document.body.innerText")
            window.screenshot(tmp_path / f"{width}.png")
        printed = window.call("POST", "/print", {"page": {"width": 21.0, "height": 29.7}})
    assert len(printed) > 10_000
