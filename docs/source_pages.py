"""Pages of source code, with a line number to link to, for every file that a page links to.

`linkcode_resolve` gives each name of the API reference its link ``[source]``; the role ``src`` of
`source_links` makes the others.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from source_links import PAGES, ROOT, address, from_page, locate

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
    if "<locals>" in getattr(found, "__qualname__", ""):  # a strategy, which Hypothesis has made
        return f"{found.__module__}.{parts[-1]}"
    found = inspect.unwrap(found) if callable(found) else found
    if not hasattr(found, "__qualname__"):
        return ".".join([module, *parts])
    return f"{found.__module__}.{found.__qualname__}"


def _note(app: Sphinx, doctree: nodes.document) -> None:
    """Keep which files this page links to; links of `linkcode_resolve` become relative to it."""
    from docutils import nodes  # noqa: PLC0415 (as in `source_links`)

    files = set()
    for node in doctree.findall(nodes.reference):
        before, found, file = node.get("refuri", "").partition(f"{PAGES}/")
        if found:
            files.add(file.partition(".html")[0])
            if not before:
                node["refuri"] = from_page(app.env.docname, node["refuri"])
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


def _share(app: Sphinx, name: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Make the list of all pages once for each folder depth, where most of the time would go.

    Source pages are not in the list, so that it only differs in how many ``../`` its links have.
    """
    if name.startswith(f"{PAGES}/"):
        made: dict[int, str] = app.env.temp_data.setdefault("lists_of_pages", {})
        depth, make = name.count("/"), context["toctree"]
        context["toctree"] = lambda **options: (
            made.get(depth) or made.setdefault(depth, make(**options))
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Collect links while pages are read, and write the source pages with the others."""
    app.connect("doctree-read", _note, priority=900)
    app.connect("env-merge-info", _merge)
    app.connect("html-collect-pages", _pages)
    app.connect("html-page-context", _share, priority=400)  # before the theme asks for the list
    return {"parallel_read_safe": True, "parallel_write_safe": True}
