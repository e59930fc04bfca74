"""Pages of the API reference, one for each heading ``###`` of `api.md`.

`api.md` is the single list of public names: its directives say what each page describes. Before
Sphinx looks for sources, every page is written to ``docs/api/``, which is not committed; `api.md`
itself shows, in place of the directives, a link to the page and the first sentence of every name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests use `pages` without it
    from sphinx.application import Sphinx

LIST = "api"  # the page with the list, and the folder of the others
SUFFIX = ".page"  # of their files: they are MyST, but nobody wrote them
PART = re.compile(r"^### (?P<title>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```\{eval-rst\}\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"\.\. currentmodule:: ([\w.]+)")
NAME = re.compile(r"\.\. (?:auto\w+|py:data):: ([\w.]+)")
LINK = re.compile(r"\]\((?=[\w-]+\.md)")


def names(directives: str) -> list[str]:
    """Full names of what reStructuredText `directives` describe, in their order."""
    module, found = "", []
    for line in directives.splitlines():
        if current := MODULE.match(line):
            module = current[1]
        elif entry := NAME.match(line):
            found.append(entry[1] if "." in entry[1] else f"{module}.{entry[1]}")
    return found


def pages(text: str) -> dict[str, str]:
    """Text of every page, by its name, as `text` lists them."""
    return {
        page_name(part["title"]): f"# {part['title']}\n{LINK.sub('](../', part['body'])}"
        for part in PART.finditer(text)
    }


def page_name(title: str) -> str:
    """Name of the page with this `title`."""
    return re.sub(r"\W+", "-", title.lower())


def index(text: str) -> str:
    """The list with a link and a table of names in place of each page."""
    return PART.sub(_summary, text)


def _summary(part: re.Match[str]) -> str:
    page = f"{LIST}/{page_name(part['title'])}"
    heading = f"### [{part['title']}]({page}{SUFFIX})\n"
    tree = f"\n```{{toctree}}\n:hidden:\n\n{page}\n```\n\n"
    return heading + BLOCK.sub(_table, part["body"]) + tree


def _table(block: re.Match[str]) -> str:
    rows = "".join(f"   ~{name}\n" for name in names(block[1]))
    module = ".. currentmodule:: None\n"  # the names are full
    return f"```{{eval-rst}}\n{module}.. autosummary::\n   :nosignatures:\n\n{rows}```\n"


def _write(app: Sphinx) -> None:
    """Write the pages that have changed, and remove those that are listed no more."""
    text = Path(app.srcdir, f"{LIST}.md").read_text(encoding="utf-8")
    folder = Path(app.srcdir, LIST)
    folder.mkdir(exist_ok=True)
    wanted = {folder / f"{name}{SUFFIX}": page for name, page in pages(text).items()}
    for path in set(folder.iterdir()) - set(wanted):
        path.unlink()
    for path, page in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def _read(_app: Sphinx, name: str, source: list[str]) -> None:
    if name == LIST:
        source[0] = index(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before sources are looked for."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
