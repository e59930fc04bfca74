"""Pods that know each other: what they read when they start, and who keeps an index."""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes import names
from oasis.kubernetes.acting import Create, Delete, Open, Target, action_word, reconcile
from oasis.kubernetes.cluster.gangs import network_objects, wanted_of
from oasis.kubernetes.cluster.nodes import Place
from oasis.kubernetes.cluster.pods import claimed, plan_hash
from oasis.kubernetes.objects.network import (
    LABEL,
    Gang,
    PodNetwork,
    environment,
    hostname,
    service_name,
    variables,
    with_variables,
)
from oasis.kubernetes.objects.oasis_job import JobSpec, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.errors import InstanceError
from oasis.scheduling.job import Allocation
from tests.unit.kubernetes.played import CLOCK, plain

FILE = Path(__file__).with_name("environments.yaml")
ROWS, WITH_VARIABLES = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))


def gang(row: dict[str, Any]) -> Gang:
    hosts = [
        {index: f"bert-{task}-{index}.bert" for index in row[of]}
        for task, of in (("worker", "workers"), ("ps", "ps"))
    ]
    return Gang("bert", *hosts, span=tuple(row["span"]) if "span" in row else None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['framework']} {row['task']}")
def test_a_pod_is_told_what_its_framework_reads(row: dict[str, Any]) -> None:
    network = PodNetwork(row["framework"], row.get("port", 2222))
    found: dict[str, Any] = environment(network, gang(row), row["task"], row["index"])
    if "TF_CONFIG" in found:
        found["TF_CONFIG"] = json.loads(found["TF_CONFIG"])
    assert found == row["variables"]
    # and which variables there are does not depend on who is there
    assert tuple(found) == variables(network, row["task"], elastic="span" in row)


def test_containers_read_annotations_and_keep_what_their_owner_wrote() -> None:
    before = deepcopy(WITH_VARIABLES["spec"])
    assert with_variables(before, WITH_VARIABLES["names"]) == WITH_VARIABLES["becomes"]
    assert before == WITH_VARIABLES["spec"]


@pytest.mark.parametrize("job", ["bert", "7b", "a.b", "a-b", "x" * 41, "x" * 42, "y" * 39 + ".z"])
def test_names_fit_into_the_network(job: str) -> None:
    assert LABEL.fullmatch(service_name(job)), "as the API server wants the names of Services"
    assert len(service_name(job)) <= 40
    assert len(hostname(job, "worker", 99_999)) <= 63


def test_no_two_jobs_have_one_name_in_the_network() -> None:
    jobs = ["a.b", "a-b", "j-a-b", "x" * 253, "x" * 252, "x" * 41]
    assert len({service_name(job) for job in jobs}) == len(jobs)


@pytest.mark.parametrize("name", ["hostname", "subdomain"])
def test_names_that_the_network_decides_on_are_refused_in_a_template(name: str) -> None:
    made = plain()
    made["spec"]["workers"]["template"]["spec"][name] = "mine"
    parse_job(made, CLOCK, DEFAULT_RESOURCES)
    made["spec"]["network"] = {}
    with pytest.raises(InstanceError, match=r"spec\.network decides on it") as caught:
        parse_job(made, CLOCK, DEFAULT_RESOURCES)
    assert caught.value.field == f"spec.workers.template.spec.{name}"


@pytest.mark.parametrize(
    ("framework", "has_ps", "resizes"),
    [
        ("none", False, True),
        ("torch", False, True),
        ("tensorflow", True, True),
        ("tensorflow", False, False),
        ("jax", True, False),
    ],
)
def test_workers_come_and_go_where_the_framework_lets_them(
    framework: str, has_ps: bool, resizes: bool
) -> None:
    made = plain()
    made["spec"]["network"] = {"framework": framework}
    if not has_ps:
        del made["spec"]["parameterServers"]
        made["spec"]["work"] = {"workerSeconds": 60}
    assert made["spec"]["workers"]["maximum"] > 1
    if resizes:
        assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "elastic"
    else:
        with pytest.raises(InstanceError, match="expected restart: the processes of") as caught:
            parse_job(made, CLOCK, DEFAULT_RESOURCES)
        assert caught.value.field == "spec.resizePolicy"
    made["spec"]["resizePolicy"] = "restart"
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "restart"
    # Of a fixed number of workers none comes or goes, but one that moves restarts all.
    made["spec"] |= {"resizePolicy": "elastic"}
    made["spec"]["workers"]["minimum"] = made["spec"]["workers"]["maximum"]
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).resize == "restart"


GROUPS_OF = {"a": "worker", "b": "worker", "c": "worker", "p": "ps", "q": "ps"}
PLACES = tuple(Place(n, n, n, frozenset({group}), Fraction(1)) for n, group in GROUPS_OF.items())
RESOURCES = (*(resource for _, resource, _ in DEFAULT_RESOURCES.entries), "pods")


def spec_of(framework: str = "none", **more: Any) -> JobSpec:
    made = plain()
    made["metadata"]["name"] = "bert"
    made["spec"] |= {"network": {"framework": framework}, **more}
    return parse_job(made, CLOCK, DEFAULT_RESOURCES)


def plan(**counts: int) -> Allocation:
    """Pods by node, as in ``plan(a=2, p=1)``."""
    held = [(k, counts.get(place.node, 0)) for k, place in enumerate(PLACES)]
    placed = [(k, n) for k, n in held if n]
    return Allocation(
        tuple((k, n) for k, n in placed if "worker" in PLACES[k].hosts),
        tuple((k, n) for k, n in placed if "ps" in PLACES[k].hosts),
    )


class Played:
    """Pods of one job, as the API server and the kubelets would have them."""

    def __init__(self, spec: JobSpec) -> None:
        self.spec, self.pods, self.services = spec, {}, []  # type: JobSpec, dict[str, Any], list
        self.made = 0
        self.opened_beside: list[tuple[str, set[str]]] = []  # an opened pod, and those then there

    def target(self, held: Allocation) -> Target:
        wanted = wanted_of(self.spec, held, PLACES, self.pods)
        lacking = network_objects(self.spec, self.services, ())
        digest = plan_hash(held, PLACES)
        return Target(self.spec, wanted, digest, dict(self.pods), 0, lacking=lacking)

    def turn(self, held: Allocation) -> bool:
        """One turn of the controller; whether it had anything to do, or waits for pods to end."""
        room = {place.node: dict.fromkeys(RESOURCES, Fraction(10**12)) for place in PLACES}
        steps = reconcile([self.target(held)], [], room)
        assert not steps.failed
        ending = {name for name, pod in self.pods.items() if "deletionTimestamp" in pod["metadata"]}
        for action in steps.actions:
            if action_word(action) == "expose":
                self.services.append(action.body)
            elif isinstance(action, Create):
                self.create(action)
            elif isinstance(action, Delete):
                meta = self.pods[action.pod["metadata"]["name"]]["metadata"]
                meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            else:
                assert isinstance(action, Open)
                self.open(action)
        for name in ending:  # they were asked to end before this turn, and are gone now
            del self.pods[name]
        return bool(steps.actions or ending)

    def create(self, action: Create) -> None:
        name = action.body["metadata"]["name"]
        assert name not in self.pods, "409: a pod of that name is there"
        self.made += 1
        pod = {**action.body, "status": {"phase": "Pending"}}
        pod["metadata"] |= {
            "uid": f"pod-{self.made}",
            "managedFields": [{"manager": names.FIELD_MANAGER}],
        }
        claims = {(names.KIND, self.spec.namespace, self.spec.uid): self.spec.uid}
        assert claimed(pod, claims) == self.spec.uid
        self.pods[name] = pod

    def open(self, action: Open) -> None:
        assert self.services, "before the Service is there, no name resolves"
        name = action.pod["metadata"]["name"]
        pod = self.pods[name]
        for each in action.patch:
            if each["path"].startswith("/metadata/annotations/"):
                key = each["path"].rpartition("/")[2].replace("~1", "/")
                pod["metadata"]["annotations"][key] = each["value"]
        pod["spec"]["schedulingGates"] = []
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.opened_beside.append((name, set(self.pods)))

    def settle(self, held: Allocation) -> None:
        for _ in range(20):
            if not self.turn(held):
                return
        raise AssertionError("there is always more to do")

    def indices(self, task: str = "worker") -> dict[int, str]:
        """Node by index."""
        found = {}
        for pod in self.pods.values():
            labels = pod["metadata"]["labels"]
            if labels[names.TASK] == task:
                index = int(labels[names.INDEX])
                assert index not in found, "two pods of one index"
                assert pod["spec"]["hostname"] == f"bert-{task}-{index}"
                assert pod["spec"]["subdomain"] == "bert"
                found[index] = pod["metadata"]["annotations"][names.NODE]
        return found

    def uids(self) -> dict[tuple[str, int], str]:
        labels = [(pod["metadata"]["labels"], pod["metadata"]["uid"]) for pod in self.pods.values()]
        return {(each[names.TASK], int(each[names.INDEX])): uid for each, uid in labels}

    def read(self, task: str, index: int) -> dict[str, str]:
        """Variables of a pod, as its container gets them."""
        for pod in self.pods.values():
            labels = pod["metadata"]["labels"]
            if (labels[names.TASK], labels[names.INDEX]) == (task, str(index)):
                notes = pod["metadata"]["annotations"]
                env = pod["spec"]["containers"][0]["env"]
                paths = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in env}
                assert paths.pop("POD_NAME") == "metadata.name"
                return {name: notes[path[22:-2]] for name, path in paths.items()}
        raise KeyError((task, index))


def test_a_gang_begins_with_indices_from_0_and_a_service() -> None:
    played = Played(spec_of())
    assert played.turn(plan(a=2, b=1, p=1))
    assert len(played.pods) == 4
    (service,) = played.services
    assert service["metadata"]["name"] == "bert"
    assert service["metadata"]["ownerReferences"][0]["uid"] == played.spec.uid
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": {names.JOB_UID: played.spec.uid},
        "publishNotReadyAddresses": True,
        "ports": [{"name": "train", "port": 2222}],
    }
    played.settle(plan(a=2, b=1, p=1))
    assert (played.indices(), played.indices("ps")) == ({0: "a", 1: "a", 2: "b"}, {0: "p"})
    assert played.read("worker", 2) == {
        "OASIS_TASK": "worker",
        "OASIS_INDEX": "2",
        "OASIS_HOSTS": "bert-worker-0.bert,bert-worker-1.bert,bert-worker-2.bert",
        "OASIS_PS_HOSTS": "bert-ps-0.bert",
        "OASIS_PORT": "2222",
    }


@pytest.mark.parametrize(("index", "how"), [(0, "deleted"), (0, "failed"), (1, "failed")])
def test_a_worker_0_that_is_gone_takes_the_others_with_it_and_another_comes_again(
    index: int, how: str
) -> None:
    played, gang = Played(spec_of("torch")), plan(a=2, b=1, p=1)
    played.settle(gang)
    before = played.uids()
    (gone,) = (n for n, p in played.pods.items() if p["metadata"]["uid"] == before["worker", index])
    if how == "deleted":
        del played.pods[gone]
    else:
        played.pods[gone]["status"]["phase"] = "Failed"
    played.settle(gang)
    now = played.uids()
    assert (now.keys(), played.indices()) == (before.keys(), {0: "a", 1: "a", 2: "b"})
    anew = {key for key in now if now[key] != before[key]}
    assert anew == ({("worker", index)} if index else now.keys())


def random_plan(draw: random.Random) -> Allocation:
    workers = {n: draw.choice((0, 0, 1, 2, 3)) for n in "abc"}
    servers = draw.choice(({}, {"p": 1}, {"p": 1}, {"p": 1}, {"q": 1}, {"p": 2}))
    return plan(**workers, **servers) if any(workers.values()) else plan()


def by_node(held: Allocation, task: str) -> Counter[str]:
    tasks = held.workers if task == "worker" else held.ps
    return Counter({PLACES[k].node: n for k, n in tasks})


@pytest.mark.parametrize("seed", range(30))
def test_over_any_plans_indices_are_those_of_the_rule(seed: int) -> None:
    draw = random.Random(seed)
    elastic = seed % 2 == 0
    played = Played(spec_of("none", resizePolicy="elastic" if elastic else "restart"))
    before, held = plan(), plan()
    for _ in range(12):
        before, held = held, random_plan(draw)
        old, uids, there = played.indices(), played.uids(), set(played.pods)
        for _ in range(draw.choice((0, 0, 1, 2))):  # some plans change before they are carried out
            played.turn(held)
            held, changed = random_plan(draw), True
            break
        else:
            changed = False
        opened = len(played.opened_beside)
        played.settle(held)
        now = played.indices()
        assert Counter(now.values()) == by_node(held, "worker")
        assert Counter(played.indices("ps").values()) == by_node(held, "ps")
        assert not now or 0 in now
        hosts = ",".join(f"bert-worker-{k}.bert" for k in sorted(now))
        kept = {key for key, uid in played.uids().items() if uids.get(key) == uid}
        for index in now:
            if ("worker", index) not in kept and (held == before or not elastic):
                assert played.read("worker", index)["OASIS_HOSTS"] == hosts
        if changed:
            continue
        goes_on = bool(old) and (
            held == before
            if not elastic
            else old[0] in now.values() and by_node(held, "ps") == by_node(before, "ps")
        )
        if not goes_on:
            assert not kept
            beside = [pods for _, pods in played.opened_beside[opened:]]
            assert not any(there & pods for pods in beside), "one gang at a time"
            assert sorted(now) == list(range(len(now)))
            continue
        wanted = by_node(held, "worker")
        for node in "abc":
            mine = sorted(k for k, at in old.items() if at == node)
            stays = mine[: wanted[node]]
            assert {k for k in mine if ("worker", k) in kept} == set(stays)
