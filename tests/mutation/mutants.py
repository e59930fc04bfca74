"""All mutants of a module: small changes of its code, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

# Cosmic Ray replaces each binary operator by all others.  Most of these fail at once on arrays of
# floats and so say nothing of the tests; one or two neighbours for each operator say more.
BINARY = {
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Div",),
    "Div": ("Mul",),
    "FloorDiv": ("Mul",),
    "Mod": ("FloorDiv",),
    "Pow": ("Mul",),
    "BitOr": ("BitAnd",),
    "BitAnd": ("BitOr",),
    "LShift": ("RShift",),
    "RShift": ("LShift",),
}
COMPARISONS = {
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
OTHERS = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ZeroIterationForLoop",
)
# Cosmic Ray leaves names and augmented assignments alone.
OPPOSITES = {
    "min": "max",
    "minimum": "maximum",
    "argmin": "argmax",
    "floor": "ceil",
    "any": "all",
    "+=": "-=",
    "*=": "/=",
    "|=": "&=",
}
OPPOSITES |= {new: old for old, new in OPPOSITES.items()}


class ReplaceByOpposite(Operator):
    """Replaces names such as `min`, and augmented assignments, by their opposites."""

    def mutation_positions(self, node):
        if getattr(node, "value", None) in OPPOSITES and node.type in ("name", "operator"):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node, index):
        node.value = OPPOSITES[node.value]
        return node

    @classmethod
    def examples(cls):
        return ()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module: `row` is its first line, `code` the whole module afterwards."""

    part: str
    module: str
    row: int
    inside: str  # the function or class around it
    operator: str
    line: str  # the lines that change, joined
    becomes: str
    code: str


@cache
def operators() -> dict[str, Operator]:
    """Every kind of change, by name."""
    names = [f"ReplaceBinaryOperator_{old}_{new}" for old in BINARY for new in BINARY[old]]
    names += [
        f"ReplaceComparisonOperator_{old}_{new}" for old in COMPARISONS for new in COMPARISONS[old]
    ]
    chosen = {name: get_operator(f"core/{name}")() for name in (*names, *OTHERS)}
    return chosen | {"ReplaceByOpposite": ReplaceByOpposite()}


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a mutant: the n-th occurrence in a module of what an operator changes."""

    part: str
    module: str
    operator: str
    occurrence: int
    inside: str


def places(part: str, module: str, source: str) -> Iterator[Place]:
    """Every place of `source`, in a fixed order."""
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in operators().items():
        able = (node for node in nodes for _ in operator.mutation_positions(node))
        for occurrence, node in enumerate(able):
            inside = ASTQuery(node).get_definition_name() or "the module"
            yield Place(part, module, name, occurrence, inside)


def mutate(place: Place, source: str) -> Mutant | None:
    """The mutant at `place`; None if it is no Python or changes nothing that runs."""
    code = mutate_code(source, operators()[place.operator], place.occurrence)
    if code is None or _meaning(code) in (None, _meaning(source)):
        return None
    row, line, becomes = _difference(source, code)
    return Mutant(place.part, place.module, row, place.inside, place.operator, line, becomes, code)


class _Running(ast.NodeTransformer):
    """Removes annotations, which are kept as text, and how arguments may be passed."""

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_arguments(self, node):
        """A `*` between parameters is no product."""
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults += [default for default in node.kw_defaults if default is not None]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _meaning(code: str) -> str | None:
    """The parsed code as far as it runs; None if it does not parse."""
    try:
        return ast.dump(_Running().visit(ast.parse(code)))
    except SyntaxError:
        return None


def _difference(before: str, after: str) -> tuple[int, str, str]:
    """The first line that changes, and the changed lines before and after."""
    old, new = before.splitlines(), after.splitlines()
    changes = [
        change
        for change in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    (_, first, _, start, _), (_, _, last, _, end) = changes[0], changes[-1]
    return first + 1, _joined(old[first:last]), _joined(new[start:end])


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
