"""Errors say where and what, are catchable by one class, and survive a trip between processes."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import oasis
from oasis.model.errors import InstanceError, SolverError, VerificationError, located_at


def test_verification_error_names_what_it_knows():
    error = VerificationError("(4) worker capacity", "9 > 8", slot=2, server="w1")
    assert str(error) == "(4) worker capacity [slot 2, server w1]: 9 > 8"
    assert (error.constraint, error.detail) == ("(4) worker capacity", "9 > 8")
    assert (error.job, error.slot, error.server) == (None, 2, "w1")
    assert str(VerificationError("(1)", "no")) == "(1): no"


@pytest.mark.parametrize(
    "error",
    [
        InstanceError("horizon", "expected an integer >= 1, got 0"),
        VerificationError("(4) worker capacity", "9 > 8", job="j", slot=2, server="w1"),
        SolverError("HiGHS failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error):
    """A worker process that fails must be able to say why."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_field_that_names_a_file_is_nested_outside_of_it():
    with (
        pytest.raises(oasis.InputError) as caught,
        located_at(source="sweep.toml"),
        located_at("instances[2]"),
        located_at("file"),
        located_at(source="day.json"),
        located_at("jobs[3]"),
    ):
        raise oasis.InputError("arrival", "expected a slot", "noon", hint="; a number")
    error = caught.value
    said = "sweep.toml: instances[2].file: day.json: jobs[3].arrival: expected a slot, got 'noon'"
    assert str(error) == f"{said}; a number"
    assert error.sources == (Path("sweep.toml"), "instances[2].file", Path("day.json"))
    assert (error.field, error.detail) == (
        "jobs[3].arrival",
        "expected a slot, got 'noon'; a number",
    )


PRODUCT = [
    path
    for package in ("oasis", "offline", "baselines", "experiments")
    for path in sorted(Path(__file__).parents[3].joinpath(package).rglob("*.py"))
]


def parses_an_error(tree: ast.AST) -> list[int]:
    """Lines that take the text of a caught error apart, or look for something in it."""
    found = []
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        texts = (
            f"str({handler.name})",
            f"{handler.name}.args",
            f"{handler.name}.expected",
            f"{handler.name}.detail",
        )
        for node in ast.walk(handler):
            looked_at: list[ast.AST] = []
            if isinstance(node, ast.Attribute | ast.Subscript):  # str(error).partition, args[0]
                looked_at = [node.value]
            elif isinstance(node, ast.Compare) and type(node.ops[0]).__name__.endswith("In"):
                looked_at = node.comparators  # "no" in str(error)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                looked_at = list(node.args)
            found += [node.lineno for one in looked_at if ast.unparse(one).startswith(texts)]
    return found


def test_nobody_takes_the_text_of_an_error_apart():
    planted = "try:\n    f()\nexcept E as e:\n    head = str(e).partition(': ')[0]\n"
    assert parses_an_error(ast.parse(planted))
    assert parses_an_error(ast.parse(planted.replace("str(e).p", "e.args[0].p")))
    assert parses_an_error(ast.parse(planted.replace("str(e).partition(': ')[0]", "'x' in str(e)")))
    wrong = {
        f"{path.parent.name}/{path.name}:{line}"
        for path in PRODUCT
        for line in parses_an_error(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not wrong
