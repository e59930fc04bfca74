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
from oasis.kubernetes.acting import Action, Delete, Open
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

    def __init__(self, resize: str) -> None:
        self.given, self.ending = Given(), list[str]()
        self.opened_beside: list[set[str]] = []  # the pods that were there when one was opened
        super().__init__(lambda: self.given)
        self.nodes = [node(name, group, 4) for name, group in GROUPS_OF.items()]
        self.restart()
        made = job("bert", slots=1e6, maximum=9)
        made["spec"] |= {"network": {"framework": "none"}, "resizePolicy": resize}
        made["spec"]["parameterServers"] = {"template": pods(cpu="1")}
        self.submit(made)

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
        if isinstance(action, Open):
            self.opened_beside.append(set(self.pods))
        super()._carry_out(action)

    def gang(self) -> dict[tuple[str, int], dict[str, Any]]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for pod in self.pods.values():
            labels, spec = pod["metadata"]["labels"], pod["spec"]
            task, index = labels[names.TASK], int(labels[names.INDEX])
            assert (task, index) not in found, "two pods of one index"
            assert (spec["hostname"], spec["subdomain"]) == (f"bert-{task}-{index}", "bert")
            found[task, index] = pod
        return found


def at(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["annotations"][names.NODE])


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
    draw, elastic = random.Random(seed), seed % 2 == 0
    played = OneGang("elastic" if elastic else "restart")
    before, held = plan(), plan()
    for _ in range(12):
        before, held = held, random_plan(draw)
        old, there, changed = played.gang(), set(played.pods), draw.random() < 0.5
        uids = {pod["metadata"]["uid"] for pod in old.values()}
        if changed:  # before it is carried out
            played.given.held = held
            played.plan()
            held = random_plan(draw)
        opened, played.given.held = len(played.opened_beside), held
        played.step()
        now = played.gang()
        for group in ("worker", "ps"):
            assert by_node(held, group) == Counter(at(p) for (t, _), p in now.items() if t == group)
        workers = sorted(index for task, index in now if task == "worker")
        assert not workers or workers[0] == 0
        kept = {key for key, pod in now.items() if pod["metadata"]["uid"] in uids}
        hosts = ",".join(f"bert-worker-{k}.bert" for k in workers)
        for key in now.keys() - kept if held == before or not elastic else ():
            assert now[key]["metadata"]["annotations"][f"{names.ENV}OASIS_HOSTS"] == hosts
        if changed:
            continue
        if not elastic:
            goes_on = bool(old) and held == before
        else:
            goes_on = bool(old) and by_node(held, "worker")[at(old["worker", 0])] > 0
            goes_on = goes_on and by_node(held, "ps") == by_node(before, "ps")
        if not goes_on:
            assert not kept
            beside = played.opened_beside[opened:]
            assert not any(there & pods for pods in beside), "one gang at a time"
            assert workers == list(range(len(workers)))
            continue
        for name in "abc":
            mine = sorted(k for (task, k), p in old.items() if (task, at(p)) == ("worker", name))
            stay = {k for k in mine if ("worker", k) in kept}
            assert stay == set(mine[: by_node(held, "worker")[name]])
