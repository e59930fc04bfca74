"""What the cluster refuses is learnt: it is left out for some slots, and no job waits for ever."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oasis.kubernetes.acting import Create
from oasis.kubernetes.api.connection import ApiError, LostAnswerError
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.node_affinity import REQUIRED, left_to_scheduler
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.played import SLOT, Played, job, job_of, node
from tests.unit.kubernetes.test_errors_of_one_job import rigid
from tests.unit.kubernetes.test_jobs_of_any_shape import policy

SOME = pytest.mark.parametrize("name", ["fifo", "oasis", "recourse", "las"])


def played(name: str, nodes: int = 2) -> Played:
    made = Played(policy(name))
    made.nodes = [*(node(f"n{k}", "worker", 4) for k in range(nodes)), node("p0", "ps", 0)]
    made.restart()
    return made


@SOME
def test_jobs_that_are_refused_idle_no_gpu(name: str) -> None:
    made = played(name)
    bad = [made.submit(rigid(f"bad{k}", 8, 4)) for k in range(3)]
    good = made.submit(rigid("good", 8, 4))
    made.refuses = lambda action: (  # type: ignore[method-assign]
        "create: 403 exceeded quota" if isinstance(action, Create) and action.job in bad else None
    )
    made.run(5)
    assert made.phase(good) == "Completed"
    assert made.status(good)["completionSlot"] == 3


@SOME
@pytest.mark.parametrize("workers", [1, 4])
def test_a_node_to_which_the_scheduler_lets_no_pod_is_left_out(name: str, workers: int) -> None:
    """As with anti-affinity, a host port or a volume, of which the plan knows nothing."""
    made = played(name)
    made.binds = lambda pod, host: host != "n0"
    uid = made.submit(rigid("j", workers, 3))
    made.run(5)
    assert made.phase(uid) == "Completed", made.status(uid)
    withdrawn = made.measured("oasis_gangs_withdrawn_total")
    assert withdrawn <= 1, "while it runs elsewhere it is not tried there again"


def test_what_the_scheduler_says_is_told_and_outlives_the_controller() -> None:
    made = played("fifo", nodes=1)
    made.binds = lambda pod, host: False
    uid = made.submit(rigid("j", 1, 3))
    made.run(1)
    said = ("False", "Withdrawn", "the scheduler lets it not go to node n0: taken")
    assert made.said(uid, "Placed") == said
    made.run(1)
    waits = ("False", "NoNode", "no node admits its workers: taken (1 node)")
    assert made.said(uid, "Placed") == waits
    made.run(1)  # in which it is tried again
    made.restart()
    made.run(2)
    assert made.said(uid, "Placed") == waits, "twice as long as the first time"


def test_where_some_of_a_gang_run_its_node_is_not_left_out() -> None:
    """One worker a node, say, and the plan has two on one: that is no reason to move the first."""
    made = played("drf", nodes=1)
    made.binds = lambda pod, host: all(
        "nodeName" not in each["spec"] for each in made.pods.values()
    )
    uid = made.submit(job("j", slots=6.0, minimum=1, maximum=2))
    made.run(5)
    assert made.workers(uid) == 1
    assert made.status(uid)["progress"]["workerSeconds"] >= 4 * SLOT


@pytest.mark.parametrize(("name", "seed"), [("fifo", k) for k in range(5)] + [("recourse", 0)])
def test_no_job_waits_for_ever_while_a_node_that_takes_its_pods_has_room(
    name: str, seed: int
) -> None:
    """Each job may go to some nodes alone, which nothing that is planned from says."""
    draw = random.Random(seed)
    made, takes = played(name, nodes=5), {}
    until: dict[str, int] = {}  # from which slot on the API server takes the pods of a job
    made.binds = lambda pod, host: host in takes[job_of(pod)]
    made.refuses = lambda action: (  # type: ignore[method-assign]
        "create: 422 denied"
        if isinstance(action, Create) and made.slot < until[action.job]
        else None
    )
    for k in range(8):
        uid = made.submit(rigid(f"j{k}", draw.randint(1, 3), 2))
        takes[uid] = draw.sample([f"n{i}" for i in range(5)], draw.randint(1, 3))
        until[uid] = draw.choice((0, 0, 0, 5))
    for _ in range(90):
        made.step()
        if all(made.phase(uid) == "Completed" for uid in takes):
            break
    else:
        raise AssertionError({uid: made.said(uid, "Placed") for uid in takes})


LEFT: dict[str, dict[str, Any]] = {
    "priorityClassName": {"priorityClassName": "high"},
    "schedulerName": {"schedulerName": "mine"},
    "affinity.podAffinity": {"affinity": {"podAffinity": {REQUIRED: [{}]}}},
    "affinity.podAntiAffinity": {"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}},
    "topologySpreadConstraints": {"topologySpreadConstraints": [{"topologyKey": "a"}]},
    "volumes[1].ephemeral": {"volumes": [{"name": "a", "emptyDir": {}}, {"ephemeral": {"x": 1}}]},
    "volumes[0].persistentVolumeClaim": {"volumes": [{"persistentVolumeClaim": {"x": 1}}]},
    "containers[0].ports": {"containers": [{"ports": [{"hostPort": 80}]}]},
}
QUIET: tuple[dict[str, Any], ...] = (
    {"schedulerName": "default-scheduler"},
    {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
    {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"volumes": [{"name": "a", "emptyDir": {}}], "hostNetwork": False, "priorityClassName": ""},
    {"containers": [{"ports": [{"containerPort": 80}]}]},
)


def test_what_is_left_to_the_scheduler_is_named_and_nothing_else() -> None:
    for name, spec in LEFT.items():
        assert left_to_scheduler(spec) == (name,)
    for spec in QUIET:
        assert left_to_scheduler(spec) == ()
    made = played("fifo")
    body = rigid("j", 2, 2)
    body["spec"]["workers"]["template"]["spec"] |= LEFT["affinity.podAffinity"]
    uid = made.submit(body)
    made.run(1)
    message = "left to the scheduler of the cluster, and not seen by the plan: affinity.podAffinity"
    said = ("True", "LeftToScheduler", f"{message} of its workers")
    assert made.said(uid, "Unjudged") == said


@pytest.mark.parametrize(
    ("answer", "is_refused"),
    [
        ({}, False),
        (ApiError("POST", "/", 403, "Forbidden", "exceeded quota"), True),
        (ApiError("POST", "/", 400, "BadRequest", "admission webhook denied the request"), True),
        (ApiError("POST", "/", 400, "BadRequest", "webhook x does not support dry run"), False),
        (LostAnswerError("POST", "/", "timed out"), False),
    ],
)
def test_only_a_refusal_of_the_pod_itself_is_one(answer: Any, is_refused: bool) -> None:
    connection, asked = FakeConnection(), []

    def request(method: str, path: str, **given: Any) -> Any:
        asked.append((method, given["query"]["dryRun"]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    connection.request = request  # type: ignore[method-assign]
    writer = ClusterWriter(Objects(connection), ObjectStore(), 1, Metrics())  # type: ignore[arg-type]
    body = {"metadata": {"name": "j-try", "namespace": "ns"}}
    assert bool(writer.try_out([Create("j", "j-try", body)])) == is_refused
    writer.close()
    assert asked == [("POST", "All")]
