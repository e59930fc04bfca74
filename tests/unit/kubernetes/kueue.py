"""Kueue in memory: it lets Workloads run as far as their queue and its quota allow."""

from __future__ import annotations

import json
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.acting import Action, Switch, action_word
from oasis.kubernetes.objects.workload import GATED_BY, OF_POD, WORKLOADS, kept, switching
from tests.unit.kubernetes.fake_api import writer
from tests.unit.kubernetes.played import GPU, SLOT, Played, merged, owner_of, pods


def condition(kind: str, status: bool, reason: str) -> dict[str, Any]:
    return {"type": kind, "status": str(status), "reason": reason, "message": reason.lower()}


def cluster_queue(name: str, cohort: str | None = None, **quota: str) -> dict[str, Any]:
    """A ClusterQueue with these quotas of GPUs: nominal, borrowing and lending limits."""
    flavors = [{"name": "gpu", "resources": [{"name": GPU, **quota}]}]
    spec: dict[str, Any] = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}
    spec |= {"cohortName": cohort, "preemption": {"reclaimWithinCohort": "Any"}} if cohort else {}
    return {"metadata": {"name": name}, "spec": spec}


def admission(queue: str, gpus: int) -> dict[str, Any]:
    usage = {GPU: str(gpus), "pods": str(gpus)}  # no flavor covers the second
    use = {"name": "main", "flavors": {GPU: "gpu"}, "resourceUsage": usage}
    return {"clusterQueue": queue, "podSetAssignments": [use]}


def theirs(queue: str, gpus: int) -> dict[str, Any]:
    """A Workload of others, in a namespace that is not watched."""
    meta = {"name": "theirs", "namespace": "elsewhere", "uid": f"theirs-{queue}"}
    spec = {"podSets": [], "queueName": "users"}
    return {"metadata": meta, "spec": spec, "status": {"admission": admission(queue, gpus)}}


class Queued(Played):
    """A cluster with Kueue: users' queue is held, and jobs start in another."""

    def __init__(self, *given: Any, gpus: int = 8, **more: Any) -> None:
        # What Kueue says of each Job, by its uid. Quota, of which others have taken so many GPUs.
        self.work: dict[str, dict[str, Any]] = {}
        self.quota: dict[str, Any] = {"quota": gpus, "taken": 0, "starts in": "running"}
        self.wrote: list[str] = []
        self.looks = 0  # at a Job that is to be resized
        super().__init__(*given, **more)

    def queue_job(self, name: str, workers: int, slots: float, **said: Any) -> None:
        """A user makes a Job in the held queue, which takes each of its workers so many slots."""
        worth = {names.UTILITY: '{"kind": "constant", "value": 20}'}
        worth[names.WORK] = json.dumps({"workerSeconds": workers * slots * SLOT})
        gated = {**pods(gpu="1")["spec"], "schedulingGates": [{"name": names.GATE}]}
        template = {"metadata": {"annotations": worth}, "spec": gated}
        spec = {"suspend": True, "parallelism": workers, "template": template}
        meta = {"name": name, "namespace": "ns", "uid": name, "annotations": {}, "labels": {}}
        self.batch[name] = {"metadata": {**meta, "resourceVersion": "1"}, "spec": spec}
        said = {"queue": "users", "active": True, "paused here": False, "gates": None} | said
        self.work[name] = {"uid": f"w-{name}", "quota": False, "conditions": []} | said

    def change_work(self, name: str, change: dict[str, Any]) -> None:
        """What a person or Kueue writes on a Workload; one of another uid is made anew."""
        if "uid" in change:
            del self.batch[name]["metadata"]["annotations"][names.STATUS]
        if "conditions" in change:
            change["conditions"] = [condition(*each) for each in change["conditions"]]
        self.work[name] |= change
        self.kueue()

    def seen(self) -> dict[str, list[Any]]:
        notes = {names.STARTS_IN: self.quota["starts in"]} if self.quota["starts in"] else {}
        users = {"metadata": {"name": "users", "namespace": "ns", "annotations": notes}}
        running = {"metadata": {"name": "running", "namespace": "ns"}}
        held = {"clusterQueue": "team", "stopPolicy": "Hold"}
        work = [*map(self.workload, self.work), theirs("team", self.quota["taken"])]
        return {
            **super().seen(),
            WORKLOADS.plural: [kept(each) for each in work],
            "localqueues": [{**users, "spec": held}, {**running, "spec": {"clusterQueue": "team"}}],
            "clusterqueues": [cluster_queue("team", nominalQuota=str(self.quota["quota"]))],
        }

    def asks(self, name: str) -> int:
        return int(self.batch[name]["spec"]["parallelism"])

    def workload(self, name: str) -> dict[str, Any]:
        job, said, has = self.batch[name], self.work[name], self.work[name]["quota"]
        notes = {names.STATUS: job["metadata"]["annotations"].get(names.STATUS)}
        notes |= {GATED_BY: said["gates"], names.PAUSED: "true" if said["paused here"] else None}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name}
        meta = {"name": f"job-{name}", "namespace": "ns", "uid": said["uid"]}
        meta["annotations"] = {key: value for key, value in notes.items() if value is not None}
        meta |= {"ownerReferences": [owner], "creationTimestamp": "2026-01-01T00:00:00Z"}
        part = {"name": "main", "count": self.asks(name), "template": job["spec"]["template"]}
        spec = {"podSets": [part], "queueName": said["queue"], "active": said["active"]}
        reserved = condition("QuotaReserved", has, "QuotaReserved" if has else "Pending")
        status = {"conditions": [reserved, *said["conditions"]]}
        status["admission"] = admission("team", self.asks(name)) if has else None
        return {"metadata": meta, "spec": spec, "status": status}

    def _carry_out(self, action: Action) -> None:
        if not isinstance(action, Switch):
            return super()._carry_out(action)
        said = self.work[action.job]
        if action.workers is not None:
            for uid, _, why in writer(self).do([action]):
                assert isinstance(why, Exception)
                self.reconciler.reader.fail(uid, why, "acting on", self.now())
            return self.kueue()
        where, body = switching(action.found, action.suspend)
        meta = body["metadata"]
        if where is WORKLOADS:
            assert meta["uid"] == said["uid"], "and no other Workload of its name"
            said["active"] = body["spec"]["active"]
            said["paused here"] = meta["annotations"][names.PAUSED] is not None
            self.wrote.append(action_word(action))
        else:
            assert (where.path("ns", meta["name"]), meta["uid"]) == (
                f"/apis/batch/v1/namespaces/ns/jobs/{action.job}",
                action.job,
            )
            said["queue"] = meta.get("labels", {}).get(names.QUEUE, said["queue"])
            said["gates"] = meta.get("annotations", {}).get(GATED_BY, said["gates"])
            self.wrote.append("start")
        return self.kueue()

    def request(self, method: str, path: str, *, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        """As the API server answers a merge patch of a Job, whose controller is slow."""
        name = body["metadata"]["uid"]
        assert (method, path) == ("PATCH", f"/apis/batch/v1/namespaces/ns/jobs/{name}")
        self.batch[name] = merged(self.batch[name], body)
        if "spec" in body:
            when = "" if self.looks > 2 else " too soon"
            self.wrote.append(f"resize to {body['spec']['parallelism']}{when}")
        self.looks += 1
        stopped = condition("Suspended", self.looks > 2, "JobSuspended")
        return {**self.batch[name], "status": {"conditions": [stopped]}}

    def kueue(self) -> None:
        """Kueue lets run what is active, in no held queue, and has quota."""
        left = self.quota["quota"] - self.quota["taken"]
        for name, said in self.work.items():
            may = said["active"] and said["queue"] == "running" and not said["gates"]
            is_over = any(each["type"] == "Finished" for each in said["conditions"])
            said["quota"] = may and not is_over and self.asks(name) <= left
            left -= self.asks(name) * said["quota"]
            self.batch[name]["spec"]["suspend"] = not said["quota"]
            self._follow_batch(name)
        for pod in self.pods.values():
            pod["metadata"]["annotations"][OF_POD] = f"job-{owner_of(pod)}"
            pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "main"
