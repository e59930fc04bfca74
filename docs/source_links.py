"""Where a formula is in the code, and which formulas a place in the code cites.

The role ``{src}`oasis.online.prices.PriceFunction``` prints the class's name and
``oasis/online/prices.py:22``, a link to that line; `citations` goes the other way. Both read the
source, so that no line number is ever written down.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PACKAGES = ("oasis", "offline", "experiments")
ROOT = Path(__file__).parents[1]
PAGES = "_source"  # where the pages of source code are (source_pages.py)
EQUATION = re.compile(r"\((?:[1-9]|[12]\d|3[0-3])\)")
ALGORITHM = re.compile(r"\b(?:Algorithm|Alg\.) [12]\b|\bTheorem [1-4]\b|\bFig\. \d+\b")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def locate(name: str) -> tuple[Path, int]:
    """File and line that define the dotted `name`: a module, class, function, method or field.

    Raises
    ------
    LookupError
        If nothing of that name is defined there.
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        path = Path(module.__file__ or "")
        return path.relative_to(ROOT), _line(path, parts[length:], name)
    raise LookupError(f"{name}: no such module")


def address(path: Path, line: int) -> str:
    """Address of a line of source code, from the root of the pages."""
    return f"{PAGES}/{path.with_suffix('').as_posix()}.html#line-{line}"


def from_page(page: str, address_from_root: str) -> str:
    """The same address, from the page of this name."""
    return "../" * page.count("/") + address_from_root


def _line(path: Path, names: list[str], full: str) -> int:
    scope: ast.AST = _parsed(path)
    line = 1
    for name in names:
        found = next((d for d in _definitions(scope) if name in _names(d)), None)
        if found is None:
            raise LookupError(f"{full}: {path.name} does not define {name}")
        scope, line = found, found.lineno
    return line


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _definitions(scope: ast.AST) -> Iterator[Definition]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Definition):
            yield node


def _names(node: Definition) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [node.name]


def citations() -> Iterator[tuple[str, str, str]]:
    """Yield (file, dotted name, what it cites) for every definition whose text cites the paper."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            spans = list(_spans(ast.parse(text), ()))
            cited: dict[tuple[int, str], set[str]] = {}
            for line, found in _cited(text):
                begin, _, place = max(span for span in spans if span[0] <= line <= span[1])
                cited.setdefault((begin, place), set()).add(found)
            for (_, place), found_here in sorted(cited.items()):
                file = path.relative_to(ROOT)
                module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
                name = f"{module}.{place}" if place else module
                yield file.as_posix(), name, " ".join(sorted(found_here, key=_order))


def _spans(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.Module):
        yield 1, 10**9, ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            here = (*names, child.name)
            yield child.lineno, child.end_lineno or child.lineno, ".".join(here)
            yield from _spans(child, here)


def _cited(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each citation in a comment or a string."""
    wanted = (tokenize.COMMENT, tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in wanted:
            continue
        for k, line in enumerate(token.string.splitlines()):
            if line.lstrip().startswith((">>>", "...")):
                continue  # an example: f(3) is a call, not equation (3)
            for pattern in (EQUATION, ALGORITHM):
                for match in pattern.findall(line):
                    yield token.start[0] + k, match.replace("Algorithm", "Alg.")


def _order(cited: str) -> tuple[bool, int, str]:
    digits = re.sub(r"\D", "", cited)
    return not cited.startswith("("), int(digits), cited


def _role(_role: str, _raw: str, text: str, line: int, inliner: Any, *_: Any) -> Any:
    from docutils import nodes  # noqa: PLC0415 (the tests use `locate` without it)

    try:
        path, number = locate(text)
    except LookupError as error:
        message = inliner.reporter.error(str(error), line=line)
        return [inliner.problematic(text, text, message)], [message]
    module = path.with_suffix("").as_posix().replace("/", ".")
    short = text.removeprefix(module).lstrip(".") or text
    place = f"{path.as_posix()}:{number}"
    page = inliner.document.settings.env.docname
    uri = from_page(page, address(path, number))
    link = nodes.reference(place, place, refuri=uri, internal=True)
    return [nodes.literal(short, short), nodes.Text(" "), link], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role ``src``."""
    app.add_role("src", _role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
