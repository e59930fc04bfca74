"""The size of the house, counted: ``python -m tests.packaging.structure`` prints it as a table.

What is counted: files ``*.py``; a line is a line, whether code, docstring or blank. A module has a
single importer if exactly one other module of the product names it in an import, at the top or
inside a function; ``__init__`` and ``__main__`` are not asked for, and what is imported under a
name made while running (the modules of the subcommands) is listed as named by nobody.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")


class Function(NamedTuple):
    """A function, and the lines of its body without the docstring."""

    place: str
    lines: int


class Figures(NamedTuple):
    """Figures of the table that `tests/packaging/test_structure.py` limits."""

    product_lines: int
    product_files: int
    test_lines: int
    longest_file: Function
    longest_function: Function
    single_importer: dict[str, str]
    comment_share: float


def product_files(packages: tuple[str, ...] = PACKAGES) -> list[Path]:
    """Every module of the product."""
    return sorted(file for name in packages for file in (ROOT / name).rglob("*.py"))


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


def module_name(file: Path) -> str:
    """The dotted name of a file below the root: ``oasis/model/__init__.py`` is ``oasis.model``."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Everything that may be a module: what is imported, and where it is imported from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """For each module, the others that import it; a package is not meant by its modules' names."""
    found: dict[str, set[str]] = {name: set() for name in trees}
    for importer, tree in trees.items():
        for name in set(imported_names(tree)) - {importer}:
            if name in found:
                found[name].add(importer)
    return found


def single_importer(trees: dict[str, ast.Module]) -> dict[str, str]:
    """The modules that one other module imports, with that one."""
    return {name: min(by) for name, by in sorted(importers(trees).items()) if len(by) == 1}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions(file: Path) -> Iterator[Function]:
    """Every function of a file."""
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(f"{place(file)}: {node.name}", body_lines(node))


def comment_lines(source: str) -> int:
    """Lines that hold nothing but a comment."""
    found = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        alone = token.line.lstrip().startswith("#")
        found += token.type == tokenize.COMMENT and alone
    return found


def figures() -> Figures:
    """All figures of the tree as it is."""
    files = product_files()
    lines = {place(file): lines_of(file) for file in files}
    total = sum(lines.values())
    comments = sum(comment_lines(file.read_text(encoding="utf-8")) for file in files)
    modules = {module_name(f): parse(f) for f in files if not f.name.startswith("__main")}
    packages = {module_name(f) for f in files if f.name == "__init__.py"}
    single = {n: by for n, by in single_importer(modules).items() if n not in packages}
    return Figures(
        product_lines=total,
        product_files=len(files),
        test_lines=sum(lines_of(file) for file in files_of_tests()),
        longest_file=max((Function(*pair) for pair in lines.items()), key=lambda f: f.lines),
        longest_function=max((fn for f in files for fn in functions(f)), key=lambda f: f.lines),
        single_importer=single,
        comment_share=comments / total,
    )


def table(counted: Figures) -> str:
    """The figures, one a line, and the modules with a single importer below."""
    rows = [(f"lines of {name}", sum(map(lines_of, product_files((name,))))) for name in PACKAGES]
    rows += [
        ("lines of the product", counted.product_lines),
        ("files of the product", counted.product_files),
        ("lines of the tests", counted.test_lines),
        (f"longest file ({counted.longest_file.place})", counted.longest_file.lines),
        (f"longest body ({counted.longest_function.place})", counted.longest_function.lines),
        ("modules with a single importer", len(counted.single_importer)),
    ]
    width = max(len(name) for name, _ in rows)
    text = [f"{name:<{width}}  {value:>7,}" for name, value in rows]
    text.append(f"{'share of comment lines':<{width}}  {counted.comment_share:>7.2%}")
    text += ["", "Modules with a single importer, and which that is:"]
    text += [f"  {name}  {by}" for name, by in counted.single_importer.items()]
    return "\n".join(text)


if __name__ == "__main__":
    print(table(figures()))  # noqa: T201
