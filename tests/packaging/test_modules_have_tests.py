"""Every module is imported by a unit test of its own part.

The part of a module is its room: ``oasis.model.job`` belongs to ``model``, and what lies deeper to
the room around it: ``oasis.online.dp.lagrangian`` to ``online``. Modules of ``offline``,
``baselines`` and ``experiments`` belong to the part of that name. The unit tests of a part are
the files ``test_*.py`` in ``tests/unit/<part>``.

A test imports a module if it names the module itself (``from oasis.model.job import Job``,
``from oasis.model import job`` or ``import oasis.model.job``). A name that a package passes on
(``from oasis import Job``) does not count, since it does not say which file is tested.

What talks to a cluster is tested on one: for the part ``kubernetes`` the tests in
``tests/kubernetes``, which start an API server, count as well.

Nothing is asked for a module that has nothing to test: one that consists of imports and of
constants written out, as ``oasis.version`` and most ``__init__`` files do. ``python -m`` runs a
``__main__`` in a process of its own, so the tests of the command line count for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.packaging.structure import ROOT, imported_names, module_name, parse, product_files


def part_of(module: str) -> str:
    """The room that a module lies in, or the package if it has no rooms of its own."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "oasis" else package


def is_written_out(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def has_something_to_test(tree: ast.Module) -> bool:
    """Whether there is more than a docstring, imports and constants written out."""
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id="require"))):
                pass  # tests/unit/model/test_extras.py
            case ast.Assign(value=value) if is_written_out(value):
                pass
            case ast.AnnAssign(value=ast.expr() as value) if is_written_out(value):
                pass
            case _:
                return True
    return False


def modules_to_test() -> Iterator[str]:
    for file in product_files():
        if file.name != "__main__.py" and has_something_to_test(parse(file)):
            yield module_name(file)


def imported_by_tests_of(part: str) -> set[str]:
    files = [*(ROOT / "tests" / "unit" / part).rglob("test_*.py")]
    if part == "kubernetes":
        files += (ROOT / "tests" / "kubernetes").rglob("*.py")
    return {name for file in files for name in imported_names(parse(file))}


def test_every_module_is_imported_by_a_unit_test_of_its_part() -> None:
    modules = list(modules_to_test())
    assert len(modules) > 200, "the search for modules has lost some"
    imported = {part: imported_by_tests_of(part) for part in {*map(part_of, modules)}}
    missing = [name for name in modules if name not in imported[part_of(name)]]
    assert not missing, "no test in tests/unit/<part> imports: " + ", ".join(missing)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Only words."""', False),
        ('"""Words."""\nfrom oasis.model.job import Job\n__all__ = ["Job"]', False),
        ('__version__ = "0.1.0"', False),
        ("LIMITS: dict[str, int] = {'a': 1}", False),
        ("LIMIT = 2 * compute()", True),
        ("def twice(x):\n    return 2 * x", True),
        ("class Thing:\n    pass", True),
        ("for name in ('a', 'b'):\n    print(name)", True),
    ],
)
def test_constants_and_imports_alone_need_no_test(source: str, expected: bool) -> None:
    assert has_something_to_test(ast.parse(source)) is expected


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from oasis.model.job import Job", True),
        ("from oasis.model import job", True),
        ("import oasis.model.job as job", True),
        ("def test_it():\n    from oasis.model.job import Job", True),
        ("from oasis import Job", False),
        ("from oasis.model import Job", False),
        ("import oasis.model", False),
    ],
)
def test_only_the_modules_own_name_counts(source: str, found: bool) -> None:
    assert ("oasis.model.job" in imported_names(ast.parse(source))) is found


def test_the_part_is_the_room() -> None:
    parts = {
        "oasis.model.job": "model",
        "oasis.online.dp.lagrangian": "online",
        "oasis.simulator": "simulator",
        "offline.patterns": "offline",
        "baselines.queues": "baselines",
        "experiments.cli.commands.run": "experiments",
    }
    assert {name: part_of(name) for name in parts} == parts
    assert module_name(ROOT / "oasis" / "model" / "__init__.py") == "oasis.model"
    assert module_name(ROOT / "oasis" / "model" / "job.py") == "oasis.model.job"
