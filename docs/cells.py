"""How executed cells look: shell commands as a shell takes them, notebooks to download.

A cell that begins with ``%%bash`` is shown without that line and coloured as a shell command, so
that what a page shows can be pasted into a terminal. Every page in ``gallery/`` begins with a link
to the executed notebook. The files themselves stay as they are: Jupyter needs ``%%bash``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relpath

MAGIC = "%%bash\n"


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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both transforms."""
    app.add_transform(ShellCells)
    app.add_transform(NotebookLink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
