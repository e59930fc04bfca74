"""Kueue's Workloads, in memory: read, started, paused, limited by quota, and left alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from baselines import FIFO, SRTF
from oasis.kubernetes import names
from oasis.kubernetes.acting import Action, Switch
from oasis.kubernetes.control.quota import Quota
from oasis.kubernetes.objects.existing import WORKLOAD, job_items, own_uid, parse
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.workload import GATED_BY, OF_POD, WORKLOADS, kept, switching
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.fake_api import writer
from tests.unit.kubernetes.played import CLOCK, GPU, SLOT, Played, merged, node, pods, rigid

GATE = [{"name": names.GATE}]
MARK = {names.PAUSED: "true"}


def template(slots: float, gpus: int = 1) -> dict[str, Any]:
    """Pods that are ours, of a job of so many worker-slots."""
    said = {
        names.UTILITY: '{"kind": "constant", "value": 20}',
        names.WORK: f'{{"workerSeconds": {slots * SLOT}}}',
    }
    spec = {**pods(gpu=str(gpus))["spec"], "schedulingGates": GATE}
    return {"metadata": {"annotations": said}, "spec": spec}


def condition(kind: str, status: bool, reason: str) -> dict[str, Any]:
    return {"type": kind, "status": str(status), "reason": reason, "message": reason.lower()}


def queue(name: str, cohort: str | None = None, **quota: str) -> dict[str, Any]:
    """A ClusterQueue with these quotas of GPUs: nominal, borrowing and lending limits."""
    resource = {"name": GPU, **{f"{key}": value for key, value in quota.items()}}
    flavors = [{"name": "gpu", "resources": [resource]}]
    spec: dict[str, Any] = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}
    spec |= {"cohortName": cohort, "preemption": {"reclaimWithinCohort": "Any"}} if cohort else {}
    return {"metadata": {"name": name}, "spec": spec}


def admission(queue: str, gpus: int) -> dict[str, Any]:
    usage = {GPU: str(gpus), "pods": str(gpus)}  # no flavor covers the second
    use = {"name": "main", "flavors": {GPU: "gpu"}, "resourceUsage": usage}
    return {"clusterQueue": queue, "podSetAssignments": [use]}


def foreign(queue: str, gpus: int) -> dict[str, Any]:
    """A Workload of others, in a namespace that is not watched."""
    meta = {"name": "theirs", "namespace": "elsewhere", "uid": f"theirs-{queue}"}
    spec = {"podSets": [], "queueName": "users"}
    return {"metadata": meta, "spec": spec, "status": {"admission": admission(queue, gpus)}}


class Queued(Played):
    """A cluster with Kueue: users' queue is held, and jobs start in another."""

    def __init__(self, policy: Any, gpus: int = 8) -> None:
        self.work: dict[str, dict[str, Any]] = {}  # what Kueue says of each Job, by its uid
        self.quota, self.taken = gpus, 0  # of which others have so many
        self.wrote: list[tuple[str, dict[str, Any]]] = []
        self.looks = 0  # at a Job that is to be resized
        super().__init__(policy)

    def queue_job(self, name: str, workers: int, slots: float, **said: Any) -> str:
        """A user makes a Job in the held queue."""
        spec = {"suspend": True, "parallelism": workers, "template": template(workers * slots)}
        meta = {"name": name, "namespace": "ns", "uid": name, "annotations": {}, "labels": {}}
        self.batch[name] = {"metadata": {**meta, "resourceVersion": "1"}, "spec": spec}
        self.work[name] = {"queue": "users", "active": True, "notes": {}, "uid": f"w-{name}"} | said
        return name

    def seen(self) -> dict[str, list[Any]]:
        held = {"clusterQueue": "team", "stopPolicy": "Hold"}
        notes = {names.STARTS_IN: "running"}
        users = {"metadata": {"name": "users", "namespace": "ns", "annotations": notes}}
        running = {"metadata": {"name": "running", "namespace": "ns"}}
        local = [{**users, "spec": held}, {**running, "spec": {"clusterQueue": "team"}}]
        work = [*map(self.workload, self.work), foreign("team", self.taken)]
        return {
            **super().seen(),
            WORKLOADS.plural: [kept(each) for each in work],
            "localqueues": local,
            "clusterqueues": [queue("team", nominalQuota=str(self.quota))],
        }

    def asks(self, name: str) -> int:
        return int(self.batch[name]["spec"]["parallelism"])

    def workload(self, name: str) -> dict[str, Any]:
        """As the API server has it."""
        job, said = self.batch[name], self.work[name]
        status_of = job["metadata"]["annotations"].get(names.STATUS)
        notes = {**said["notes"], **({names.STATUS: status_of} if status_of else {})}
        has = bool(said.get("quota"))
        conditions = [condition("QuotaReserved", has, "QuotaReserved" if has else "Pending")]
        conditions += said.get("conditions", [])
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name}
        meta = {"name": f"job-{name}", "namespace": "ns", "uid": said["uid"], "annotations": notes}
        meta |= {"ownerReferences": [owner], "creationTimestamp": "2026-01-01T00:00:00Z"}
        part = {"name": "main", "count": self.asks(name), "template": job["spec"]["template"]}
        spec = {"podSets": [part], "queueName": said["queue"], "active": said["active"]}
        return {
            "metadata": meta,
            "spec": spec,
            "status": {
                "conditions": conditions,
                "admission": admission("team", self.asks(name)) if has else None,
            },
        }

    def _carry_out(self, action: Action) -> None:
        if not isinstance(action, Switch):
            return super()._carry_out(action)
        if action.workers is not None:
            failures = writer(self).do([action])
            for uid, _, why in failures:
                assert isinstance(why, Exception)
                self.reconciler.reader.fail(uid, why, "acting on", self.now())
            return self.kueue()
        where, body = switching(action.found, action.suspend)
        self.wrote.append((where.plural, body))
        said, meta = self.work[action.job], body["metadata"]
        if where is WORKLOADS:
            assert meta["uid"] == said["uid"], "and no other Workload of its name"
            said["active"] = body["spec"]["active"]
            said["notes"] = {k: v for k, v in meta["annotations"].items() if v is not None}
        else:
            assert (where.path("ns", meta["name"]), meta["uid"]) == (
                f"/apis/batch/v1/namespaces/ns/jobs/{action.job}",
                action.job,
            )
            said["queue"] = meta.get("labels", {}).get(names.QUEUE, said["queue"])
            said["notes"] |= {k: v for k, v in meta.get("annotations", {}).items() if v}
        self.kueue()
        return None

    def request(self, method: str, path: str, *, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        """As the API server answers a merge patch of a Job."""
        name = body["metadata"]["uid"]
        assert (method, path) == ("PATCH", f"/apis/batch/v1/namespaces/ns/jobs/{name}")
        self.batch[name] = merged(self.batch[name], body)
        self.wrote += [("jobs", body["spec"])] if "spec" in body else []
        self.looks += 1
        stopped = condition("Suspended", self.looks > 2, "JobSuspended")
        return {**self.batch[name], "status": {"conditions": [stopped]}}

    def finish(self, name: str) -> None:
        """The job ends."""
        self.work[name]["conditions"] = [condition("Finished", True, "Succeeded")]
        self.work[name]["over"] = True
        self.kueue()

    def kueue(self) -> None:
        """Kueue lets run what is active, in no held queue, and has quota."""
        left = self.quota - self.taken
        for name, said in self.work.items():
            may = said["active"] and said["queue"] == "running" and not said["notes"].get(GATED_BY)
            said["quota"] = may and not said.get("over") and self.asks(name) <= left
            left -= self.asks(name) * said["quota"]
            self.batch[name]["spec"]["suspend"] = not said["quota"]
            self._follow_batch(name)
        for pod in self.pods.values():
            pod["metadata"]["annotations"][OF_POD] = f"job-{owner(pod)}"
            pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "main"


def owner(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["uid"])


def test_a_job_starts_from_the_held_queue_makes_way_and_goes_on() -> None:
    played = Queued(SRTF)
    long = played.queue_job("long", 8, 6)
    played.run(2)
    assert (played.workers(long), played.phase(long)) == (8, "Running")
    admitted = played.said(long, "Admitted")
    assert admitted is not None
    assert admitted[2].endswith("as far as quota allows")
    short = played.queue_job("short", 4, 1)
    played.run(1)
    assert (played.workers(long), played.workers(short)) == (0, 4)
    assert not played.work[long]["active"]
    assert played.work[long]["notes"] == MARK
    played.finish(short)
    played.run(2)
    assert played.phase(short) == "Completed"
    assert played.workers(long) == 8
    assert played.work[long]["notes"] == {}
    moved = {"name": "long", "uid": "long", "namespace": "ns", "labels": {names.QUEUE: "running"}}
    assert [where for where, _ in played.wrote if where == "jobs"] == ["jobs"] * 2, "a start each"
    assert played.wrote[0] == ("jobs", {"metadata": moved})
    played.finish(long)
    played.run(1)
    assert played.phase(long) == "Completed"
    assert played.work[long]["active"], "what has ended is not switched"


def test_our_name_is_taken_off_the_admission_gate_and_others_stay() -> None:
    played = Queued(FIFO)
    name = played.queue_job("one", 2, 2, queue="running")
    played.work[name]["notes"] = {GATED_BY: f"them.io/gate,{names.GATE}"}
    played.step()
    ((_, body),) = played.wrote
    assert body["metadata"]["annotations"] == {GATED_BY: "them.io/gate"}
    alone = {"spec": {"active": True, "target": None, "gates": [], "owner": {}}}
    alone["spec"]["owner"] = {"apiVersion": "a/v1", "kind": "Ray", "name": "r", "uid": "u"}
    where, body = switching({"metadata": {"namespace": "ns"}, **alone}, suspend=False)
    assert (where.path("ns", "r"), body["metadata"]["annotations"]) == (
        "/apis/a/v1/namespaces/ns/rays/r",
        {GATED_BY: None},
    )


def test_a_deactivation_by_others_is_not_overturned() -> None:
    played = Queued(FIFO)
    name = played.queue_job("one", 2, 8)
    played.run(3)
    done = played.status(name)["progress"]["workerSeconds"]
    arrived = played.status(name)["arrivalSlot"]
    played.work[name]["active"] = False
    played.kueue()
    played.settle()
    assert played.workers(name) == 0
    played.run(2)
    assert not played.work[name]["active"]
    reason, message = played.placed(name)
    assert (reason, played.phase(name)) == ("LeftAlone", "Waiting")
    assert "a person or Kueue has deactivated it" in message
    played.work[name]["active"] = True
    played.kueue()
    played.run(2)
    assert played.workers(name) == 2
    assert played.status(name)["arrivalSlot"] == arrived
    assert played.status(name)["progress"]["workerSeconds"] >= done


def test_a_workload_that_another_activates_is_left_to_it() -> None:
    played = Queued(FIFO, gpus=4)
    first = played.queue_job("first", 4, 9)
    played.run(1)
    played.nodes[0]["spec"]["unschedulable"] = played.nodes[1]["spec"]["unschedulable"] = True
    played.run(1)
    assert played.work[first]["notes"] == MARK
    before = len(played.wrote)
    played.work[first]["active"] = True
    played.kueue()
    played.run(3)
    assert len(played.wrote) == before
    assert "another has activated it" in played.placed(first)[1]


def test_a_held_queue_that_names_none_to_start_in_is_waited_for() -> None:
    played = Queued(FIFO)
    name = played.queue_job("one", 2, 8)
    seen = played.seen()
    seen["localqueues"][0]["metadata"].pop("annotations")
    played.seen = lambda: seen  # type: ignore[method-assign]
    played.step()
    assert not played.wrote
    assert "held, without oasis-scheduler.io/starts-in" in played.placed(name)[1]


def test_an_object_with_our_label_in_a_queue_is_left_alone_and_says_so() -> None:
    played = Queued(FIFO)
    name = played.queue_job("both", 2, 8)
    played.batch[name]["metadata"]["labels"] = {names.SCHEDULED: "true", names.QUEUE: "users"}
    played.run(2)
    assert not played.wrote
    assert "its Workload is scheduled here if" in (played.said(name, "Valid") or ("", "", ""))[2]


def test_a_workload_without_sense_does_not_hold_its_quota() -> None:
    played = Queued(FIFO)
    name = played.queue_job("odd", 2, 8, queue="running")
    del played.batch[name]["spec"]["template"]["metadata"]["annotations"][names.WORK]
    played.kueue()
    assert played.work[name]["quota"]
    played.run(2)
    assert (played.phase(name), played.work[name]["quota"]) == ("Invalid", False)
    assert played.work[name]["notes"] == MARK
    played.batch[name]["spec"]["template"] = template(16)
    played.run(1)
    assert played.workers(name) == 2


def test_what_kueue_admits_without_a_plan_does_not_hold_its_quota() -> None:
    played = Queued(FIFO)
    name = played.queue_job("one", 2, 8)
    played.work[name]["notes"] = {GATED_BY: "them.io/gate"}
    played.run(8)
    assert played.placed(name)[0] == "PodsNotReady", "its room is for others"
    played.work[name]["notes"] = {}
    played.kueue()
    assert played.work[name]["quota"]
    played.settle()
    assert (played.work[name]["quota"], played.work[name]["notes"]) == (False, MARK)
    played.run(9)
    assert played.workers(name) == 2


def test_a_workload_that_is_made_anew_is_the_same_job() -> None:
    played = Queued(FIFO)
    name = played.queue_job("one", 2, 8)
    played.run(2)
    played.work[name]["uid"] = "another"
    job = played.reconciler.statuses[name]
    played.reconciler.read_specs(played.seen(), played.now())
    assert job.written is None, "nothing is written on this one"
    assert own_uid(job.meta) == "another"
    assert job.body()["metadata"]["uid"] == "another"
    played.run(1)
    assert played.workers(name) == 2


def test_a_job_is_resized_while_it_is_stopped() -> None:
    played = Queued(FIFO, gpus=6)
    name = played.queue_job("one", 2, 40)

    def run(slots: int, most: str) -> None:
        notes = played.batch[name]["spec"]["template"]["metadata"]["annotations"]
        notes |= {names.MINIMUM: "1", names.MAXIMUM: most}
        played.run(slots)

    run(1, most="4")
    assert played.looks > 2, "the controller of Jobs is slow"
    assert (played.workers(name), played.work[name]["quota"]) == (4, True)
    assert [body.get("parallelism") for _, body in played.wrote] == [4, None], "then it starts"
    played.wrote.clear()
    run(2, most="3")
    (_, paused), (_, resized), (_, resumed) = played.wrote
    assert (paused["spec"], resized, resumed["spec"]) == (
        {"active": False},
        {"parallelism": 3},
        {"active": True},
    )
    assert (played.workers(name), played.work[name]["notes"]) == (3, {})
    played.batch[name]["spec"]["completions"] = 3
    run(2, most="2")
    assert played.phase(name) == "Invalid"
    assert "spec.completions: expected none" in (played.said(name, "Valid") or ("", "", ""))[2]
    assert not played.work[name]["active"], "and holds no quota"
    ray = {**played.seen()["workloads"][0]}
    ray["metadata"] = {**ray["metadata"], "ownerReferences": [{"kind": "RayJob", "uid": "r"}]}
    ((_, item),) = job_items({**played.seen(), "jobs": [], "workloads": [ray]})
    with pytest.raises(InstanceError, match="expected none: a RayJob cannot be resized"):
        parse(item, WORKLOAD, CLOCK, DEFAULT_RESOURCES)


def test_which_workloads_are_ours() -> None:
    played = Queued(FIFO)
    for name in ("gated", "plain", "replaced", "orphan"):
        played.queue_job(name, 1, 1)
    played.batch["plain"]["spec"]["template"]["spec"]["schedulingGates"] = []
    played.work["replaced"]["conditions"] = [condition("Finished", True, "OutOfSync")]
    seen = played.seen()
    del seen["workloads"][3]["metadata"]["ownerReferences"]
    ((kind, item),) = job_items({**seen, "jobs": []})
    assert (kind, item["metadata"]["uid"]) == (WORKLOAD, "gated")


# -- quota -----------------------------------------------------------------------------------------


def test_the_plan_stays_within_the_quota_that_others_leave() -> None:
    played = Queued(FIFO, gpus=6)
    one, other = played.queue_job("one", 4, 3), played.queue_job("other", 3, 3)
    played.run(2)
    assert (played.workers(one), played.workers(other)) == (4, 0)
    assert played.work[other]["queue"] == "users", "it is not even tried"
    played.taken = 4
    big = played.queue_job("big", 5, 3)
    played.kueue()
    played.work[one]["conditions"] = [condition("Evicted", True, "Preempted")]
    played.settle()
    assert played.placed(one)[0] == "Preempted"
    assert "Kueue has preempted it" in played.placed(one)[1]
    played.run(1)
    assert (played.phase(one), played.phase(big)) == ("Waiting", "Pending")
    assert played.placed(big) == (
        "NoQuota",
        f"ClusterQueue team leaves 2 of {GPU} to the jobs planned here, and it asks for 5",
    )
    assert played.status(one).get("plan", []) == []
    played.taken = 0
    played.work[one].pop("conditions")
    played.kueue()
    played.run(2)
    assert played.workers(one) == 4


def test_between_boundaries_no_workload_starts() -> None:
    played = Queued(FIFO, gpus=2)
    played.run(1)
    name = played.queue_job("one", 4, 2)
    played.begin_early(0.5)
    assert played.work[name]["queue"] == "users"
    played.run(1)
    assert (played.work[name]["queue"], played.placed(name)[0]) == ("users", "NoQuota")


def test_a_takeover_plans_within_quota_from_its_first_question_on() -> None:
    played = Queued(FIFO)
    first, one = played.queue_job("first", 4, 9), played.queue_job("one", 4, 9)
    played.run(1)
    played.finish(first)
    played.run(1)
    played.quota = 4  # what is left, on both nodes
    played.run(1)
    arrived = played.status(one)["arrivalSlot"]
    site = played.reconciler.driver.site
    assert played.restart().driver.site == site
    other = played.submit(rigid("other", 4, 2))
    played.begin_early(0.5)
    assert (played.workers(one), played.workers(other)) == (4, 0)
    played.delete(other)
    played.policy, played.quota = SRTF, 5  # jobs arrive again, on machines that change before
    played.restart()
    played.quota = 4
    played.run(1)
    assert (played.workers(one), played.status(one)["arrivalSlot"]) == (4, arrived)


def test_where_a_node_joins_the_plan_stays_within_quota() -> None:
    played = Queued(FIFO, gpus=4)
    one, other = played.queue_job("one", 4, 9), played.queue_job("other", 4, 9)
    played.run(1)
    played.nodes.append(node("n9", "worker", 4))
    played.run(1)
    assert (played.workers(one), played.work[other]["queue"]) == (4, "users")


@pytest.mark.parametrize("away", [0, 1])
def test_quota_is_used_on_the_nodes_that_can_be_used(away: int) -> None:
    played = Queued(FIFO, gpus=4)
    workers = [n for n in played.nodes if n["metadata"]["labels"][names.NODE_ROLE] == "worker"]
    workers[away]["spec"]["unschedulable"] = True
    one = played.queue_job("one", 4, 3)
    played.run(1)
    assert played.workers(one) == 4


def test_what_is_left_alone_uses_quota_that_is_not_free() -> None:
    played = Queued(FIFO, gpus=4)
    first = played.queue_job("first", 4, 9)
    played.run(1)
    for each in played.nodes[:2]:
        each["spec"]["unschedulable"] = True
    played.run(1)
    played.work[first]["active"] = True  # by another, and Kueue admits it
    played.kueue()
    for each in played.nodes[:2]:
        each["spec"]["unschedulable"] = False
    other = played.queue_job("other", 4, 2)
    played.run(1)
    assert (played.placed(first)[0], played.placed(other)[0]) == ("LeftAlone", "NoQuota")


@pytest.mark.parametrize(
    ("quotas", "free"),
    [
        ([("team", None, 8, 5, {})], 3),
        ([("team", "all", 32, 0, {}), ("b", "all", 32, 0, {})], 64),
        ([("team", "all", 32, 0, {}), ("b", "all", 32, 32, {})], 32),
        ([("team", "all", 32, 0, {}), ("b", "all", 32, 50, {})], 32),  # reclaimed
        ([("team", "all", 32, 0, {}), ("b", "other", 32, 0, {})], 32),
        ([("team", "all", 32, 0, {"borrowingLimit": "8"}), ("b", "all", 32, 0, {})], 40),
        ([("team", "all", 32, 0, {}), ("b", "all", 32, 20, {"lendingLimit": "16"})], 44),
    ],
)
def test_what_a_cluster_queue_has_and_can_borrow(quotas: list[Any], free: int) -> None:
    played = Queued(FIFO)
    played.queue_job("one", 1, 1)
    queues = [queue(name, c, nominalQuota=str(most), **more) for name, c, most, _, more in quotas]
    work = [foreign(name, used) for name, _, _, used, _ in quotas]
    quota, seen = Quota(DEFAULT_RESOURCES), played.seen()
    quota.look({**seen, "clusterqueues": queues, "workloads": seen["workloads"][:1] + work})
    assert quota._free == {"team": {GPU: Fraction(free)}}
    assert quota._total == {GPU: Fraction(free)}
