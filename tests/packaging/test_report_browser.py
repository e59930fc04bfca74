"""A report in a real browser: it loads nothing, all pictures are seen, and it fits the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="needs the report extra")

from tests.browser import browser, missing
from tests.packaging.commands import Oasis

SIZES = """return Array.from(document.querySelectorAll('img')).map(
  one => [one.getBoundingClientRect().width, one.getBoundingClientRect().height])"""
HEADINGS = "return [...document.querySelectorAll('h2')].map(one => one.innerText)"
DRAWN = "return [...document.images].every(one => one.complete && one.naturalWidth > 100)"


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
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
        headings = window.run(
            "return [...document.querySelectorAll('h2')].map(one => one.innerText)"
        )
        assert [text.split()[0] for text in headings] == ["Run", "Offline", "Competitive"]
        colours = "return getComputedStyle(document.querySelector('.note, h1')).color"
        assert window.run(colours) == "rgb(27, 31, 36)"  # the style inside is in force
        window.screenshot(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
