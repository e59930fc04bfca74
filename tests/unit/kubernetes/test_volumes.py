"""Volumes and topology: nodes that the scheduler would not take; what is not judged is said."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules, left_to_scheduler
from oasis.kubernetes.objects.volumes import Volumes
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.played import Played, job, node, pods
from tests.unit.kubernetes.test_jobs_of_any_shape import policy

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOST = "kubernetes.io/hostname"


def claim(name: str = "data", volume: str = "", **status: Any) -> dict[str, Any]:
    meta = {"namespace": "ns", "name": name, "uid": name}
    return {"metadata": meta, "spec": {"volumeName": volume}, "status": status}


def volume(name: str, labels: dict[str, str], *terms: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec}


def within(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def mounting(*claims: str, **more: Any) -> dict[str, Any]:
    template = pods(cpu="1", gpu="1")
    template["spec"] |= {
        "volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims],
        **more,
    }
    return template


def asking(name: str, workers: int, template: dict[str, Any]) -> dict[str, Any]:
    counts = {"minimum": workers, "initial": workers, "maximum": workers, "template": template}
    return job(name, slots=float(4 * workers), **counts)


# -- an oracle: what the scheduler's filters say, written down anew --------------------------------


def admits(labels: dict[str, str], pv: dict[str, Any]) -> bool:
    """VolumeZone, then VolumeBinding, for one bound volume."""
    zones = (ZONE, REGION, OLD_ZONE, "failure-domain.beta.kubernetes.io/region")
    newer = {OLD_ZONE: ZONE, zones[3]: REGION}
    if any(key in labels for key in zones):
        for key, value in pv["metadata"]["labels"].items():
            if key in zones:
                has = labels.get(key, labels.get(newer.get(key, key)))
                if has not in value.split("__"):
                    return False
    required = (pv["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(
        all(labels.get(e["key"]) in e["values"] for e in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    )


def test_a_bound_volume_admits_the_nodes_that_the_scheduler_would_take() -> None:
    draw = random.Random(5)
    verdicts = set()
    for _ in range(3000):
        labels = {k: draw.choice("abc") for k in (ZONE, OLD_ZONE, REGION) if draw.random() < 0.4}
        on_volume = {
            key: draw.choice(("a", "b", "a__b")) for key in labels if draw.random() < 0.6
        } | {key: "a" for key in (ZONE, OLD_ZONE) if draw.random() < 0.2}
        terms = [
            within(draw.choice((ZONE, HOST)), *draw.sample("abn", draw.randint(1, 2)))
            for _ in range(draw.choice((0, 0, 1, 2)))
        ]
        pv = volume("v", on_volume, *terms)
        there = Volumes({"persistentvolumeclaims": [claim("data", "v")], "persistentvolumes": [pv]})
        rules = there.narrowed(NodeRules.of(mounting("data")["spec"]), "ns")
        found = {"metadata": {"name": "n", "labels": {**labels, HOST: "n"}}, "spec": {}}
        wanted = admits({**labels, HOST: "n"}, pv)
        assert (rules.refusal(found) is None) == wanted, (labels, pv, rules.refusal(found))
        verdicts.add(wanted)
    assert verdicts == {True, False}


# -- on a cluster ----------------------------------------------------------------------------------


def zoned(name: str, zone: str) -> dict[str, Any]:
    made = node(name, "worker", 4)
    made["metadata"]["labels"][ZONE] = zone
    return made


def played(name: str = "fifo") -> Played:
    made = Played(policy(name))
    made.nodes = [zoned("n0", "a"), zoned("n1", "b"), node("p0", "ps", 0)]
    made.restart()
    return made


def hosts(made: Played) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in made.pods.values() if "nodeName" in pod["spec"]}


@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "dragon"])
def test_pods_go_where_their_volume_is(name: str) -> None:
    made = played(name)
    made.storage = {
        "persistentvolumeclaims": [claim("data", "v")],
        "persistentvolumes": [volume("v", {}, within(ZONE, "b"))],
    }
    uid = made.submit(asking("j", 3, mounting("data")))
    made.run(1)
    assert (made.workers(uid), hosts(made)) == (3, {"n1"})


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ([], "claim data is not there"),
        ([claim("data", "v")], "the volume of claim data is not there"),
        ([claim("data", "v", phase="Lost")], "claim data has lost its volume"),
    ],
)
def test_a_claim_without_volume_keeps_its_job_waiting(claims: list[Any], why: str) -> None:
    made = played()
    made.storage = {"persistentvolumeclaims": claims, "persistentvolumes": []}
    uid = made.submit(asking("j", 2, mounting("data")))
    made.run(2)
    said = ("False", "NoNode", f"no node admits its workers: {why} (2 nodes)")
    assert made.said(uid, "Placed") == said
    made.storage = {
        "persistentvolumeclaims": [claim("data", "v")],
        "persistentvolumes": [volume("v", {ZONE: "a"})],
    }
    made.run(1)
    assert hosts(made) == {"n0"}


def test_two_volumes_in_two_zones_admit_no_node() -> None:
    made = played()
    made.storage = {
        "persistentvolumeclaims": [claim("one", "v"), claim("two", "w")],
        "persistentvolumes": [volume("v", {ZONE: "a"}), volume("w", {ZONE: "b"})],
    }
    uid = made.submit(asking("j", 2, mounting("one", "two")))
    made.run(1)
    assert made.said(uid, "Placed")[1] == "NoNode"


def test_a_claim_that_is_bound_where_its_pods_went_keeps_them_there() -> None:
    """As with volumes that are made where their first pod is."""
    made = played()
    made.storage = {"persistentvolumeclaims": [claim("data")], "persistentvolumes": []}
    uid = made.submit(asking("j", 1, mounting("data")))
    made.run(1)
    before, (host,) = set(made.pods), hosts(made)
    assert "volume data, not bound yet, of its workers" in made.said(uid, "Unjudged")[2]
    zone = {"n0": "a", "n1": "b"}[host]
    made.storage = {
        "persistentvolumeclaims": [claim("data", "v")],
        "persistentvolumes": [volume("v", {ZONE: zone})],
    }
    made.run(2)
    assert (set(made.pods), made.said(uid, "Unjudged")) == (before, None)


def test_nodes_without_the_label_of_a_topology_admit_no_pod_that_is_spread_over_it() -> None:
    made = played()
    made.nodes[0]["metadata"]["labels"].pop(ZONE)
    spread = [{"topologyKey": ZONE, "maxSkew": 4, "whenUnsatisfiable": "DoNotSchedule"}]
    uid = made.submit(asking("j", 2, mounting(topologySpreadConstraints=spread)))
    made.run(1)
    assert hosts(made) == {"n1"}
    assert made.said(uid, "Unjudged") is None
    spread[0]["labelSelector"] = {}
    made.edit(
        uid, workers=asking("j", 2, mounting(topologySpreadConstraints=spread))["spec"]["workers"]
    )
    made.run(1)
    assert made.said(uid, "Unjudged") == (
        "True",
        "LeftToScheduler",
        "left to the scheduler of the cluster, and not seen by the plan: "
        "topologySpreadConstraints (between its own pods) of its workers",
    )
    made.edit(uid, workers=asking("j", 2, mounting())["spec"]["workers"])
    made.run(1)
    assert made.said(uid, "Unjudged") is None


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
NEAR = {REQUIRED: [{"topologyKey": ZONE, "namespaceSelector": {"matchLabels": {"a": "b"}}}]}
ASKED: dict[str, dict[str, Any]] = {
    "priorityClassName": {"priorityClassName": "high"},
    "runtimeClassName": {"runtimeClassName": "gvisor"},
    "resourceClaims": {"resourceClaims": [{"name": "gpu"}]},
    "hostNetwork": {"hostNetwork": True},
    "schedulerName": {"schedulerName": "mine"},
    "affinity.podAffinity[0].namespaceSelector": {"affinity": {"podAffinity": NEAR}},
    "affinity.podAntiAffinity[0].namespaceSelector": {"affinity": {"podAntiAffinity": NEAR}},
    "volumes[1].ephemeral": {"volumes": [{"name": "a", "emptyDir": {}}, {"ephemeral": {"x": 1}}]},
    "containers[0].ports": {"containers": [{"ports": [{"hostPort": 80}]}]},
}
QUIET: tuple[dict[str, Any], ...] = (
    {"schedulerName": "default-scheduler"},
    {"affinity": {"podAffinity": PREFERRED, "nodeAffinity": {}}},
    {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"topologySpreadConstraints": [{"topologyKey": ZONE}]},
    {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "namespaceSelector": {}}]}}},
    {"volumes": [{"name": "a", "emptyDir": {}}], "hostNetwork": False, "priorityClassName": ""},
    {"containers": [{"ports": [{"containerPort": 80}]}]},
)


def test_what_is_left_to_the_scheduler_is_named_and_nothing_else() -> None:
    for one, other in itertools.product(ASKED, ASKED):
        if one <= other and not ASKED[one].keys() & ASKED[other].keys():
            assert set(left_to_scheduler(ASKED[one] | ASKED[other])) == {one, other}
    for name, spec in ASKED.items():
        assert left_to_scheduler(spec) == (name,)
        assert NodeRules.of(spec).unjudged == (name,)
    for spec in QUIET:
        assert left_to_scheduler(spec) == ()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"volumes": 3}, "spec.volumes"),
        ({"volumes": [{"persistentVolumeClaim": {}}]}, "persistentVolumeClaim.claimName"),
        ({"volumes": [{"persistentVolumeClaim": 3}]}, r"volumes\[0\].persistentVolumeClaim"),
        ({"topologySpreadConstraints": [{}]}, "spec.topologyKey"),
        ({"affinity": {"podAntiAffinity": 3}}, "spec.affinity.podAntiAffinity"),
        ({"containers": [{"ports": 3}]}, r"containers\[0\].ports"),
    ],
)
def test_nonsense_is_named(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InstanceError, match=field):
        NodeRules.of(spec)
