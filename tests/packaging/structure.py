"""The files of the house and their functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")


class Function(NamedTuple):
    """A function, and the lines of its body without the docstring."""

    place: str
    lines: int


def product_files() -> list[Path]:
    """Every module of the product."""
    return sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))


def files_of_tests() -> list[Path]:
    """Every Python file below ``tests``."""
    return sorted((ROOT / "tests").rglob("*.py"))


def place(file: Path) -> str:
    """The path of a file below the root."""
    return str(file.relative_to(ROOT))


def lines_of(file: Path) -> int:
    """Number of lines of a file."""
    return len(file.read_text(encoding="utf-8").splitlines())


@cache
def parse(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a tree, breadth first."""
    return list(ast.walk(tree))


Node = TypeVar("Node", bound=ast.AST)


def nodes_of(tree: ast.Module, kind: type[Node]) -> list[Node]:
    """The nodes of one kind."""
    return [node for node in nodes(tree) if isinstance(node, kind)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions(file: Path) -> Iterator[Function]:
    """Every function of a file."""
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        for node in nodes_of(parse(file), kind):
            yield Function(f"{place(file)}: {node.name}", body_lines(node))
