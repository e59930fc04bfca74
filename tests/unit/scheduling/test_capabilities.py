"""What a policy can do beside deciding, and what it wants to know."""

from __future__ import annotations

import ast
from pathlib import Path

import oasis
from baselines import FIFO
from oasis import scheduling
from oasis.scheduling.policy import wants

FEW = {"Books", "Placement", "Policy"}  # and `Planner`, a class with defaults


def test_few_protocols_are_left_of_what_a_policy_and_a_driver_ask_of_each_other() -> None:
    folder = Path(scheduling.__file__).parent
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in folder.glob("*.py")]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert {one.name for one in classes if "Protocol" in map(ast.unparse, one.bases)} == FEW


def test_a_policy_that_declares_nothing_wants_nothing() -> None:
    class Silent:
        name = "silent"

    for attribute in ("told_remaining", "knows_forms", "keeps_run_times", "plans_in_model"):
        assert not wants(Silent(), attribute)
        assert wants(oasis.Recourse(), attribute)
    assert not wants(FIFO(), "told_remaining")
