"""Pages of the API reference, one for each heading ``###`` of `api.md`.

`api.md` is the single list of public names. Its blocks ``{names}`` name a module, and in each line
one of its names, with ``*`` for all its members, or the names of some; what follows a colon
describes a constant. Before Sphinx looks for sources, every page is written to ``docs/api/``, which
is not committed; `api.md` itself shows, in place of the blocks, a link to the page and the first
sentence of every name.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests use `pages` without it
    from sphinx.application import Sphinx

LIST = "api"  # the page with the list, and the folder of the others
SUFFIX = ".page"  # of their files: they are MyST, but nobody wrote them
PART = re.compile(r"^### (?P<title>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```\{names\} (?P<module>\S+)\n(?P<lines>.*?)^```\n", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"(?P<name>[\w.]+)(?P<signature>(?:\(\))?)(?P<rest>.*)")
LINK = re.compile(r"\]\((?=[\w-]+\.md)")


def names(text: str) -> list[str]:
    """Full names of what the blocks of `text` list, in their order."""
    return [
        entry["name"] if "." in entry["name"] else f"{block['module']}.{entry['name']}"
        for block in BLOCK.finditer(text)
        for entry in ENTRY.finditer(block["lines"])
    ]


def directives(block: re.Match[str]) -> str:
    """The reStructuredText that describes what a block lists."""
    entries = "".join(
        _directive(block["module"], entry) for entry in ENTRY.finditer(block["lines"])
    )
    return f"```{{eval-rst}}\n.. currentmodule:: {block['module']}\n{entries}```\n"


def _directive(module: str, entry: re.Match[str]) -> str:
    name, rest = entry["name"], entry["rest"]
    if rest.startswith(":"):
        return f".. py:data:: {name}\n\n   {rest[1:].strip()}\n\n"
    where, _, last = name.rpartition(".")
    kind = _kind(getattr(import_module(where or module), last))
    members = rest.split()
    all_of_them = [member for member in members if member == "*"]
    special = [member for member in members if member.startswith("__")]
    some = [member for member in members if member not in {*all_of_them, *special}]
    options = {
        "members": bool(all_of_them or some) and ", ".join(some),
        "special-members": bool(special) and ", ".join(special),
    }
    lines = [f"   :{key}: {value}".rstrip() for key, value in options.items() if value is not False]
    return "\n".join([f".. auto{kind}:: {name}{entry['signature']}", *lines, ""])


def _kind(found: object) -> str:
    if not isinstance(found, type):
        return "function"
    return "exception" if issubclass(found, BaseException) else "class"


def pages(text: str) -> dict[str, str]:
    """Text of every page, by its name, as `text` lists them."""
    found = {}
    for part in PART.finditer(text):
        body = BLOCK.sub(directives, LINK.sub("](../", part["body"]))
        found[page_name(part["title"])] = f"# {part['title']}\n{body}"
    return found


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
    rows = "".join(f"   ~{name}\n" for name in names(block[0]))
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
