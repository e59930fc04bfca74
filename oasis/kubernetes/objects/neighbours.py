"""Affinity between pods and topology spread, judged as kube-scheduler does.

Its filters InterPodAffinity and PodTopologySpread (Kubernetes 1.36): required affinity and
anti-affinity between pods, those of the pods that are there included, and constraints of topology
with ``DoNotSchedule``. Labels of namespaces are not known here: a term with a selector of
namespaces is judged only if that is empty, which means all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from oasis.kubernetes.objects.node_affinity import (
    KEY,
    REQUIRED,
    SET,
    Expression,
    NodeRules,
    hard_spread,
    label_expression,
    label_name,
    label_value,
)
from oasis.kubernetes.objects.quantities import part
from oasis.model.document import count, entry, list_of, mapping, object_of, text
from oasis.model.errors import InstanceError, located_at

BETWEEN = ("podAffinity", "podAntiAffinity")  # parts of the affinity of a pod
Object = Mapping[str, Any]
Labels = Mapping[str, str]
Value = tuple[str, str]  # a label of nodes and its value, which stand for a part of the cluster


@dataclass(frozen=True, slots=True)
class Pods:
    """A selection of pods by namespace and labels."""

    asked: tuple[Expression, ...] | None  # of their labels; None: no pod is meant
    namespaces: frozenset[str] | None  # None: all

    def has(self, namespace: str, labels: Labels) -> bool:
        """Return whether the selection contains a pod.

        Examples
        --------
        >>> Pods((Expression("app", "In", ("a",)),), None).has("ns", {"app": "a"})
        True
        """
        if self.asked is None or (self.namespaces is not None and namespace not in self.namespaces):
            return False
        return all(each.holds(labels) for each in self.asked)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A part of a required affinity, or of an anti-affinity: where some pods are, or are not."""

    pods: Pods
    key: str  # label of nodes: those with the same value are one place


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """A constraint of topology that the scheduler keeps."""

    pods: Pods
    key: str
    most: int  # pods in excess of those in the emptiest domain
    domains: int  # where there are fewer parts, the emptiest one counts as empty
    by_affinity: bool  # whether only nodes count that its affinity admits
    by_taints: bool  # and only nodes whose taints it tolerates


@dataclass(frozen=True, slots=True)
class PodRules:
    """Constraints of a pod on the pods beside it.

    Examples
    --------
    >>> apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    >>> spec = {"affinity": {"podAntiAffinity": {REQUIRED: [apart]}}}
    >>> rules = PodRules.of("ns", {"app": "a"}, spec)
    >>> rules.keeps_off(rules)
    True
    """

    namespace: str
    labels: frozenset[tuple[str, str]]
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    spread: tuple[TopologySpread, ...] = ()

    @classmethod
    def of(cls, namespace: str, labels: Labels, spec: Object, path: str = "spec") -> PodRules:
        """Read the spec of a pod, which stands at `path`, and which gets these labels.

        Raises
        ------
        InstanceError
            Naming the field, if the API server would refuse such a pod.
        """
        affinity = part(spec, "affinity", mapping, path) or {}
        terms: list[tuple[PodTerm, ...]] = []
        for name in BETWEEN:
            place = f"{path}.affinity.{name}"
            of_pods = part(affinity, name, mapping, f"{path}.affinity") or {}
            found = part(of_pods, REQUIRED, list_of(mapping), place) or ()
            made = []
            for k, one in enumerate(found):
                with located_at(f"{place}.{REQUIRED}[{k}]"):
                    if is_judged(one):
                        made.append(_term(one, namespace, labels))
            terms.append(tuple(made))
        spread = []
        for k, one in hard_spread(spec, path):
            with located_at(f"{path}.topologySpreadConstraints[{k}]"):
                spread.append(_spread(one, namespace, labels))
        near, apart = terms
        return cls(namespace, frozenset(labels.items()), near, apart, tuple(spread))

    @property
    def says_something(self) -> bool:
        """Return whether the pod has any such constraint."""
        return bool(self.near or self.apart or self.spread)

    def is_in(self, pods: Pods) -> bool:
        """Return whether a pod matches the rules."""
        return pods.has(self.namespace, dict(self.labels))

    def keeps_off(self, other: PodRules) -> bool:
        """Return whether one of the two pods excludes the other."""
        return any(other.is_in(term.pods) for term in self.apart) or any(
            self.is_in(term.pods) for term in other.apart
        )


def minds_others(spec: Object) -> bool:
    """Return whether the spec of a pod may contain constraints on other pods.

    Examples
    --------
    >>> [minds_others({"affinity": {name: {}}}) for name in ("nodeAffinity", "podAffinity")]
    [False, True]
    """
    affinity = spec.get("affinity") or {}
    return any((*(name in affinity for name in BETWEEN), spec.get("topologySpreadConstraints")))


def is_judged(term: Object) -> bool:
    """Return whether a term of pod affinity can be judged by the fields that are known here."""
    return not part(term, "namespaceSelector", mapping, "")


def _term(data: Object, namespace: str, labels: Labels) -> PodTerm:
    named = part(data, "namespaces", list_of(text), "") or ()
    within = None if data.get("namespaceSelector") is not None else frozenset(named or (namespace,))
    return PodTerm(Pods(_asked(data, labels), within), entry(data, "topologyKey", label_name))


def _spread(data: Object, namespace: str, labels: Labels) -> TopologySpread:
    affinity, taints = (
        part(data, name, text, "") or default
        for name, default in (("nodeAffinityPolicy", "Honor"), ("nodeTaintsPolicy", "Ignore"))
    )
    return TopologySpread(
        Pods(_asked(data, labels), frozenset((namespace,))),
        entry(data, "topologyKey", label_name),
        part(data, "maxSkew", count, "") or 1,
        part(data, "minDomains", count, "") or 1,
        affinity == "Honor",
        taints == "Honor",
    )


def _asked(data: Object, labels: Labels) -> tuple[Expression, ...] | None:
    """Return the requirements of a selector and of `matchLabelKeys`; None without one."""
    selector = part(data, "labelSelector", mapping, "")
    if selector is None:
        return None
    with located_at("labelSelector"):
        equal = part(selector, "matchLabels", object_of(label_value), "") or {}
        said = part(selector, "matchExpressions", list_of(_expression), "") or ()
    same = part(data, "matchLabelKeys", list_of(label_name), "") or ()
    other = part(data, "mismatchLabelKeys", list_of(label_name), "") or ()
    found = [Expression(key, "In", (value,)) for key, value in sorted(equal.items())]
    found += [Expression(key, "In", (labels[key],)) for key in same if key in labels]
    found += [Expression(key, "NotIn", (labels[key],)) for key in other if key in labels]
    return (*found, *said)


def _expression(data: Any) -> Expression:
    return label_expression(data, (*SET, *KEY))


@dataclass(frozen=True, slots=True)
class Bound:
    """A pod that is on a node, or on its way there."""

    node: str
    namespace: str
    labels: Labels
    apart: tuple[PodTerm, ...] = ()  # of its own anti-affinity
    is_ending: bool = False  # then it does not count where pods are spread
    uid: str = ""

    @classmethod
    def of(cls, pod: Object, node: str) -> Bound:
        """`pod` on `node`."""
        meta, spec = pod["metadata"], pod["spec"]
        labels = meta.get("labels") or {}
        apart: tuple[PodTerm, ...] = ()
        if (spec.get("affinity") or {}).get("podAntiAffinity"):
            # Older servers took selectors that are invalid: they are ignored.
            with suppress(InstanceError):
                apart = PodRules.of(meta["namespace"], labels, {"affinity": spec["affinity"]}).apart
        is_ending = bool(meta.get("deletionTimestamp"))
        return cls(node, meta["namespace"], labels, apart, is_ending, meta["uid"])


class Neighbours:
    """The nodes, and the pods on them; more of these may be put there.

    Examples
    --------
    >>> nodes = {n: {"metadata": {"name": n, "labels": {"zone": n}}, "spec": {}} for n in "ab"}
    >>> there = Neighbours(nodes, [Bound("a", "ns", {"app": "x"})])
    >>> apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    >>> spec = {"affinity": {"podAntiAffinity": {REQUIRED: [apart]}}}
    >>> judge = there.judge(PodRules.of("ns", {}, spec), NodeRules.of(spec))
    >>> judge.refusal("a"), judge.refusal("b")
    ('zone a has pods that it keeps off', None)
    """

    def __init__(self, nodes: Mapping[str, Object], pods: Iterable[Bound]) -> None:
        self.nodes = nodes
        self._labels = {name: node["metadata"].get("labels") or {} for name, node in nodes.items()}
        self.pods = [pod for pod in pods if pod.node in nodes]
        self._picky = [pod for pod in self.pods if pod.apart]

    def put(self, pod: Bound) -> None:
        """Record that one more pod is on its way to its node."""
        if pod.node in self.nodes:
            self.pods.append(pod)
            self._picky += [pod] if pod.apart else []

    def judge(self, rules: PodRules, at: NodeRules, without: Container[str] = ()) -> Judge:
        """Return the judge of a pod; `at` has its constraints on nodes.

        Pods with uids in `without` count as gone.
        """
        over = [self._spread_over(constraint, rules, at) for constraint in rules.spread]
        counts = [Counter(dict.fromkeys(each.values(), 0)) for each in over]
        found = Judge(rules, self._labels, over, counts)
        for pod in self.pods if rules.says_something else self._picky:
            if pod.uid not in without:
                found.enters(pod)
        return found

    def _spread_over(
        self, constraint: TopologySpread, rules: PodRules, at: NodeRules
    ) -> dict[str, str]:
        """Return the nodes that count where pods are spread, each with its topology domain."""
        keys = {each.key for each in rules.spread}
        return {
            name: self._labels[name][constraint.key]
            for name, node in self.nodes.items()
            if keys <= self._labels[name].keys()
            and not (constraint.by_affinity and at.unmet(node))
            and not (constraint.by_taints and any(True for _ in at.untolerated(node)))
        }


@dataclass(slots=True)
class Judge:
    """Judge which nodes admit one pod; other pods may be added in between."""

    rules: PodRules
    labels: Mapping[str, Labels]  # of each node
    over: list[
        dict[str, str]
    ]  # for each constraint of topology the nodes that count, by their part
    counts: list[Counter[str]]  # and the pods that count, by part
    near: set[Value] = field(default_factory=set)  # where those are that it wants to be near
    _kept_off: set[Value] = field(default_factory=set)  # where others keep it off
    _taken: set[Value] = field(default_factory=set)  # where those are that it keeps off

    @property
    def minds(self) -> bool:
        """Whether some node may refuse the pod."""
        return self.rules.says_something or bool(self._kept_off)

    def enters(self, pod: Bound) -> None:
        """Record that a pod is on its node."""
        rules, at = self.rules, self.labels[pod.node]
        for term in pod.apart:
            if term.key in at and rules.is_in(term.pods):
                self._kept_off.add((term.key, at[term.key]))
        for term in rules.apart:
            if term.key in at and term.pods.has(pod.namespace, pod.labels):
                self._taken.add((term.key, at[term.key]))
        # Only pods that fit all terms count for any of them.
        if all(term.pods.has(pod.namespace, pod.labels) for term in rules.near):
            self.near |= {(term.key, at[term.key]) for term in rules.near if term.key in at}
        for constraint, over, counts in zip(rules.spread, self.over, self.counts, strict=True):
            counted = pod.node in over and not pod.is_ending
            if counted and constraint.pods.has(pod.namespace, pod.labels):
                counts[over[pod.node]] += 1

    def refusal(self, node: str) -> str | None:
        """Return why the scheduler would not let the pod go to `node`, beside the pods there."""
        at = self.labels[node]
        for key, value in sorted(self._kept_off):
            if at.get(key) == value:
                return f"{key} {value} has pods that keep it off"
        for term in self.rules.apart:
            if (term.key, at.get(term.key)) in self._taken:
                return f"{term.key} {at[term.key]} has pods that it keeps off"
        return self._far(at) or self._skewed(at)

    def _far(self, at: Labels) -> str | None:
        """Return whether a node with these labels is too far from pods that it must be near."""
        for term in self.rules.near:
            if term.key not in at:
                return f"label {term.key} is missing"
        if all((term.key, at[term.key]) in self.near for term in self.rules.near):
            return None
        # The first of the pods that want to be near each other may go anywhere.
        is_first = not self.near and all(self.rules.is_in(term.pods) for term in self.rules.near)
        return None if is_first else "it has none of the pods that it is to be near"

    def _skewed(self, at: Labels) -> str | None:
        """Return the topology constraint that it would break on a node with these labels."""
        for constraint, counts in zip(self.rules.spread, self.counts, strict=True):
            if constraint.key not in at:
                return f"label {constraint.key} is missing"
            least = min(counts.values()) if len(counts) >= constraint.domains else 0
            here = counts[at[constraint.key]] + self.rules.is_in(constraint.pods)
            if here - least > constraint.most:
                value = f"{constraint.key} {at[constraint.key]}"
                return f"{value} would have {here - least} pods more than the emptiest"
        return None
