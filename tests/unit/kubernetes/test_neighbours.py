"""Affinity between pods, and topology: what the scheduler says beside the pods that are there.

The scheduler itself is asked in `tests/kubernetes/test_admission.py`, about pods drawn here.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.objects.neighbours import Bound, Neighbours, PodRules
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.played import Played, job, node, pods
from tests.unit.kubernetes.test_jobs_of_any_shape import policy

ZONE, RACK, HOST = "zone", "rack", "kubernetes.io/hostname"
NODES: dict[str, dict[str, str]] = {
    "n0": {ZONE: "a", RACK: "1"},
    "n1": {ZONE: "a", RACK: "2"},
    "n2": {ZONE: "b", RACK: "3"},
    "n3": {ZONE: "b"},
    "n4": {ZONE: "c", RACK: "4"},
    "n5": {},
}
ELSEWHERE = "elsewhere"  # the other namespace


def selector(draw: random.Random) -> dict[str, Any] | None:
    kind = draw.random()
    if kind < 0.05:
        return None
    if kind < 0.1:
        return {}
    found: dict[str, Any] = {}
    if draw.random() < 0.6:
        found["matchLabels"] = {"app": draw.choice("xy")}
    if draw.random() < 0.5 or not found:
        operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        one: dict[str, Any] = {"key": draw.choice(("app", "tier")), "operator": operator}
        if operator in ("In", "NotIn"):
            one["values"] = draw.sample("xyz", draw.randint(1, 2))
        found["matchExpressions"] = [one]
    return found


def between(draw: random.Random) -> dict[str, Any]:
    """A term of an affinity between pods."""
    found: dict[str, Any] = {"topologyKey": draw.choice((ZONE, RACK, HOST))}
    asked = selector(draw)
    if asked is not None:
        found["labelSelector"] = asked
        if draw.random() < 0.15:
            name = draw.choice(("matchLabelKeys", "mismatchLabelKeys"))
            used = str(asked)
            found[name] = [key for key in ("app", "tier") if key not in used][:1] or ["other"]
    if draw.random() < 0.2:
        found["namespaces"] = [ELSEWHERE]
    return found


def spread(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topologyKey": draw.choice((ZONE, RACK, HOST)),
        "maxSkew": draw.randint(1, 2),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule",) * 4 + ("ScheduleAnyway",)),
    }
    asked = selector(draw)
    if asked is not None:
        found["labelSelector"] = asked
    if found["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.3:
        found["minDomains"] = draw.randint(1, 4)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.random() < 0.4:
            found[name] = draw.choice(("Honor", "Ignore"))
    return found


def labels(draw: random.Random) -> dict[str, str]:
    return {key: draw.choice("xyz") for key in ("app", "tier") if draw.random() < 0.8}


def beside(draw: random.Random) -> dict[str, Any]:
    """The spec of a pod that says something of the pods beside it."""
    found: dict[str, Any] = {"affinity": {}}
    for name, chance in (("podAffinity", 0.4), ("podAntiAffinity", 0.4)):
        if draw.random() < chance:
            terms = [between(draw) for _ in range(draw.choice((1, 1, 2)))]
            found["affinity"][name] = {REQUIRED: terms}
    if draw.random() < 0.5 or not found["affinity"]:
        by_key = {one["topologyKey"]: one for one in (spread(draw) for _ in range(2))}
        found["topologySpreadConstraints"] = list(by_key.values())  # each key once
    if draw.random() < 0.3:
        found["nodeSelector"] = {ZONE: draw.choice("ab")}
    if draw.random() < 0.3:
        found["tolerations"] = [{"key": "team", "operator": "Exists"}]
    return found


def there(draw: random.Random, namespace: str, count: int) -> list[dict[str, Any]]:
    """Pods that are on nodes already."""
    found = []
    for k in range(count):
        meta = {"name": f"there-{k}", "namespace": namespace, "labels": labels(draw)}
        spec: dict[str, Any] = {"nodeName": draw.choice(list(NODES))}
        if draw.random() < 0.2:
            one = between(draw)
            one["labelSelector"] = {"matchLabels": {"app": draw.choice("xyz")}}
            one.pop("matchLabelKeys", None), one.pop("mismatchLabelKeys", None)
            if namespace == ELSEWHERE:
                one.pop("namespaces", None)
                one["namespaceSelector"] = {}  # of all namespaces
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [one]}}
        found.append({"metadata": meta, "spec": spec})
    return found


def node_objects(taints: dict[str, list[dict[str, str]]] | None = None) -> dict[str, Any]:
    return {
        name: {
            "metadata": {"name": name, "labels": {HOST: name, **given}},
            "spec": {"taints": (taints or {}).get(name, [])},
        }
        for name, given in NODES.items()
    }


def refusals(
    spec: dict[str, Any],
    own: dict[str, str],
    pods_there: list[Any],
    nodes: dict[str, Any],
    namespace: str = "ns",
) -> dict[str, str]:
    """Reason why each node refuses a pod, by constraints on nodes or on pods there."""
    named = [{**p, "metadata": {"uid": str(k), **p["metadata"]}} for k, p in enumerate(pods_there)]
    around = Neighbours(nodes, [Bound.of(pod, pod["spec"]["nodeName"]) for pod in named])
    at = NodeRules.of(spec)
    judge = around.judge(PodRules.of(namespace, own, spec), at)
    found = {name: at.refusal(node) or judge.refusal(name) for name, node in nodes.items()}
    return {name: why for name, why in found.items() if why}


# -- an oracle: the documentation of Kubernetes, written down anew ---------------------------------


def chosen(asked: dict[str, Any] | None, has: dict[str, str]) -> bool:
    if asked is None:
        return False
    if any(has.get(k) != v for k, v in (asked.get("matchLabels") or {}).items()):
        return False
    for one in asked.get("matchExpressions") or ():
        value, values = has.get(one["key"]), one.get("values", [])
        if not {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[one["operator"]]:
            return False
    return True


def meant(term: dict[str, Any], own: dict[str, Any], whose: str, pod: dict[str, Any]) -> bool:
    """Return whether a term of a pod with labels `own` selects `pod`."""
    has, namespace = pod["metadata"]["labels"], pod["metadata"]["namespace"]
    within = namespace in (term.get("namespaces") or [whose]) or "namespaceSelector" in term
    same = all(has.get(k) == own[k] for k in term.get("matchLabelKeys", []) if k in own)
    other = all(has.get(k) != own[k] for k in term.get("mismatchLabelKeys", []) if k in own)
    return within and same and other and chosen(term.get("labelSelector"), has)


class World:
    """Nodes, the pods on them, and one more pod with the labels `own`."""

    def __init__(self, spec: Any, own: dict[str, str], all_pods: list[Any], nodes: Any) -> None:
        self.affinity, self.own, self.pods, self.nodes = spec["affinity"], own, all_pods, nodes
        self.where = {name: node["metadata"]["labels"] for name, node in nodes.items()}
        self.me = {"metadata": {"labels": own, "namespace": "ns"}}
        self.rules = NodeRules.of(spec)
        self.hard = [
            one
            for one in spec.get("topologySpreadConstraints", [])
            if one["whenUnsatisfiable"] == "DoNotSchedule"
        ]

    def same(self, pod: Any, key: str, at: str) -> bool:
        here = self.where[at]
        return key in here and self.where[pod["spec"]["nodeName"]].get(key) == here[key]

    def kept_apart(self, at: str) -> bool:
        mine = (self.affinity.get("podAntiAffinity") or {}).get(REQUIRED, [])
        pairs = [(p, t) for p in self.pods for t in mine if meant(t, self.own, "ns", p)]
        for pod in self.pods:
            rule = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
            meta = pod["metadata"]
            pairs += [
                (pod, t)
                for t in rule.get(REQUIRED, [])
                if meant(t, meta["labels"], meta["namespace"], self.me)
            ]
        return any(self.same(pod, term["topologyKey"], at) for pod, term in pairs)

    def is_near(self, at: str) -> bool:
        terms = (self.affinity.get("podAffinity") or {}).get(REQUIRED, [])
        fitting = [p for p in self.pods if all(meant(t, self.own, "ns", p) for t in terms)]
        keys = {term["topologyKey"] for term in terms}
        anywhere = any(keys & self.where[p["spec"]["nodeName"]].keys() for p in fitting)
        if not anywhere and all(meant(t, self.own, "ns", self.me) for t in terms):
            return keys <= self.where[at].keys()
        return all(any(self.same(p, key, at) for p in fitting) for key in keys)

    def counts(self, one: dict[str, Any], name: str) -> bool:
        """Return whether a node counts where pods are spread."""
        by_affinity = one.get("nodeAffinityPolicy", "Honor") == "Honor"
        by_taints = one.get("nodeTaintsPolicy") == "Honor"
        node = self.nodes[name]
        return (
            all(c["topologyKey"] in self.where[name] for c in self.hard)
            and not (by_affinity and self.rules.unmet(node))
            and not (by_taints and list(self.rules.untolerated(node)))
        )

    def is_spread(self, one: dict[str, Any], at: str) -> bool:
        key, asked = one["topologyKey"], one.get("labelSelector")
        if key not in self.where[at]:
            return False
        found: Counter[str] = Counter()
        for name in filter(lambda name: self.counts(one, name), self.where):
            found[self.where[name][key]] += sum(
                p["metadata"]["namespace"] == "ns"
                and p["spec"]["nodeName"] == name
                and chosen(asked, p["metadata"]["labels"])
                for p in self.pods
            )
        least = min(found.values()) if len(found) >= one.get("minDomains", 1) else 0
        here = found[self.where[at][key]] + chosen(asked, self.own)
        return here - least <= one["maxSkew"]

    def admits(self, at: str) -> bool:
        return (
            not self.kept_apart(at)
            and self.is_near(at)
            and all(self.is_spread(one, at) for one in self.hard)
            and self.rules.refusal(self.nodes[at]) is None
        )


def test_the_rules_are_those_of_the_documentation() -> None:
    draw = random.Random(7)
    taints = {"n1": [{"key": "team", "effect": "NoSchedule"}]}
    nodes = node_objects(taints)
    admits: Counter[bool] = Counter()
    for _ in range(600):
        spec, own = beside(draw), labels(draw)
        all_pods = there(draw, "ns", draw.randint(0, 6)) + there(draw, ELSEWHERE, 3)
        found = refusals(spec, own, all_pods, nodes)
        world = World(spec, own, all_pods, nodes)
        for name in nodes:
            wanted = world.admits(name)
            assert (name not in found) == wanted, (spec, own, all_pods, name, found.get(name))
            admits[wanted] += 1
    assert min(admits.values()) > 0.2 * admits.total()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"affinity": {"podAffinity": {REQUIRED: [{}]}}}, r"podAffinity.*\[0\]\.topologyKey"),
        (
            {
                "affinity": {
                    "podAntiAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": 3}]}
                }
            },
            r"labelSelector: expected an object",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": "x"}]},
            r"spec.topologySpreadConstraints\[0\].maxSkew: expected an integer",
        ),
    ],
)
def test_nonsense_names_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InstanceError, match=field):
        PodRules.of("ns", {}, spec)


# -- on a cluster ----------------------------------------------------------------------------------


def zoned(name: str, zone: str) -> dict[str, Any]:
    made = node(name, "worker", 4)
    made["metadata"]["labels"][ZONE] = zone
    return made


def played(name: str = "fifo") -> Played:
    made = Played(policy(name))
    made.nodes = [zoned("n0", "a"), zoned("n1", "a"), zoned("n2", "b"), zoned("n3", "b")]
    made.nodes += [node("p0", "ps", 0)]
    made.restart()
    return made


def asking(name: str, workers: int, slots: int = 3, app: str = "x", **spec: Any) -> dict[str, Any]:
    template = pods(cpu="1", gpu="1")
    template["metadata"] = {"labels": {"app": app}}
    template["spec"] |= spec
    counts = {"minimum": workers, "initial": workers, "maximum": workers, "template": template}
    return job(name, slots=float(slots * workers), **counts)


def term(app: str, key: str = ZONE) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def near(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def apart(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def foreign(name: str, at: str, app: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": name, "labels": {"app": app}}
    return {
        "metadata": meta,
        "spec": {"containers": [{}], "nodeName": at, **spec},
        "status": {"phase": "Running"},
    }


def hosts(made: Played, uid: str) -> set[str]:
    return {
        pod["spec"]["nodeName"]
        for pod in made.pods.values()
        if pod["metadata"]["labels"].get(names.JOB_UID) == uid and "nodeName" in pod["spec"]
    }


@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "dragon"])
def test_pods_of_others_keep_a_job_off_or_draw_it_near(name: str) -> None:
    made = played(name)
    made.pods["db"] = foreign("db", "n2", "db")
    made.pods["hermit"] = foreign("hermit", "n1", "hermit", **apart(term("shy", HOST_LABEL)))
    far = made.submit(asking("far", 2, **apart(term("db"))))
    close = made.submit(asking("close", 2, **near(term("db"))))
    shy = made.submit(asking("shy", 12, app="shy"))
    made.run(1)
    assert hosts(made, far) <= {"n0", "n1"}
    assert hosts(made, close) <= {"n2", "n3"}
    assert hosts(made, far)
    assert hosts(made, close)
    made.run(8)
    assert made.phase(shy) == "Completed", made.status(shy)
    assert made.measured("oasis_gangs_withdrawn_total") == 0


HOST_LABEL = names.HOSTNAME


def test_what_makes_no_sense_of_a_pod_of_others_stops_nobody() -> None:
    made = played()
    odd = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "-not a value-"}}}
    made.pods["odd"] = foreign("odd", "n0", "db", **apart(odd))
    uid = made.submit(asking("j", 16, 2))
    made.run(4)
    assert made.phase(uid) == "Completed"


def test_a_job_that_is_to_be_near_pods_that_are_not_there_waits_for_them() -> None:
    made = played()
    uid = made.submit(asking("j", 2, **near(term("db"))))
    made.run(2)
    why = "no node admits its workers: it has none of the pods that it is to be near (4 nodes)"
    assert made.said(uid, "Placed") == ("False", "NoNode", why)
    made.pods["db"] = foreign("db", "n3", "db")
    made.run(1)
    assert hosts(made, uid) <= {"n2", "n3"}
    assert made.workers(uid) == 2


@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "las"])
def test_a_gang_that_wants_to_be_together_is_planned_in_one_part_of_the_cluster(name: str) -> None:
    made = played(name)
    made.pods["big"] = foreign("big", "n0", "big")
    made.pods["big"]["spec"]["containers"] = pods(gpu="3")["spec"]["containers"]
    uids = [
        made.submit(asking(f"j{k}", 4, 3, app=f"j{k}", **near(term(f"j{k}")))) for k in range(3)
    ]
    for _ in range(9):
        made.run(1)
        for uid in uids:
            zones = {"n0": "a", "n1": "a", "n2": "b", "n3": "b"}
            assert len({zones[host] for host in hosts(made, uid)}) <= 1
    assert {made.phase(uid) for uid in uids} == {"Completed"}
    first = made.status(uids[0])
    assert first["completionSlot"] <= 3
    assert made.measured("oasis_gangs_withdrawn_total") == 0


def test_a_gang_that_does_not_fit_together_is_not_opened_and_says_why() -> None:
    """One worker a node is asked for, and the plan has two on one: in the end it gives it back."""
    made = played()
    made.nodes = made.nodes[:1] + made.nodes[-1:]
    made.restart()
    uid = made.submit(asking("j", 2, **apart(term("x", HOST_LABEL))))
    made.run(1)
    assert made.workers(uid) == 0
    said = made.said(uid, "Placed")
    assert said[:2] == ("False", "NotAdmitted")
    assert "node n0 does not admit pod" in said[2]
    assert f"{HOST_LABEL} n0 has pods that" in said[2]
    assert "affinity.podAntiAffinity (between its own pods)" in made.said(uid, "Unjudged")[2]
    made.run(6)
    assert made.said(uid, "Placed")[1] == "PodsNotReady"
    assert not made.pods


def test_a_gang_is_spread_as_it_asks_where_the_plan_spreads_it() -> None:
    skew = {"topologyKey": HOST_LABEL, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    skew["labelSelector"] = {"matchLabels": {"app": "x"}}
    made = played()
    everywhere = made.submit(asking("everywhere", 16, topologySpreadConstraints=[skew]))
    made.run(1)
    assert made.workers(everywhere) == 0, "the node of parameter servers would be empty"
    made.delete(everywhere)
    has = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}
    where = {"affinity": {"nodeAffinity": {REQUIRED: has}}}
    uid = made.submit(asking("j", 16, topologySpreadConstraints=[skew], **where))
    made.run(1)
    assert made.workers(uid) == 16, "four on each of four nodes"
