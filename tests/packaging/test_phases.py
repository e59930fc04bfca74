"""Every name of a phase, as users see it in results, is explained in docs/cli."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from offline import METHODS, solve
from offline.benders import solve as benders
from offline.model.compact import COMPACT
from offline.result import WARM_START
from offline.state import Standing

ROOT = Path(__file__).parents[2]
LEVELS = {name for name, *_ in benders.LEVELS}
CREDITED = {Standing.enter.__name__: 0, Standing.proved.__name__: 1}  # where the name stands


CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def table() -> dict[str, list[str]]:
    """Methods by phase, as the page has them."""
    (section,) = re.findall(r"^### Phases of a solve\n(.*?)^##? ", CLI, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| .+ \|$", section, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    return {phase: methods.split(", ") for phase, methods in rows}


def phases_of(path: Path) -> Iterator[str]:
    """What a module calls its phases; fails on a name that it cannot follow."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    module = importlib.import_module(name)
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        place = CREDITED.get(call.func.attr)
        if place is None or len(call.args) <= place:
            continue
        argument = ast.unparse(call.args[place])
        if argument == "phase" or argument.startswith("LEVELS["):
            yield from (name for name, *_ in module.LEVELS)
        else:
            name = eval(argument, vars(module))
            assert isinstance(name, str)
            yield name


def test_every_phase_has_an_entry_and_every_entry_a_phase() -> None:
    modules = sorted((ROOT / "offline").rglob("[!_]*.py"))
    names = {name for path in modules for name in phases_of(path)}
    assert names > LEVELS
    assert WARM_START in names
    assert set(table()) == names


def test_methods_in_the_table_exist() -> None:
    named = {method for methods in table().values() for method in methods}
    assert named == {"all", *METHODS} - {"auto"}


def test_rule_of_auto_is_the_one_in_the_code() -> None:
    for text in (CLI, solve.__doc__ or ""):
        (most,) = re.findall(r"at most (\d+)", " ".join(text.split()))
        assert int(most) == COMPACT
