"""Pods that know each other: what they read when they start, and who keeps an index."""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes import names
from oasis.kubernetes.acting import Action, Create, Delete, Open
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
from oasis.scheduling import BasePolicy, Plan, View
from oasis.scheduling.job import Allocation
from tests.unit.kubernetes.played import Played, job, node, pods

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


GROUPS_OF = {"a": "worker", "b": "worker", "c": "worker", "p": "ps", "q": "ps"}


def plan(**counts: int) -> Allocation:
    """Pods by node, as in ``plan(a=2, p=1)``."""
    placed = [(k, n, counts[n]) for k, n in enumerate(GROUPS_OF) if counts.get(n)]
    groups = (
        tuple((k, count) for k, n, count in placed if GROUPS_OF[n] == group)
        for group in ("worker", "ps")
    )
    return Allocation(*groups)


class Given(BasePolicy):
    """Every job holds what the test says."""

    slotted = True
    held = plan()

    def decide(self, view: View) -> Plan:
        return Plan(changes={job.index: self.held for job in view.jobs()})


class OneGang(Played):
    """Pods of one job; those that are deleted go when nothing else is to be done."""

    def __init__(self, framework: str = "none", **spec: Any) -> None:
        self.given, self.ending = Given(), list[str]()
        self.opened_beside: list[set[str]] = []  # the pods that were there when one was opened
        super().__init__(lambda: self.given)
        self.nodes = [node(name, group, 4) for name, group in GROUPS_OF.items()]
        self.restart()
        made = job("bert", slots=1e6, maximum=9)
        made["spec"] |= {"network": {"framework": framework}, **spec}
        made["spec"]["parameterServers"] = {"template": pods(cpu="1")}
        self.uid = self.submit(made)

    def hold(self, held: Allocation) -> None:
        """Begin a slot with this plan, and carry it out."""
        self.given.held = held
        self.step()

    def settle(self) -> None:
        super().settle()
        while self.ending:
            self.pods = {name: pod for name, pod in self.pods.items() if name not in self.ending}
            self.ending = []
            super().settle()

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Delete):
            self.ending.append(action.pod["metadata"]["name"])
            self.stuck.add(self.ending[-1])
        if isinstance(action, Create):
            assert action.body["metadata"]["name"] not in self.pods, (
                "409: a pod of that name is there"
            )
        if isinstance(action, Open):
            assert self.services, "before the Service is there, no name resolves"
            self.opened_beside.append(set(self.pods))
        super()._carry_out(action)

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


def random_plan(draw: random.Random) -> Allocation:
    workers = {n: draw.choice((0, 0, 1, 2, 3)) for n in "abc"}
    servers = draw.choice(({}, {"p": 1}, {"p": 1}, {"p": 1}, {"q": 1}, {"p": 2}))
    servers = servers if sum(servers.values()) <= sum(workers.values()) else {"p": 1}
    return plan(**workers, **servers) if any(workers.values()) else plan()


def by_node(held: Allocation, task: str) -> Counter[str]:
    tasks = held.workers if task == "worker" else held.ps
    return Counter({list(GROUPS_OF)[k]: n for k, n in tasks})


@pytest.mark.parametrize("seed", range(30))
def test_over_any_plans_indices_are_those_of_the_rule(seed: int) -> None:
    draw = random.Random(seed)
    elastic = seed % 2 == 0
    played = OneGang(resizePolicy="elastic" if elastic else "restart")
    before, held = plan(), plan()
    for _ in range(12):
        before, held = held, random_plan(draw)
        old, uids, there = played.indices(), played.uids(), set(played.pods)
        changed = draw.random() < 0.5
        if changed:  # before it is carried out
            played.given.held = held
            played.plan()
            held = random_plan(draw)
        opened = len(played.opened_beside)
        played.hold(held)
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
            beside = played.opened_beside[opened:]
            assert not any(there & pods for pods in beside), "one gang at a time"
            assert sorted(now) == list(range(len(now)))
            continue
        wanted = by_node(held, "worker")
        for name in "abc":
            mine = sorted(k for k, at in old.items() if at == name)
            stays = mine[: wanted[name]]
            assert {k for k in mine if ("worker", k) in kept} == set(stays)
