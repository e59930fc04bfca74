"""What the tests of behaviour may use: the names of the API pages, as `oasis` has them."""

from __future__ import annotations

import ast
import importlib
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import oasis

ROOT = Path(__file__).resolve().parents[2]
PAGES = runpy.run_path(str(ROOT / "docs/api_pages.py"))
LISTED = set(PAGES["names"]((ROOT / "docs/api.md").read_text(encoding="utf-8")))
NAMES = {name.rpartition(".")[2] for name in LISTED} | {"__version__"}
PACKAGES = {"oasis", "offline", "baselines", "experiments"}
LISTS = {"baselines.ALL", "oasis.testing.CHECKS", "oasis.__all__"}  # all of these are tested
DOORS = {
    "oasis.__main__.main",  # the command `oasis`, as pyproject.toml names it
    # a policy by its name, as `oasis compare` makes it for a file of elastic jobs
    "experiments.evaluation.elastic_jobs.elastic_policy",
}
TESTS = ROOT / "tests"
FILES = [path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] != "unit"]


def used(text: str) -> Iterator[tuple[str, str]]:
    """Module and name of all that is imported, or looked up in a package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            parts = (alias.name.rpartition(".") for alias in node.names)
            yield from ((module, name) for module, _, name in parts if module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr


def is_public(module: str, name: str) -> bool:
    """It is on a page, and what it names there is what is meant here."""
    if f"{module}.{name}" in LISTED | LISTS | DOORS:
        return True
    known = getattr(oasis, name, None) if name in NAMES else None
    return known is not None and getattr(importlib.import_module(module), name) is known


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_of_behaviour_use_names_of_the_api_pages(path: Path) -> None:
    """Tests of what is inside belong to tests/unit."""
    internal = [
        f"{module}.{name}"
        for module, name in used(path.read_text(encoding="utf-8"))
        if module.split(".")[0] in PACKAGES and not is_public(module, name)
    ]
    assert not internal, f"{path.relative_to(ROOT)}: not on the API pages: {', '.join(internal)}"
