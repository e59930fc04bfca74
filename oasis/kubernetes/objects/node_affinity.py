"""Admission of pods by nodes, by the rules of the cluster's own scheduler.

Its filters NodeUnschedulable, TaintToleration and NodeAffinity (Kubernetes 1.36): a pod with our
gate names no node. What it prefers does not matter here, nor does the room that is left, which the
plan counts itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

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
class NodeRules:
    """All constraints of a pod on its node; two are equal if they are written alike."""

    text: str
    selector: Mapping[str, str] = field(compare=False)  # labels that a node must have
    terms: Sequence[Mapping[str, Any]] = field(compare=False)  # of which one must hold, if any
    tolerations: Sequence[Mapping[str, Any]] = field(compare=False)

    @classmethod
    def of(cls, pod_spec: Mapping[str, Any]) -> NodeRules:
        """Read the constraints from a pod spec, unchecked: a dry run shows what is wrong."""
        selector = pod_spec.get("nodeSelector") or {}
        tolerations = pod_spec.get("tolerations") or ()
        of_nodes = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
        terms = (of_nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
        text = json.dumps((selector, terms, tolerations), sort_keys=True)
        return cls(text, selector, terms, tolerations)

    def refusal(self, node: Node) -> str | None:
        """Return why a pod with these rules may not go to `node`; None if it may."""
        taint = next(self.untolerated(node), None)
        if (unmet := self.unmet(node)) or taint is None:
            return unmet
        value = f"={taint['value']}" if taint.get("value") else ""  # as ``kubectl taint`` takes it
        return f"taint {taint['key']}{value}:{taint['effect']} is not tolerated"

    def unmet(self, node: Node) -> str | None:
        """Return which required labels `node` does not have; None if it meets the rules."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        for key, value in sorted(self.selector.items()):
            if labels.get(key) != value:
                return f"label {key} is not {value}"
        refusals = [_unmet(term, name, labels) for term in self.terms]
        if refusals and all(refusals):
            return " and ".join(str(each) for each in dict.fromkeys(refusals))
        return None

    def untolerated(self, node: Node) -> Iterator[Mapping[str, Any]]:
        """Yield the taints of `node` that keep away a pod with these rules."""
        spec = node.get("spec") or {}
        cordon = [UNSCHEDULABLE] if spec.get("unschedulable") else []
        for taint in (*(spec.get("taints") or ()), *cordon):
            tolerated = any(_tolerates(each, taint) for each in self.tolerations)
            if taint["effect"] in BLOCKING and not tolerated:
                yield taint


def _unmet(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> str | None:
    """Return the first requirement of a term that a node does not meet; None if it meets all."""
    requirements = [(rule, labels) for rule in term.get("matchExpressions") or ()]
    requirements += [(rule, {NAME: name}) for rule in term.get("matchFields") or ()]
    if not requirements:
        return "an empty term of its affinity holds nowhere"
    for rule, has in requirements:
        key, operator, values = rule["key"], rule["operator"], rule.get("values") or ()
        if not _holds(operator, has.get(key), values):
            subject = key if key == NAME else f"label {key}"
            return " ".join((subject, WORDS[operator], " or ".join(values))).rstrip()
    return None


def _holds(operator: str, label: str | None, values: Sequence[str]) -> bool:
    """Return whether `label` meets a requirement; it is None if the node has no such label."""
    if operator in ("In", "NotIn"):  # also where the label is missing
        return (label in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (label is not None) == (operator == "Exists")
    # What is no integer is neither above nor below.
    has, limit = _integer(label), _integer(values[0] if values else None)
    if has is None or limit is None:
        return False
    return has > limit if operator == "Gt" else has < limit


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    key, effect = (toleration.get(name) or "" for name in ("key", "effect"))
    value, has = toleration.get("value") or "", taint.get("value") or ""
    is_of_it = effect in ("", taint["effect"]) and key in ("", taint["key"])
    return is_of_it and (toleration.get("operator") == "Exists" or value == has)


def narrowed(
    affinity: Mapping[str, Any] | None, asked: list[dict[str, Any]], where: str
) -> dict[str, Any]:
    """Return `affinity` with the requirements `asked` added to each term, under its key `where`."""
    result = deepcopy(dict(affinity or {}))
    of_nodes = result["nodeAffinity"] = result.get("nodeAffinity") or {}
    required = of_nodes[REQUIRED] = of_nodes.get(REQUIRED) or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        required["nodeSelectorTerms"] = [{where: asked}]
        return result
    for term in terms:  # one of them has to hold, so each is narrowed; an empty one never holds
        if term.get("matchExpressions") or term.get("matchFields"):
            term[where] = [*(term.get(where) or ()), *asked]
    return result


def _integer(value: str | None) -> int | None:
    """Return the integer of 64 bits that a label holds; None if it holds none."""
    if value is None or not INTEGER.fullmatch(value):
        return None
    number = int(value)
    return number if -WIDEST <= number < WIDEST else None
