"""Admission of pods by nodes, by the rules of the cluster's own scheduler.

Its filters NodeName, NodeUnschedulable, TaintToleration and NodeAffinity (Kubernetes 1.36). What it
prefers does not matter here, nor does the room that is left, which the plan counts itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from oasis.kubernetes.objects.quantities import part
from oasis.model.document import entry, list_of, mapping, object_of, text
from oasis.model.errors import InstanceError

Node = Mapping[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"  # of the affinity to nodes
BLOCKING = ("NoSchedule", "NoExecute")  # effects of taints that keep new pods away
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NAME = "metadata.name"  # the one field that terms may ask for
WORDS = {  # by operator, what a node is that does not meet the requirement
    "In": "is not",
    "NotIn": "is",
    "Exists": "is missing",
    "DoesNotExist": "is there",
    "Gt": "is not above",
    "Lt": "is not below",
}
INTEGER = re.compile(r"[+-]?[0-9]+")
WIDEST = 1 << 63  # integers that are compared have 64 bits


@dataclass(frozen=True, slots=True)
class Expression:
    """Requirement of a term on one label of a node, or on its name."""

    key: str  # of the label; ``metadata.name`` in `Term.fields`
    operator: str  # of `WORDS`
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels meets the requirement."""
        found = labels.get(self.key)
        if self.operator == "In":
            return found in self.values
        if self.operator == "NotIn":  # where the label is missing, too
            return found not in self.values
        if self.operator in ("Exists", "DoesNotExist"):
            return (found is not None) == (self.operator == "Exists")
        # What is no integer is neither above nor below.
        has, limit = _integer(found), _integer(self.values[0] if self.values else None)
        if has is None or limit is None:
            return False
        return has > limit if self.operator == "Gt" else has < limit

    def __str__(self) -> str:
        """Describe what a node lacks that does not meet the requirement."""
        name = self.key if self.key == NAME else f"label {self.key}"
        return " ".join((name, WORDS[self.operator], " or ".join(self.values))).rstrip()


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a required affinity: all of it has to hold, or another term.

    Without any expression it holds nowhere.
    """

    labels: tuple[Expression, ...]
    fields: tuple[Expression, ...]  # about the name of a node

    def refusal(self, name: str, labels: Mapping[str, str]) -> str | None:
        """Return why a node does not match; None if it does."""
        if not self.labels and not self.fields:
            return "an empty term of its affinity holds nowhere"
        asked = [(each, labels) for each in self.labels]
        asked += [(each, {NAME: name}) for each in self.fields]
        return next((str(each) for each, found in asked if not each.holds(found)), None)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod."""

    key: str  # of the taints that it is about; empty: of all
    value: str | None  # None: any
    effect: str  # empty: any

    def tolerates(self, taint: Mapping[str, Any]) -> bool:
        """Return whether this toleration covers `taint`."""
        return (
            self.effect in ("", taint["effect"])
            and self.key in ("", taint["key"])
            and self.value in (None, taint.get("value") or "")
        )


@dataclass(frozen=True, slots=True)
class NodeRules:
    """All constraints of a pod on its node."""

    node: str  # name of the only node; empty: any
    selector: frozenset[tuple[str, str]]  # labels that a node must have
    terms: tuple[Term, ...] | None  # of which one must hold; None: none is asked for
    tolerations: frozenset[Toleration]

    @classmethod
    def of(cls, pod_spec: Mapping[str, Any], path: str = "spec") -> NodeRules:
        """Read the spec of a pod at `path`; what the API server refuses of it, a dry run tells."""
        selector = part(pod_spec, "nodeSelector", object_of(text), path) or {}
        affinity = part(pod_spec, "affinity", mapping, path) or {}
        of_nodes = part(affinity, "nodeAffinity", mapping, f"{path}.affinity") or {}
        terms = part(of_nodes, REQUIRED, _terms, f"{path}.affinity.nodeAffinity")
        tolerations = part(pod_spec, "tolerations", list_of(_toleration), path) or ()
        return cls(
            part(pod_spec, "nodeName", text, path) or "",
            frozenset(selector.items()),
            terms,
            frozenset(tolerations),
        )

    def refusal(self, node: Node) -> str | None:
        """Return why the scheduler does not admit such a pod to `node`; None if it does."""
        found = f"spec.nodeName is {self.node}"
        if self.node in ("", node["metadata"]["name"]):
            found = self.unmet(node) or next(map(_not_tolerated, self.untolerated(node)), "")
        return found or None

    def unmet(self, node: Node) -> str | None:
        """Return the first label of `node` that a pod does not accept; None if all are fine."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        for key, value in sorted(self.selector):
            if labels.get(key) != value:
                return f"label {key} is not {value}"
        refusals = [term.refusal(name, labels) for term in self.terms or ()]
        if refusals and all(refusals):
            return " and ".join(str(each) for each in dict.fromkeys(refusals))
        return None

    def untolerated(self, node: Node) -> Iterator[Mapping[str, Any]]:
        """Taints of `node` that keep such a pod away."""
        spec = node.get("spec") or {}
        cordon = [UNSCHEDULABLE] if spec.get("unschedulable") else []
        for taint in (*(spec.get("taints") or ()), *cordon):
            tolerated = any(each.tolerates(taint) for each in self.tolerations)
            if taint["effect"] in BLOCKING and not tolerated:
                yield taint


def _not_tolerated(taint: Mapping[str, Any]) -> str:
    return f"taint {taint_text(taint)} is not tolerated"


def narrowed(
    affinity: Mapping[str, Any] | None, asked: list[dict[str, Any]], where: str
) -> dict[str, Any]:
    """Affinity of a pod with the further requirements `asked`; `where` says labels or fields."""
    made = deepcopy(dict(affinity or {}))
    of_nodes = made["nodeAffinity"] = made.get("nodeAffinity") or {}
    required = of_nodes[REQUIRED] = of_nodes.get(REQUIRED) or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        required["nodeSelectorTerms"] = [{where: asked}]
        return made
    for term in terms:  # one of them has to hold, so each is narrowed; an empty one never holds
        if term.get("matchExpressions") or term.get("matchFields"):
            term[where] = [*(term.get(where) or ()), *asked]
    return made


def taint_text(taint: Mapping[str, Any]) -> str:
    """A taint as ``kubectl taint`` takes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _integer(value: str | None) -> int | None:
    """An integer of 64 bits as labels write it, without the underscores that Python would take."""
    if value is None or not INTEGER.fullmatch(value):
        return None
    found = int(value)
    return found if -WIDEST <= found < WIDEST else None


def _terms(data: Any) -> tuple[Term, ...]:
    return part(mapping(data), "nodeSelectorTerms", list_of(_term), "") or ()


def _term(data: Any) -> Term:
    mapping(data)
    both = ("matchExpressions", "matchFields")
    labels, fields = (part(data, name, list_of(_expression), "") or () for name in both)
    return Term(labels, fields)


def _expression(data: Any) -> Expression:
    operator = entry(data, "operator", text)
    if operator not in WORDS:
        raise InstanceError("operator", f"expected one of {', '.join(WORDS)}", operator)
    return Expression(
        entry(data, "key", text), operator, part(data, "values", list_of(text), "") or ()
    )


def _toleration(data: Any) -> Toleration:
    mapping(data)
    key, operator, value, effect = (
        part(data, name, text, "") or "" for name in ("key", "operator", "value", "effect")
    )
    return Toleration(key, None if operator == "Exists" else value, effect)
