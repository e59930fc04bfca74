"""Pods that are refused, or that never run: others get their room, and little is said."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from experiments.evaluation.live import cluster_policy
from oasis.kubernetes.acting import Create, action_word
from oasis.kubernetes.api.connection import ApiError, LostAnswerError
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.patience import with_at_most
from oasis.kubernetes.objects.oasis_job import parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.unit.kubernetes.fake_api import FakeConnection, status_writer, writer
from tests.unit.kubernetes.played import (
    LOOKAHEAD,
    SLOT,
    Played,
    job,
    job_of,
    node,
    past,
    policy,
    rigid,
)
from tests.unit.kubernetes.test_random_jobs import with_ps


def test_what_is_refused_is_tried_less_and_less_often() -> None:
    played = Played(policy("fifo"))
    played.refuses = lambda _: "403"  # type: ignore[method-assign]
    played.submit(rigid("bad", 1, 4))
    played.slot = 0
    played.reconciler.plan_if_due(played.now(), played.seen)
    played.settle()
    asked = []
    for tick in range(120):  # a minute in turns of half a second
        now = played.now() + tick / 2
        actions = played.reconciler.steps(played.seen(), now).actions
        asked += [tick / 2] * bool(actions)
        failed = [(a.job, action_word(a), "403") for a in actions]
        played.reconciler.did(actions, failed, now)
    assert asked == [1.0, 3.0, 7.0, 15.0, 31.0]


@pytest.mark.parametrize("most", [1, 3, 8, 20])
def test_fewer_workers_do_the_same_work(most: int) -> None:
    played = Played(policy("fifo"))
    made = with_ps(minimum=2, initial=6)
    made["metadata"] |= {"uid": "u", "generation": 1}
    made["spec"]["forms"] = [{"workers": {"minimum": 4}}, {"work": {"workerSeconds": 60.0}}]
    spec = parse_job(made, played.reconciler.clock, DEFAULT_RESOURCES)
    fewer = with_at_most(spec, most)
    for one, other in ((spec.job, fewer.job), *zip(spec.job.forms, fewer.job.forms, strict=True)):
        assert other.chunks == max(one.min_workers, min(most, one.chunks))
        assert other.chunks * other.minibatch_time == pytest.approx(one.chunks * one.minibatch_time)
    assert fewer.initial_workers == min(6, max(2, most))


def test_a_status_that_is_refused_is_written_less_and_less_often_and_the_older_kind_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moment, strict, metrics = [0.0], FakeConnection(), Metrics()
    monkeypatch.setattr(time, "monotonic", lambda: moment[0])
    clerk, jobs = writer(strict, metrics), [status_writer(name) for name in "jk"]

    def written(ticks: int, why: Exception | None = None) -> tuple[int, bool]:
        """How often it is asked in these turns, and whether all is written."""
        strict.asked, strict.refuses = [], lambda *_: why
        for _ in range(ticks):
            clerk.write_statuses(jobs)
            moment[0] += 0.5
        return len(strict.asked), all(job.written == job.status for job in jobs)

    assert written(2, LostAnswerError("PATCH", "/", "reset")) == (4, False), "at once again"
    assert caplog.messages == ["PATCH /: no answer: reset; tried again"]
    caplog.clear()
    why = "(ns/j, Kind=OasisJob): .status.resizes: field not declared in schema"
    old = ApiError("PATCH", "/", 500, "", f"failed to create typed patch object {why}")
    assert written(120, old) == (2 * 6, False), "after 0, 1, 3, 7, 15 and 31 s"
    (said,) = caplog.messages
    assert "; the kind there is of an older version: `oasis kubernetes install" in said
    assert written(8) == (2, True), "and is written once it can be"
    assert written(8) == (0, True), "nothing is new"
    bug, jobs[1].status["phase"], jobs[0].status["phase"] = jobs[0].body, "Running", "Running"
    jobs[0].body = None  # type: ignore[assignment, method-assign]
    assert written(1) == (1, False)
    assert jobs[1].written == jobs[1].status, "that of another is written"
    assert metrics.registry.get_sample_value("oasis_job_errors_total", {"doing": "telling"}) == 1
    jobs[0].body = bug  # type: ignore[method-assign]
    assert written(1) == (1, True)
    clerk.close()


@pytest.mark.parametrize(("name", "seed"), [("fifo", k) for k in range(5)] + [("recourse", 0)])
def test_no_job_waits_for_ever_while_a_node_that_takes_its_pods_has_room(
    name: str, seed: int
) -> None:
    """Each job may go to some nodes alone, which nothing that is planned from says."""
    draw = random.Random(seed)
    made, takes = Played(policy(name)), {}
    made.nodes = [*(node(f"n{k}", "worker", 4) for k in range(5)), node("p0", "ps", 0)]
    made.restart()
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


@pytest.mark.parametrize(
    ("answer", "is_refused"),
    [
        (None, False),
        (ApiError("POST", "/", 403, "Forbidden", "exceeded quota"), True),
        (ApiError("POST", "/", 400, "BadRequest", "admission webhook denied the request"), True),
        (ApiError("POST", "/", 400, "BadRequest", "webhook x does not support dry run"), False),
        (LostAnswerError("POST", "/", "timed out"), False),
    ],
)
def test_only_a_refusal_of_the_pod_itself_is_one(answer: Any, is_refused: bool) -> None:
    connection = FakeConnection()
    connection.refuses = lambda *_: answer
    clerk = writer(connection)
    tried = clerk.try_out([Create("j", {"metadata": {"name": "j-try", "namespace": "ns"}})])
    clerk.close()
    assert bool(tried) == is_refused
    assert [method for method, _ in connection.asked] == ["POST"]
    assert not connection.objects, "in a dry run"


# -- at random: no GPU is idle for long beside what is refused -------------------------------------


TIMEOUT = 2 * SLOT
GPUS = 8
REFUSALS = 200
OVER = {"Completed", "Failed"}


class Refused(Played):
    """Jobs of 1 to 4 GPUs; causes come and go, each of one job for some slots."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.barred: dict[str, tuple[str, int]] = {}  # uid: why, and until which slot
        self.refused = 0
        options = {"rounds": 1} if name == "recourse" else {}
        made = cluster_policy(name, options, lookahead=LOOKAHEAD, bounds=past)
        super().__init__(made, pods_ready_timeout=TIMEOUT)
        self.opens = lambda pod: self.why(job_of(pod)) != "image"

    def why(self, uid: str) -> str:
        cause, until = self.barred.get(uid, ("", 0))
        return cause if self.slot < until else ""

    def refuses(self, action: Any) -> str | None:
        is_refused = isinstance(action, Create) and self.why(action.job) == "quota"
        return "create: 403 exceeded quota" if is_refused else None

    def bar(self) -> None:
        uids = [uid for uid in self.jobs if self.phase(uid) not in OVER]
        if uids:
            cause, uid = self.rng.choice(("quota", "quota", "image")), self.rng.choice(uids)
            self.refused += 1
            self.barred[uid] = cause, self.slot + self.rng.randint(2, 12)
            if cause == "image":  # its pods end, and the new ones do not run
                self.pods = {n: pod for n, pod in self.pods.items() if job_of(pod) != uid}

    def held(self) -> dict[str, int]:
        live = self.reconciler.driver.by_uid
        return {uid: entry.allocation.worker_count for uid, entry in live.items()}


@pytest.mark.parametrize("name", ["fifo", "recourse", "oasis"])
def test_no_gpu_is_idle_longer_than_the_timeout_and_a_slot(name: str) -> None:
    played, k, free = Refused(name, 1), 0, 0
    idle: dict[str, int] = {}  # slots in a row for which a job holds GPUs without running on all
    while played.refused < REFUSALS:
        # There is always a job of one GPU that waits and that nothing stands in the way of.
        held = played.held()
        waiting = [uid for uid in played.jobs if not held.get(uid) and not played.why(uid)]
        for _ in range(max(0, 6 - sum(played.phase(uid) not in OVER for uid in waiting))):
            k += 1
            # Under strict FIFO a large job at the head blocks those behind it, refused or not.
            most = 1 if name == "fifo" else played.rng.choice((1, 1, 2, 4))
            made = job(f"j{k}", slots=most * played.rng.randint(2, 6), minimum=1, maximum=most)
            played.submit(made)
        played.bar()
        played.bar()
        played.step()
        held = played.held()
        short = {uid for uid, count in held.items() if played.workers(uid) < count}
        idle = {uid: idle.get(uid, 0) + 1 for uid in short}
        assert max(idle.values(), default=0) <= TIMEOUT / SLOT + 1, f"slot {played.slot}: {idle}"
        free = free + 1 if sum(held.values()) < GPUS else 0
        # OASiS rations: what no job pays for may stay free.
        assert free <= TIMEOUT / SLOT + 1 or name == "oasis", f"slot {played.slot}: {held}"
    assert sum(played.phase(uid) == "Completed" for uid in played.jobs) > 20
