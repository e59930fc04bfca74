"""Jobs of every shape, and specs, owners and clusters drawn at random, under every policy: none of
them ends the controller or stops another job, no error is ours, and in the end all is done."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.acting import Create, Open
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.node_affinity import NodeRules
from tests.unit.kubernetes.played import Played, foreign, job, job_of, merged, node, policy, rigid
from tests.unit.kubernetes.test_objects import places

ROWS = yaml.safe_load(Path(__file__).with_name("shapes.yaml").read_text(encoding="utf-8"))
SHAPES: dict[str, dict[str, Any]] = ROWS["shapes"]


def shape(name: str) -> dict[str, Any]:
    made = job("odd")
    made["spec"] = merged(ROWS["base"], SHAPES[name]["spec"])
    return made


def with_ps(**workers: Any) -> dict[str, Any]:
    made = job("odd", **workers)
    made["spec"] = merged(made["spec"], ROWS["with parameter servers"])
    return made


ELSEWHERE = {"Completed", "Rejected", "GivenUp", "Pending", "Waiting", "Running"}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("which", SHAPES)
def test_a_job_of_any_shape_is_served_or_told_why_not(which: str, name: str) -> None:
    wanted = SHAPES[which]["phase"]
    played = Played(policy(name))
    other = played.submit(job("other", minimum=2, initial=2, maximum=2, slots=4.0))
    odd = played.submit(shape(which))
    played.run(18)  # some policies give an ordinary job one worker, and keep it there
    phase = played.phase(odd)
    if wanted is None:
        assert phase in ELSEWHERE
    else:
        assert phase == wanted, played.status(odd)
    if which != "work without end":
        assert played.phase(other) == "Completed"
        assert not played.pods
    if "parameterServers" not in played.jobs[odd]["spec"]:
        assert played.seen_ps == 0, "without a template there are none"
    for error in ("planning", "acting on", "following", "telling of", "reading"):
        assert played.measured("oasis_job_errors_total", doing=error) == 0
    assert played.measured("oasis_policy_errors_total") == 0


VALUES, PARTS, IN_PODS = (ROWS["random"][key] for key in ("values", "parts", "in pods"))
TROUBLES = ("gone", "Failed", "Succeeded", "ends", "unbound")


def drawn(draw: random.Random) -> dict[str, Any]:
    """An OasisJob of which up to three things are wrong, or only odd."""
    made = shape(draw.choice([name for name in SHAPES if "far more" not in name]))
    spec = made["spec"]
    spec |= {k: copy.deepcopy(v) for k, v in PARTS.items() if draw.random() < 0.15}
    template = spec["workers"]["template"]
    if draw.random() < 0.4:
        template["metadata"] = {"labels": {"a": "b"}, "annotations": {"q": "1"}}
    template["spec"] |= {k: copy.deepcopy(v) for k, v in IN_PODS.items() if draw.random() < 0.12}
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        *above, last = draw.choice(list(places(spec)))
        owner = spec
        for key in above:
            owner = owner[key]
        if draw.random() < 0.2:
            del owner[last]
        else:
            owner[last] = copy.deepcopy(draw.choice(VALUES))
    return made


def faults_of_ours(made: Played) -> list[str]:
    """Jobs that failed by an error that is none of their owners."""
    found = [str(made.said(uid, "Valid")) for uid in made.jobs]
    policy_errors = made.measured("oasis_policy_errors_total")
    return [said for said in found if "'Error'" in said] + ["policy"] * bool(policy_errors)


@pytest.mark.parametrize("name", POLICIES)
def test_whatever_an_owner_writes_the_other_jobs_run(name: str) -> None:
    draw = random.Random(name)
    made = Played(policy(name))
    other = made.submit(rigid("other", 2, 2))
    odd = made.submit(drawn(draw))
    made.run(2)
    made.edit(odd, **drawn(draw)["spec"])
    made.run(1)
    made.restart()
    made.run(3)
    assert not faults_of_ours(made), made.jobs[odd]["spec"]
    assert made.phase(other) == "Completed", made.jobs[odd]["spec"]


class Disturbed(Played):
    """A cluster on which owners, nodes and pods do something at any moment."""

    def __init__(self, name: str, draw: random.Random) -> None:
        self.draw, self.pending, self.count = draw, False, 0
        super().__init__(policy(name))
        self.all_nodes = list(self.nodes)

    def refuses(self, action: Any) -> str | None:
        """Return why a write is refused: its object is gone, or its pod exists already."""
        if self.pending and self.draw.random() < 0.5:
            self.pending = False
            self.happen()
        there = {each["metadata"]["name"]: each for each in self.nodes}
        pod = getattr(action, "pod", None)
        is_gone = action.job not in self.jobs
        if isinstance(action, Create):
            is_gone |= action.body["metadata"]["name"] in self.pods
        elif pod is not None:
            is_gone |= pod["metadata"]["name"] not in self.pods
        if isinstance(action, Open) and not is_gone:
            at = there.get(pod["metadata"]["annotations"][names.NODE])
            is_gone = at is None or NodeRules.of(pod["spec"]).refusal(at) is not None
        return "gone" if is_gone else None

    def happen(self) -> None:
        what = [self.come, self.come, self.leave, self.change, self.lose, self.crowd, self.trouble]
        self.draw.choice(what)()

    def come(self) -> None:
        self.count += 1
        few = self.draw.randint(1, 4)
        made = job("x", float(self.draw.randint(1, 12)), minimum=few, maximum=few + 2)
        if self.draw.random() < 0.3:
            made = with_ps(minimum=few, initial=few, maximum=few)
        made["metadata"]["name"] = f"j{self.count}"
        made["spec"] |= {
            k: PARTS[k] for k in ("resizePolicy", "network") if self.draw.random() < 0.3
        }
        self.submit(made)

    def leave(self) -> None:
        if self.jobs:
            self.delete(self.draw.choice(list(self.jobs)))

    def change(self) -> None:
        if self.jobs:
            seconds = self.draw.choice((1e-3, 60, 600, -1))
            self.edit(self.draw.choice(list(self.jobs)), work={"workerSeconds": seconds})

    def lose(self) -> None:
        first, *others = self.all_nodes
        self.nodes = [first] + [each for each in others if self.draw.random() < 0.8]
        there = {None, *(each["metadata"]["name"] for each in self.nodes)}
        self.pods = {k: p for k, p in self.pods.items() if p["spec"].get("nodeName") in there}

    def crowd(self) -> None:
        gpus, at = str(self.draw.randint(1, 4)), self.draw.choice(("n0", "n1"))
        self.pods.pop("other", None)
        if self.draw.random() < 0.6:
            self.pods["other"] = foreign("other", at, gpu=gpus)
            self.pods["other"]["metadata"]["uid"] = f"other-{self.count}"

    def trouble(self) -> None:
        if not self.pods:
            return
        name = self.draw.choice(sorted(self.pods))
        pod, kind = self.pods.pop(name), self.draw.choice(TROUBLES)
        if kind == "ends":
            end = {"deletionTimestamp": time_text(self.now())}
            self.pods[name] = {**pod, "metadata": {**pod["metadata"], **end}}
        elif kind == "unbound" and pod["spec"].get("nodeName"):
            spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
            lacking = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [lacking]}
            self.pods[name] = {**pod, "spec": spec, "status": status}
        elif kind != "gone":
            self.pods[name] = {**pod, "status": {"phase": kind}}

    def forget_ended(self) -> None:
        self.pods = {k: p for k, p in self.pods.items() if "deletionTimestamp" not in p["metadata"]}


SOME = ("fifo", "las", "dorm", "dragon")
OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in POLICIES if name not in SOME]


@pytest.mark.parametrize("name", [*SOME, *OTHERS])
def test_whatever_happens_at_whatever_moment_all_is_done_in_the_end(name: str) -> None:
    draw = random.Random(name)
    made = Disturbed(name, draw)
    for _ in range(12):
        for _ in range(draw.randint(0, 2)):
            made.happen()
        made.slot += draw.choice((1, 1, 1, 2, 7))
        made.reconciler.plan_if_due(made.now(), made.seen)
        if draw.random() < 0.4:
            made.happen()  # between the decision and what follows from it
        made.pending = draw.random() < 0.5  # and while that is carried out
        made.settle()
        if draw.random() < 0.1:
            made.restart()
        if draw.random() < 0.7:
            made.forget_ended()
    made.nodes, made.pending = [*made.all_nodes, node("n2", "worker", 4)], False
    made.pods.pop("other", None)
    for _ in range(45):
        made.step()
        made.forget_ended()
    assert not faults_of_ours(made)
    for uid in made.jobs:
        over = {"Completed", "Rejected", "GivenUp", "Failed", "Invalid"}
        assert made.phase(uid) in over, (made.status(uid), made.jobs[uid]["spec"])
    assert not any(job_of(pod) for pod in made.pods.values())
