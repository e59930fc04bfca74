"""A figure as an ``<svg>`` element inside of a page: nothing in it refers to anything outside."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from experiments.plotting.files import svg_text

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
    """Draw `figure` for a page of HTML.

    Parameters
    ----------
    figure : Figure
        The figure.
    prefix : str
        Put before each identifier, so that two pictures on a page do not share any.
    label : str
        What the picture shows, for those who cannot see it.

    Returns
    -------
    str
        An element without namespaces, comments or metadata; it shrinks where there is less room.
        The same figure gives the same text.

    Examples
    --------
    >>> from experiments.plotting.canvas import new_figure
    >>> text = inline_svg(new_figure(2.0, 1.0), "a-", "nothing")
    >>> text.startswith('<svg role="img" aria-label="nothing"'), "http" in text
    (True, False)
    """
    text = _BEFORE.sub("", svg_text(figure))
    for part in _PARTS:
        text = part.sub("", text)
    text = _HEIGHT.sub(r"\1", text, count=1)
    text = _SIZE.sub(r'\1 style="max-width: \2"', text, count=1)
    text = _IMAGE_ID.sub(r"\1", text)
    text = _ID.sub(lambda found: f'id="{prefix}{found[1]}"', text)
    text = _REFERENCE.sub(lambda found: f"{found[1]}#{prefix}{found[2]}", text)
    text = text.replace("xlink:href=", "href=")
    quoted = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{quoted}"', 1).strip()
