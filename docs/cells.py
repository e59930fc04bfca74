"""How cells and tables look: shell commands as a shell takes them, notebooks to download, numbers.

A cell that begins with ``%%bash`` is shown without that line and coloured as a shell command, so
that what a page shows can be pasted into a terminal. Every page in ``gallery/`` begins with a link
to the executed notebook. The files themselves stay as they are: Jupyter needs ``%%bash``. Columns
of numbers are aligned on the right.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relpath

MAGIC = "%%bash\n"
UNIT = r"(?:%|s|ms|min|h|kB|MB|GB|GiB|x)?"
NUMBER = re.compile(rf"[-+−<>≤≥±~$]?\s?\d[\d.,\s/±–-]*{UNIT}(?:\s?[(\[][\d.,\s%–-]+[)\]])?")


class ShellCells(SphinxTransform):
    """Show cells of shell commands without the magic."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Change the blocks in place."""
        for block in self.document.findall(nodes.literal_block):
            if block.astext().startswith(MAGIC):
                text = block.astext().removeprefix(MAGIC)
                block.rawsource = text
                block["language"] = "bash"
                block.children = []
                block.append(nodes.Text(text))


class NotebookLink(SphinxTransform):
    """Put the link to the executed notebook below the title of a page of the gallery."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Insert a paragraph."""
        name = self.env.docname
        if not name.startswith("gallery/") or name == "gallery/index":
            return
        notebook = Path(self.env.mystnb_config.output_folder, f"{name}.ipynb")
        link = download_reference(reftarget=f"/{relpath(notebook, self.env.srcdir)}")
        link.append(nodes.Text("Download this notebook"))
        text = nodes.Text(" (.ipynb, with its outputs). It runs in any directory.")
        (title,) = list(self.document.findall(nodes.title))[:1]
        title.parent.insert(1, nodes.paragraph("", "", link, text, classes=["download"]))


class NumberColumns(SphinxTransform):
    """Align columns on the right in which every cell is a number or empty."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Mark the cells as Markdown does with ``---:``."""
        for table in self.document.findall(nodes.tgroup):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            heading = len(list(table.findall(nodes.thead)))
            for column in zip(*rows, strict=False):
                if is_numeric([cell.astext() for cell in column[heading:]]):
                    for cell in column:
                        if not any(name.startswith("text-") for name in cell["classes"]):
                            cell["classes"].append("text-right")


def is_numeric(cells: list[str]) -> bool:
    """Whether a column has numbers, and otherwise only empty cells and dashes."""
    said = [cell.strip() for cell in cells if cell.strip() not in {"", "-", "–"}]
    return bool(said) and all(NUMBER.fullmatch(cell) for cell in said)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms."""
    app.add_transform(ShellCells)
    app.add_transform(NotebookLink)
    app.add_transform(NumberColumns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
