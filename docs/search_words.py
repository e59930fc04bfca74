"""What readers type into the search who do not know the words of a page's title.

Sphinx's search counts titles most, leaves out words such as "what", and shows what an index entry
says before all else. The phrases below become such entries, in any order of their words.
"""

from __future__ import annotations

from itertools import permutations

from docutils import nodes
from sphinx.addnodes import index
from sphinx.application import Sphinx

PHRASES = {
    "getting-started": ("install", "quick start", "tutorial", "install python"),
    "problem": ("price", "prices", "parameter server"),
    "what-if": ("what if", "sacct", "compare schedulers", "capacity planning"),
    "traces": ("philly", "philly trace", "alibaba trace", "slurm trace"),
    "gallery/own-trace": ("csv trace", "own trace", "my trace", "own jobs", "my jobs", "csv jobs"),
    "gallery/first-ratio": ("first ratio", "competitive ratio"),
    "gallery/price-of-commitment": ("price of commitment",),
    "gallery/certify": ("check schedule", "verify schedule"),
    "gallery/sweep-on-dask": ("dask", "sweep on dask"),
    "own-policy": ("own policy", "my policy", "custom policy", "new policy", "write policy"),
    "kubernetes-install": ("install kubernetes", "helm", "install controller", "install cluster"),
    "kubernetes-submit": ("submit job", "kubernetes job"),
    "kubernetes-observe": ("prometheus", "metrics", "grafana"),
    "choosing": ("slot length", "utility", "deadline"),
    "kinds": ("gpu types", "heterogeneous", "h100"),
    "cli": ("exit code", "options", "command"),
    "api": ("api", "python api"),
}


def _add(_app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Add the entries where the text is searched, after the page of the index is made."""
    words = [phrase.split() for phrase in PHRASES.get(name, ())]
    orders = sorted({" ".join(order) for some in words for order in permutations(some)})
    if orders:
        doctree.append(index(entries=[("single", text, "", "main", None) for text in orders]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add phrases to the pages."""
    app.connect("doctree-resolved", _add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
