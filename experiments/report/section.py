"""Sections of a report, and the page: self-contained HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from experiments.evaluation.tables import Facts
from experiments.plotting.files import svg_text
from oasis.version import __version__

_BEFORE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_PARTS = (
    re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL),
    re.compile(r"<!--.*?-->\s*", re.DOTALL),
    re.compile(r' xmlns(:\w+)?="[^"]*"'),
)
_SIZE = re.compile(r'(<svg[^>]*?) width="([^"]*)"')
_HEIGHT = re.compile(r'(<svg[^>]*?) height="[^"]*"')
_IMAGE_ID = re.compile(r'(<image [^>]*?)id="[^"]*"')  # nothing refers to it, and it can come twice
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(xlink:href="|href="|url\()#([^")]+)')


def inline_svg(figure: Figure, prefix: str, label: str) -> str:
    """Draw `figure` for a page of HTML."""
    text = _BEFORE.sub("", svg_text(figure))
    for part in _PARTS:
        text = part.sub("", text)
    # Without a height, and with a width at most, a picture shrinks in proportion.
    text = _HEIGHT.sub(r"\1", text, count=1)
    text = _SIZE.sub(r'\1 style="max-width: \2"', text, count=1)
    text = _IMAGE_ID.sub(r"\1", text)
    text = _ID.sub(lambda match: f'id="{prefix}{match[1]}"', text)
    text = _REFERENCE.sub(lambda match: f"{match[1]}#{prefix}{match[2]}", text)
    # HTML needs no namespaces, and without that of xlink its prefix must go too.
    text = text.replace("xlink:href=", "href=")
    quoted = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{quoted}"', 1).strip()


MOST_ROWS = 200  # of a table; a page of thousands of rows helps no reader


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of text under headings."""

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a section beside its first."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """One result on the page."""

    name: str
    title: str
    was_run: Facts
    facts: Facts
    tables: tuple[ReportTable, ...]
    proofs: Facts
    again: tuple[str, ...]
    picture: str
    notes: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    remarks: tuple[str, ...] = ()


def table(
    title: str, columns: tuple[tuple[str, bool], ...], rows: list[tuple[str, ...]]
) -> ReportTable:
    """A table of the first `MOST_ROWS` of `rows`."""
    return ReportTable(title, columns, tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS))


# Control characters and half surrogates, which XML cannot have in any form.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report_page(sections: Sequence[Section], title: str = "OASiS: results") -> str:
    """Write sections as HTML."""
    folder = files("experiments.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    page = template.render(sections=sections, title=title, style=style, version=__version__)
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", page) + "\n"
