"""Pages of source code, with a line number to link to, for every file that a page links to.

`linkcode_resolve` gives each name of the API reference its link ``[source]``; the role ``src`` of
`source_links` makes the others.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from source_links import PAGES, ROOT, address, locate

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Address of the source of a name in the API reference, which is at the root of the pages.

    A name that several modules export has the source where it is defined; what cannot be found by
    itself, such as a field that a base class declares, has that of its class.
    """
    if domain != "py" or not info["module"]:
        return None
    parts = info["fullname"].split(".")
    for length in range(len(parts), 0, -1):
        name = _defined_as(info["module"], parts[:length])
        try:
            return address(*locate(".".join([name, *parts[length:]])))
        except LookupError:
            continue
    return None


def _defined_as(module: str, parts: list[str]) -> str:
    """Dotted name under which an object is defined."""
    found: Any = importlib.import_module(module)
    for part in parts:
        found = inspect.getattr_static(found, part, None) or getattr(found, part, None)
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        if isinstance(found, property):
            found = found.fget
    found = inspect.unwrap(found) if callable(found) else found
    if not hasattr(found, "__qualname__"):
        return ".".join([module, *parts])
    return f"{found.__module__}.{found.__qualname__}"


def _note(app: Sphinx, doctree: nodes.document) -> None:
    """Keep which files this page links to, and make the links of `linkcode_resolve` relative to it."""
    from docutils import nodes  # noqa: PLC0415 (as in `source_links`)
    from sphinx.util.osutil import relative_uri  # noqa: PLC0415

    targets = []
    for node in doctree.findall(nodes.reference):
        target = node.get("refuri", "")
        targets.append(target)
        if target.startswith(f"{PAGES}/"):
            node["refuri"] = relative_uri(f"{app.env.docname}.html", target)
    files = {uri.partition(f"{PAGES}/")[2].partition(".html")[0] for uri in targets if PAGES in uri}
    _linked(app.env)[app.env.docname] = files


def _linked(env: BuildEnvironment) -> dict[str, set[str]]:
    if not hasattr(env, "source_files"):
        env.source_files = {}
    return env.source_files


def _merge(_app: Sphinx, env: BuildEnvironment, names: set[str], other: BuildEnvironment) -> None:
    """Take over what a parallel process has read."""
    _linked(env).update({name: files for name, files in _linked(other).items() if name in names})


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """One page a file: its lines, each with a number and an anchor."""
    from pygments import highlight  # noqa: PLC0415
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415
    from pygments.lexers import PythonLexer  # noqa: PLC0415

    form = HtmlFormatter(linenos="inline", lineanchors="line", anchorlinenos=True)
    for name in sorted(set().union(*_linked(app.env).values())):
        title = f"{name}.py"
        text = (ROOT / title).read_text(encoding="utf-8")
        body = f"<h1>{title}</h1>\n{highlight(text, PythonLexer(), form)}"
        yield f"{PAGES}/{name}", {"title": title, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Collect links while pages are read, and write the source pages with the others."""
    app.connect("doctree-read", _note, priority=900)
    app.connect("env-merge-info", _merge)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
