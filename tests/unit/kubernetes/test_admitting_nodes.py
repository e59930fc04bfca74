"""What the plan places is what the scheduler admits; what no node admits waits and says why."""

from __future__ import annotations

import random
from typing import Any

import pytest

from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.acting import Create
from oasis.kubernetes.objects.node_affinity import REQUIRED, NodeRules
from tests.unit.kubernetes.played import GPU, SLOT, Played, job, node, pods
from tests.unit.kubernetes.test_jobs_of_any_shape import policy
from tests.unit.kubernetes.test_node_affinity import KEYS, NODES, template


def on(name: str, gpus: int = 4, *taints: str, **labels: str) -> dict[str, Any]:
    """A node for workers with these labels and taints, each taint as key:effect."""
    made = node(name, "worker", gpus)
    made["metadata"]["labels"] |= labels
    made["spec"]["taints"] = [
        dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints
    ]
    return made


def asking(name: str, workers: int, slots: int, **spec: Any) -> dict[str, Any]:
    """A job of this many workers for this many slots; `spec` is that of its pods."""
    template = pods(cpu="1", gpu="1")
    template["spec"] |= spec
    counts = {"minimum": workers, "maximum": workers, "template": template}
    return job(name, slots=float(workers * slots), **counts)


def played(name: str, *nodes: dict[str, Any]) -> Played:
    made = Played(policy(name))
    change(made, *nodes)
    made.restart()
    return made


def change(made: Played, *nodes: dict[str, Any]) -> None:
    """The nodes are these now, and one for parameter servers."""
    made.nodes = [*nodes, node("p0", "ps", 0)]


def places(made: Played, uid: str) -> dict[str, int]:
    """Running workers of a job by node."""
    found: dict[str, int] = {}
    for pod in made.pods.values():
        if pod["metadata"]["labels"][names.JOB_UID] == uid and "nodeName" in pod["spec"]:
            found[pod["spec"]["nodeName"]] = found.get(pod["spec"]["nodeName"], 0) + 1
    return found


KINDS = (on("n0", 4, gpu="t4"), on("n1", 4, gpu="h100"), on("n2", 4, "team:NoSchedule", gpu="a100"))


def test_no_gate_is_opened_towards_a_node_that_was_tainted_since(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its gang waits for the next slot instead of being withdrawn."""
    made = played("fifo", on("n0", 4, gpu="h100"), on("n1", 4, gpu="t4"))
    uid = made.submit(asking("j", 2, 2, nodeSelector={"gpu": "h100"}))
    made.slot += 1
    made.reconciler.begin_slot_if_due(made.now(), made.seen())
    for action in made.reconciler.steps(made.seen(), made.now()).actions:
        assert isinstance(action, Create)
        made._carry_out(action)
    change(made, on("n0", 4, "new:NoSchedule", gpu="h100"), on("n1", 4, gpu="h100"))
    steps = made.reconciler.steps(made.seen(), made.now())
    assert (steps.actions, steps.withdrawn) == ([], set())
    assert steps.refused[uid][2] == "taint new:NoSchedule is not tolerated"
    assert "NotAdmitted" in caplog.text or made.reconciler.statuses[uid].news
    made.run(1)
    assert places(made, uid) == {"n1": 2}
    assert made.measured("oasis_gangs_withdrawn_total") == 0


def test_what_is_added_to_the_pods_of_others_is_learned_from_them() -> None:
    """A webhook may let them ask for what no template says."""
    made = played("fifo", *KINDS)
    uid = made.submit(asking("j", 1, 2))
    made.slot += 1
    made.reconciler.begin_slot_if_due(made.now(), made.seen())
    for action in made.reconciler.steps(made.seen(), made.now()).actions:
        made._carry_out(action)
    (at,) = {pod["metadata"]["annotations"][names.NODE] for pod in made.pods.values()}
    other = {"n0": "h100", "n1": "t4"}[at]
    for pod in made.pods.values():
        pod["spec"]["nodeSelector"] = {"gpu": other}
    assert uid in made.reconciler.steps(made.seen(), made.now()).refused
    made.slot += 1
    made.reconciler.begin_slot_if_due(made.now(), made.seen())
    entry = made.reconciler.driver.by_uid[uid]
    assert entry.spec.job.requires == {names.NODE: ("n1" if at == "n0" else "n0",)}


@pytest.mark.parametrize("name", POLICIES)
def test_the_form_that_is_chosen_decides_the_pods(name: str) -> None:
    """Half as many GPUs for a worker on the fast nodes, and half of the time."""
    made = played(name, KINDS[0], on("n1", 4, gpu="h100"))
    body = asking("j", 2, 4)
    two = {"requests": {"cpu": "1", GPU: "2"}}
    seconds = 2 * SLOT * 2
    body["spec"]["forms"] = [
        {
            "requires": {"gpu": ["h100"]},
            "workers": {"resources": two},
            "work": {"workerSeconds": seconds},
        },
        {"requires": {"gpu": ["t4"]}},
    ]
    first, second = (
        made.submit(body),
        made.submit({**body, "metadata": {"name": "k", "namespace": "ns"}}),
    )
    made.run(1)
    forms = {uid: made.status(uid)["form"] for uid in (first, second) if places(made, uid)}
    for uid, form in forms.items():
        assert places(made, uid) == {("n1", "n0")[form]: 2}
    if name not in ("oasis", "recourse"):  # they weigh costs; to the others, the first that fits
        assert sorted(forms.values()) == [0, 1]
    for pod in made.pods.values():
        at = pod["spec"]["nodeName"]
        asked = pod["spec"]["containers"][0]["resources"]["requests"]
        assert asked[GPU] == ("2" if at == "n1" else "1")
        terms = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        kind = "h100" if at == "n1" else "t4"
        assert {"key": "gpu", "operator": "In", "values": [kind]} in terms[0]["matchExpressions"]
    made.restart()
    made.run(4)
    for uid, form in forms.items():
        assert made.phase(uid) == "Completed"
        assert made.status(uid)["completionSlot"] == (1 if form == 0 else 3)


TAINTED = ((), (), ("team:NoSchedule",), ("gpu:NoExecute", "team:PreferNoSchedule"))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "drf", "srtf"])
def test_a_plan_on_nodes_that_stay_as_they_are_is_never_refused(name: str, seed: int) -> None:
    """`Played` refuses to open a gate where the scheduler would not admit the pod."""
    draw = random.Random(seed)
    nodes = [on(each, 4, *draw.choice(TAINTED)) for each in NODES]
    for each in nodes:
        drawn = {key: draw.choice(values) for key, values in KEYS.items() if draw.random() < 0.8}
        each["metadata"]["labels"] |= drawn
    made = played(name, *nodes)
    bodies = [asking(f"j{k}", draw.randint(1, 6), 2, **template(draw)) for k in range(8)]
    rules = [NodeRules.of(body["spec"]["workers"]["template"]["spec"]) for body in bodies]
    admitting = [sum(each.refusal(one) is None for one in nodes) for each in rules]
    uids = [made.submit(body) for body in bodies]
    for _ in range(12):
        made.run(1)
        assert not made.reconciler.steps(made.seen(), made.now()).refused
    for uid, count, body in zip(uids, admitting, bodies, strict=True):
        if not count:
            assert made.said(uid, "Placed")[1] == "NoNode"
        fits = body["spec"]["workers"]["minimum"] <= 4 * count
        assert (made.phase(uid) == "Completed") == fits
    assert made.measured("oasis_gangs_withdrawn_total") == 0
