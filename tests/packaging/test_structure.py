"""The house: what a policy can do is declared, never guessed."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")


def modules() -> list[Path]:
    """Every module of the product."""
    return sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))


def guesses(source: str) -> list[str]:
    """Calls of ``getattr`` and ``hasattr`` on what is called a policy."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and ast.unparse(node.args[0]).rpartition(".")[2] == "policy"
    ]


def test_no_ability_of_a_policy_is_guessed() -> None:
    """Abilities are protocols (`oasis.scheduling.capabilities`), which mypy sees."""
    found = {str(file.relative_to(ROOT)): guesses(file.read_text()) for file in modules()}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_a_guess_would_be_seen() -> None:
    assert guesses("late = getattr(self.policy, 'late', set())") == [
        "getattr(self.policy, 'late', set())"
    ]
    assert guesses("hasattr(policy, 'scheduler') or getattr(self, name)") == [
        "hasattr(policy, 'scheduler')"
    ]


def test_no_module_imports_itself() -> None:
    """A late import of a neighbour that was merged into the same file is a plain name."""
    found = []
    for file in modules():
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        imports = [
            n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom)
        ]
        found += [f"{name}:{n.lineno}" for n in imports if n.module == name]
    assert found == []


def classes(source: str) -> list[str]:
    """Names of the classes that a module defines, those inside of others included."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_one_class_name_is_one_class() -> None:
    """A reader who meets a name knows which class it is, wherever it stands."""
    places: dict[str, list[str]] = {}
    for file in modules():
        for name in classes(file.read_text()):
            places.setdefault(name, []).append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_a_second_class_of_a_name_would_be_seen() -> None:
    assert classes("class A:\n    class B: ...\nclass A: ...") == ["A", "A", "B"]
