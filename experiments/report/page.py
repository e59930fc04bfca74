"""Sections as one page of HTML that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from experiments.report.section import Section
from oasis.version import __version__

# Control characters and half surrogates, which XML cannot have in any form.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report_page(sections: Sequence[Section], title: str = "OASiS: results") -> str:
    """Write sections as HTML.

    Parameters
    ----------
    sections : sequence of Section
        One a result, in the order of the page.
    title : str
        Of the page.

    Returns
    -------
    str
        A page that is well-formed XML too, with its style and pictures inside. All text of results
        is escaped; a character that XML cannot have becomes U+FFFD. The same sections give the same
        text: it has no date.

    Examples
    --------
    >>> from experiments.report.section import Section
    >>> section = Section("a.json", "a <b>", [], [], (), [], (), "")
    >>> "a &lt;b&gt;" in report_page([section])
    True
    """
    folder = files("experiments.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    page = template.render(sections=sections, title=title, style=style, version=__version__)
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", page) + "\n"
