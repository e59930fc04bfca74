"""The house: files and bodies stay short, a name is one class, what a policy can do is declared."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 800  # of a file
MOST_BODY_LINES = 60  # of a function, its docstring not counted


@cache
def product() -> dict[str, tuple[str, list[ast.AST]]]:
    """The text of each module of the product, and all nodes of its tree."""
    files = [file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py"))]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}
    return {name: (text, list(ast.walk(ast.parse(text, name)))) for name, text in texts.items()}


def test_no_file_is_longer_than_800_lines() -> None:
    texts = {name: text for name, (text, _) in product().items()}
    texts |= {str(file): file.read_text(encoding="utf-8") for file in TESTS}
    assert len(texts) > 400, "the search for files has lost some"
    assert [name for name, text in texts.items() if len(text.splitlines()) > MOST_LINES] == []


def test_no_body_of_a_function_is_longer_than_60_lines() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    every = [(name, node) for name, (_, nodes) in product().items() for node in nodes]
    found = [(name, node) for name, node in every if isinstance(node, kinds)]
    assert len(found) > 2000, "the search for functions has lost some"
    long = []
    for name, function in found:
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if body and (body[-1].end_lineno or 0) - body[0].lineno >= MOST_BODY_LINES:
            long.append(f"{name}: {function.name}")
    assert long == []


def test_few_protocols_are_left_of_what_a_policy_and_a_driver_ask_of_each_other() -> None:
    found = {
        node.name
        for name, (_, nodes) in product().items()
        if name.startswith("oasis/scheduling/")
        for node in nodes
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
    }
    assert found == {"Books", "Placement", "Policy"}  # and `Planner`, a class with defaults


def test_no_two_test_files_have_one_name() -> None:
    """The directories of tests are no packages: pytest takes the second file for the first."""
    names = Counter(file.name for file in TESTS if file.name.startswith("test_"))
    assert names.total() > 100, "the search for test files has lost some"
    assert [name for name, times in names.items() if times > 1] == []


def test_no_ability_of_a_policy_is_guessed() -> None:
    """Abilities are protocols, which mypy sees, or attributes that one module asks for."""
    found: dict[str, list[str]] = {}
    for name, (_, nodes) in product().items():
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("getattr", "hasattr")
                and ast.unparse(node.args[0]).rpartition(".")[2] == "policy"
            ):
                found.setdefault(name, []).append(ast.unparse(node))
    attributes = ("'needs', ''", "'state_of', None", "attribute, False")
    asked = [f"getattr(policy, {each})" for each in attributes]
    assert {name: sorted(calls) for name, calls in found.items()} == {
        "oasis/scheduling/policy.py": asked
    }


def test_one_class_name_is_one_class() -> None:
    """A reader who meets a name knows which class it is, wherever it stands."""
    everything = [node for _, nodes in product().values() for node in nodes]
    names = Counter(node.name for node in everything if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []
