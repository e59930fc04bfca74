"""The house: files and bodies stay short, a name is one class, what a policy can do is declared."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.packaging.structure import (
    files_of_tests,
    functions,
    lines_of,
    nodes_of,
    parse,
    place,
    product_files,
)

MOST_LINES = 800  # of a file
MOST_BODY_LINES = 60  # of a function, its docstring not counted


def test_no_file_is_longer_than_800_lines() -> None:
    lengths = {place(file): lines_of(file) for file in [*product_files(), *files_of_tests()]}
    assert len(lengths) > 500, "the search for files has lost some"
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_body_of_a_function_is_longer_than_60_lines() -> None:
    found = [function for file in product_files() for function in functions(file)]
    assert len(found) > 2000, "the search for functions has lost some"
    assert [function for function in found if function.lines > MOST_BODY_LINES] == []


def test_no_two_test_files_have_one_name() -> None:
    """The directories of tests are no packages: pytest takes the second file for the first."""
    names = Counter(file.name for file in files_of_tests() if file.name.startswith("test_"))
    assert names.total() > 100, "the search for test files has lost some"
    assert [name for name, times in names.items() if times > 1] == []


def guesses(tree: ast.Module) -> list[str]:
    """Calls of ``getattr`` and ``hasattr`` on what is called a policy."""
    return [
        ast.unparse(node)
        for node in nodes_of(tree, ast.Call)
        if isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and ast.unparse(node.args[0]).rpartition(".")[2] == "policy"
    ]


def test_no_ability_of_a_policy_is_guessed() -> None:
    """Abilities are protocols, which mypy sees, or attributes that one module asks for."""
    found = {place(file): sorted(guesses(parse(file))) for file in product_files()}
    asked = [
        f"getattr(policy, {what})"
        for what in ("'needs', ''", "'state_of', None", "attribute, False")
    ]
    allowed = {"oasis/scheduling/capabilities.py": asked}
    assert {name: calls for name, calls in found.items() if calls} == allowed


def test_no_module_imports_itself() -> None:
    """A late import of a neighbour that was merged into the same file is a plain name."""
    found = []
    for file in product_files():
        name = ".".join(Path(place(file)).with_suffix("").parts)
        imports = nodes_of(parse(file), ast.ImportFrom)
        found += [f"{name}:{n.lineno}" for n in imports if n.module == name]
    assert found == []


def classes(tree: ast.Module) -> list[str]:
    """Names of the classes that a module defines, those inside of others included."""
    return [node.name for node in nodes_of(tree, ast.ClassDef)]


def test_one_class_name_is_one_class() -> None:
    """A reader who meets a name knows which class it is, wherever it stands."""
    places: dict[str, list[str]] = {}
    for file in product_files():
        for name in classes(parse(file)):
            places.setdefault(name, []).append(place(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def defining(*methods: str) -> dict[str, str]:
    """Classes of the product that define all these methods, and their files; no protocols."""
    found = {}
    for file in product_files():
        for node in nodes_of(parse(file), ast.ClassDef):
            if "Protocol" in map(ast.unparse, node.bases):
                continue
            own = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            if own.issuperset(methods):
                found[node.name] = place(file)
    return found


def test_each_policy_of_the_model_is_one_class() -> None:
    """Simulation, service and cluster drive the same objects; nothing stands between."""
    planners = {n: f for n, f in defining("decide").items() if f.startswith("oasis/")}
    assert planners == {
        "OASiS": "oasis/online/oasis.py",
        "RollingOASiS": "oasis/online/rolling_oasis.py",
        "Recourse": "oasis/online/recourse/policy.py",
    }


def test_there_is_one_view_and_one_check_of_plans() -> None:
    assert defining("free", "capacity", "waiting_since", "attained") == {
        "View": "oasis/scheduling/view.py"
    }
    refusing = [
        place(file)
        for file in product_files()
        if "more than is free" in file.read_text()  # what a plan is refused with
    ]
    assert refusing == ["oasis/driver/books.py"]
