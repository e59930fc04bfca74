"""Sections of a report, and the page: self-contained HTML."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from experiments.evaluation.tables import Facts
from experiments.plotting.files import svg_text
from oasis.version import __version__

# Control characters and half surrogates, which XML cannot have in any form.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _as_xml(text: str) -> str:
    """`text` with a mark in place of what XML cannot have."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def picture(figure: Figure) -> str:
    """Draw `figure`; return the address of a picture that is in the page itself."""
    drawn = base64.b64encode(_as_xml(svg_text(figure)).encode("utf-8"))
    return f"data:image/svg+xml;base64,{drawn.decode('ascii')}"


MOST_ROWS = 200  # of a table; a page of thousands of rows helps no reader


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of text under headings."""

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a section beside its first."""

    address: str
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


def report_page(sections: Sequence[Section], title: str = "OASiS: results") -> str:
    """Write sections as HTML."""
    folder = files("experiments.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    about = {"title": title, "style": style, "version": __version__, "most_rows": MOST_ROWS}
    page = template.render(sections=sections, **about)
    return _as_xml(page) + "\n"
