"""Sphinx configuration; `make docs` builds the pages and treats every warning as an error."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import api_pages  # noqa: E402
from job_fields import reference  # noqa: E402
from source_pages import linkcode_resolve  # noqa: E402, F401

from oasis.version import __version__  # noqa: E402

project = "OASiS"
author = "the OASiS authors"
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "api_pages",
    "source_links",
    "source_pages",
    "cells",
    "mathml",
    "search_words",
]
exclude_patterns = ["_build", "_templates", "examples"]
source_suffix = {".md": "myst-nb", api_pages.SUFFIX: "myst-nb"}

# The cells run the `oasis` command of this environment, in a scratch copy of the tree (scratch.py).
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.getenv("PYTHONPATH")]))
# Each kernel warns that it talks over TCP, here over loopback: only its errors are shown.
kernels = tempfile.TemporaryDirectory()
profile = Path(kernels.name, "profile_default")
profile.mkdir()
(profile / "ipython_kernel_config.py").write_text("c.Application.log_level = 40\n")
os.environ["IPYTHONDIR"] = kernels.name
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # what a notebook of the gallery writes never lands in the checkout
nb_execution_timeout = 120
nb_merge_streams = True  # how prints are split into pieces depends on time
nb_render_markdown_format = "myst"  # tables

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the numpydoc sections state types, shapes and units
numpydoc_show_class_members = False
default_role = "literal"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["oasis.css"]
html_title = f"OASiS {release}"
html_search_scorer = str(HERE / "_static" / "scorer.js")
templates_path = ["_templates"]
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

# Buttons copy commands and code, without prompts; what is printed below them has none.
copybutton_selector = "div[class*=highlight-]:not(.output) > div.highlight > pre"
copybutton_exclude = ".linenos, .gp, .go"


def _append_schema(_app, name: str, source: list[str]) -> None:
    """Append the tables of fields to the page of the OasisJob, so that they are written once."""
    if name == "kubernetes-reference":
        source[0] += "\n" + reference()


def setup(app) -> None:
    """Connect what Sphinx calls while it reads."""
    app.connect("source-read", _append_schema)
