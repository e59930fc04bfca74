"""A controller's decisions played on objects in memory: pods run as soon as their gate is open."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import oasis
from experiments.evaluation.live import cluster_policy
from oasis.kubernetes import names
from oasis.kubernetes.acting import Action, Create, Delete, Open, Switch, action_word
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.api.trimming import trimmed_node, trimmed_pod
from oasis.kubernetes.cluster.pods import is_unschedulable
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.memory import restore_controller
from oasis.kubernetes.control.meter import SteadyTime
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.writer import _switch_patch
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.existing import (
    COMPLETION_INDEX,
    JOB_INDEX,
    JOBSET_NAME,
    REPLICATED_JOB,
    without_others,
)
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.online.prices import PriceBounds
from tests.kubernetes.instance_objects import job_object
from tests.unit.kubernetes.fake_api import FakeConnection

EPOCH = 1_000_000.0
SLOT = 60.0
GPU = "nvidia.com/gpu"
LOOKAHEAD = 40
MANAGED = [{"manager": names.FIELD_MANAGER}]  # of what we have written
CLOCK = SlotClock(slot_seconds=60.0, startup_seconds=10.0)


def past(cluster: oasis.Cluster) -> PriceBounds:
    """Bounds from jobs that were there before."""
    needs, worth = {"gpu": 1.0, "cpu": 1.0}, oasis.Constant(20.0)
    jobs = [oasis.Job(f"p{k}", 0, 1, 4, 1, float(k), 0.0, needs, {}, worth) for k in (1, 3)]
    return PriceBounds.from_jobs(jobs, cluster, LOOKAHEAD)


def policy(name: str, **options: Any) -> Callable[[], Any]:
    return cluster_policy(name, options, lookahead=LOOKAHEAD, bounds=past)


def failing(
    make: Callable[[], Any], is_bad: Callable[[Any], bool], wrong: type[Exception] = KeyError
) -> Callable[[], Any]:
    """Makes policies that decide, and then fail if they see what `is_bad` says."""

    def made() -> Any:
        policy = make()
        decide = policy.decide

        def fails(view: Any) -> Any:
            plan = decide(view)
            if is_bad(view):
                raise wrong("not like this")
            return plan

        policy.decide, policy.REMADE = fails, (*getattr(policy, "REMADE", ()), "decide")
        return policy

    return made


def node(name: str, role: str | None, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "100Gi", GPU: str(gpus), "pods": "110"}
    amounts[names.BANDWIDTH] = "100G"
    labels = {names.HOSTNAME: name, names.NODE_ROLE: role}
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    meta = {"name": name, "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {}, "status": status}


def pods(**requests: str) -> dict[str, Any]:
    asked = {
        name.replace("gpu", GPU).replace("bandwidth", names.BANDWIDTH): amount
        for name, amount in requests.items()
    }
    return {"spec": {"containers": [{"name": "train", "resources": {"requests": asked}}]}}


def foreign(name: str, on: str | None, **requests: str) -> dict[str, Any]:
    """A pod of others that asks for so much, perhaps bound to a node."""
    meta, phase = {"name": name, "namespace": "ns", "uid": name}, "Running" if on else "Pending"
    spec = {**pods(**requests)["spec"], **({"nodeName": on} if on else {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def job(name: str, slots: float = 12.0, **workers: Any) -> dict[str, Any]:
    """An ``OasisJob`` of this many worker-slots; by default like the first one of the tutorial."""
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {
            "utility": {"kind": "constant", "value": 20},
            "work": {"workerSeconds": slots * SLOT},
            "workers": {"maximum": 8, "template": pods(cpu="1", gpu="1"), **workers},
            "gracePeriodSeconds": 0,
            "completion": "work",  # its pods never end by themselves
        },
    }


def rigid(name: str, workers: int, slots: int, **more: Any) -> dict[str, Any]:
    return job(name, slots=float(workers * slots), minimum=workers, maximum=workers, **more)


def at(slot: float) -> str:
    """The moment at which a slot begins, as objects have it."""
    return time_text(EPOCH + slot * SLOT)


def plain() -> dict[str, Any]:
    job = oasis.generate("testbed", jobs=3, seed=1).jobs[0]
    made = job_object(job, CLOCK, slot_seconds=1200.0)
    made["metadata"] |= {"uid": "u", "generation": 1}
    return made


def window(name: str, begin: float, end: float, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"begin": at(begin), "end": at(end), **spec}}


def utility_class(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"maximum": 100, "default": True, **spec}}


def merged(base: Any, change: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return deepcopy(change)
    found = {
        key: merged(base.get(key), value) for key, value in change.items() if value is not None
    }
    return {**{key: deepcopy(value) for key, value in base.items() if key not in change}, **found}


class Played:
    """Two nodes with four GPUs each, one for parameter servers, and a controller."""

    # `step` begins the next slot and carries out what the controller wants. `metrics` are those of
    # the controller, also after `restart`.
    def __init__(self, policy: Callable[[], Any], **settings: Any) -> None:
        self.policy, self.metrics = policy, Metrics()
        self.settings = ControllerSettings(slot_seconds=SLOT, first_slot_at=EPOCH, **settings)
        self.objects = Objects(FakeConnection())  # type: ignore[arg-type]
        self.nodes = [node("n0", "worker", 4), node("n1", "worker", 4), node("p0", "ps", 0)]
        self.jobs: dict[str, dict[str, Any]] = {}  # by uid
        self.batch: dict[str, dict[str, Any]] = {}  # Jobs and JobSets of the cluster, by uid
        self.switched: list[bool] = []  # whether each switch of one of them suspended it
        self.pods: dict[str, dict[str, Any]] = {}  # by name
        self.services: list[dict[str, Any]] = []
        self.policies: list[dict[str, Any]] = []
        self.classes: list[dict[str, Any]] = []
        self.windows: list[dict[str, Any]] = []
        self.seen_ps = 0  # parameter servers that were made
        self.most: dict[str, int] = {}  # workers at a time, by name of the job
        self.slot = -1
        self._versions = itertools.count(1)
        self._made: list[str] = []
        self.told = Counter[str]()  # writes of the conditions of windows, by name
        self.late = 0.0  # seconds since the slot began
        self.stuck: set[str] = set()  # pods that do not go when they are deleted
        # Whether the scheduler lets a pod go to a node, by its name.
        self.binds: Callable[[dict[str, Any], str], bool] = lambda pod, node: True
        self.opens: Callable[[dict[str, Any]], bool] = lambda pod: True  # whether it then runs
        self.ahead = 0.0  # seconds by which the clock on the wall was set
        self.steady = SteadyTime(lambda: EPOCH + self.passed() + self.ahead, self.passed)
        self.reconciler = self.restart()

    def restart(self) -> Reconciler:
        self.steady.begin()
        self.reconciler = restore_controller(
            self.objects, self.policy, self.settings, self.metrics, self.seen(), self.now
        )
        return self.reconciler

    def passed(self) -> float:
        return max(0, self.slot) * SLOT + self.late

    def now(self) -> float:
        return self.steady()

    def seen(self) -> Seen:
        return Seen(without_others(self.found(), self.settings.controller)[0])

    def found(self) -> dict[str, list[Any]]:
        """Objects by plural of their kind."""
        return {
            "nodes": [trimmed_node(each) for each in self.nodes],
            "pods": [trimmed_pod(pod) for pod in self.pods.values()],
            names.PLURAL: list(self.jobs.values()),
            names.CLASS_PLURAL: self.classes,
            names.WINDOW_PLURAL: self.windows,
            "jobs": [each for each in self.batch.values() if "replicatedJobs" not in each["spec"]],
            "jobsets": [each for each in self.batch.values() if "replicatedJobs" in each["spec"]],
            "trainjobs": [],
            "services": self.services,
            "networkpolicies": self.policies,
        }

    # -- what owners do ----------------------------------------------------------------------------

    def submit(self, made: dict[str, Any]) -> str:
        version, name = next(self._versions), made["metadata"]["name"]
        self._made.append(name)
        uid = f"{name}-{self._made.count(name)}"
        made["metadata"] |= {"uid": uid, "generation": 1, "resourceVersion": str(version)}
        made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        self.jobs[uid] = made
        return uid

    def submit_batch(self, made: dict[str, Any], slots: float, grace: int = 0) -> str:
        """Make a Job or a JobSet of so many worker-slots, suspended; its uid."""
        uid, version = made["metadata"]["uid"], str(next(self._versions))
        made["metadata"] |= {"resourceVersion": version, "labels": {names.SCHEDULED: "true"}}
        made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        made["metadata"]["annotations"][names.WORK] = json.dumps({"workerSeconds": slots * SLOT})
        for _, _, pods in parts_of(made):
            pods["template"]["spec"]["terminationGracePeriodSeconds"] = grace
        self.batch[uid] = made
        return uid

    def edit(self, uid: str, **spec: Any) -> None:
        found = self.jobs[uid]
        meta = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
        self.jobs[uid] = {**found, "metadata": meta, "spec": {**found["spec"], **spec}}

    def delete(self, uid: str) -> None:
        """The object goes, and its pods with it."""
        del (self.batch if uid in self.batch else self.jobs)[uid]
        theirs = [name for name, pod in self.pods.items() if uid in (job_of(pod), owner_of(pod))]
        self.pods = {name: pod for name, pod in self.pods.items() if name not in theirs}

    # -- what the cluster does ---------------------------------------------------------------------

    def step(self) -> None:
        self.slot, self.late = self.slot + 1, 0.0
        self.begin_slot()
        if any(is_unschedulable(pod) for pod in self.pods.values()):
            self.late = 0.6 * SLOT  # when the controller has waited long enough for the scheduler
            self.settle()
            self.late = 0.0
        for entry in self.reconciler.live.values():
            spec, held = entry.spec.in_forms[entry.form], entry.allocation.worker_count
            assert not held or spec.min_workers <= held <= spec.job.chunks, entry.spec.id
        for found, conditions in self.reconciler.windows.outdated(self.seen(), self.now()):
            found["status"] = {"conditions": conditions}
            self.told[found["metadata"]["name"]] += 1

    def begin_slot(self) -> None:
        """What is due in this slot, if the controller has not begun it yet."""
        self.try_out()
        self.reconciler.clock.drift = self.steady.drift()  # as `Controller` does in each turn
        self.reconciler.plan_if_due(self.now(), self.seen)
        self.settle()

    def try_out(self) -> None:
        """Answer the dry runs that are asked for."""
        tries = self.reconciler.tries(self.seen(), self.now())
        answers = [(each.job, "create", self.refuses(each)) for each in tries]
        failures = [(uid, word, why) for uid, word, why in answers if why is not None]
        self.reconciler.learning.tried(tries, failures, self.now())

    def begin_early(self, part: float) -> None:
        self.late = part * SLOT
        for _ in range(2):  # a new job is claimed in one turn, and begins in the next
            self.claim()
            self.settle()

    def claim(self) -> None:
        self.reconciler.plan_if_due(self.now(), self.seen, 30.0, lambda: None)

    def plan(self) -> None:
        self.slot, self.late = self.slot + 1, 0.0
        self.reconciler.plan_if_due(self.now(), self.seen)
        for action in self.reconciler.steps(self.seen(), self.now()).actions:
            self._carry_out(action)

    def run(self, slots: int) -> None:
        for _ in range(slots):
            self.step()

    def settle(self) -> None:
        for _ in range(50):
            actions = self.reconciler.steps(self.seen(), self.now()).actions
            if not actions:
                break
            failures = []
            self.check(actions)
            for action in actions:
                why = self.refuses(action)
                if why is None:
                    self._carry_out(action)
                else:
                    failures.append((action.job, action_word(action), why))
            self.reconciler.did(actions, failures, self.now())
            seen = self.seen()
            for uid in (*self.jobs, *self.batch):
                self.reconciler.note(uid, seen, self.now())
        else:
            raise AssertionError(f"there is always more to do: {actions}")
        for uid, job in self.reconciler.statuses.items():  # as `ClusterWriter` writes them
            if uid in self.jobs:
                self.jobs[uid] = {**self.jobs[uid], "status": dict(job.status)}
            if uid in self.batch and job.written != job.status:
                notes = self.batch[uid]["metadata"]["annotations"]
                notes[names.STATUS] = json.dumps(job.status)
            if uid in self.jobs.keys() | self.batch.keys():
                job.written = dict(job.status)
        for uid, found in self.jobs.items():
            name = found["metadata"]["name"]
            self.most[name] = max(self.most.get(name, 0), self.workers(uid))

    def check(self, actions: list[Action]) -> None:
        """Workers go before their parameter servers, and only a whole gang is let in."""
        deleted = [each for each in actions if isinstance(each, Delete) and each.why != "Ended"]
        for uid in {action.job for action in deleted}:
            tasks = [
                (each.pod["metadata"].get("labels") or {}).get(names.TASK, "")
                for each in deleted
                if each.job == uid
            ]
            assert tasks == sorted(tasks, reverse=True), "workers first"
        for action in actions:
            entry = self.reconciler.live.get(action.job)
            if isinstance(action, Open) and entry is not None and action.job in self.jobs:
                there = sum(job_of(pod) == action.job for pod in self.pods.values())
                held = entry.allocation
                assert there >= held.worker_count + held.ps_count, "a part of a gang is let in"

    def refuses(self, action: Action) -> str | None:
        return None

    def _carry_out(self, action: Action) -> None:
        if action_word(action) == "expose":
            is_policy = action.body["kind"] == "NetworkPolicy"
            (self.policies if is_policy else self.services).append(dict(action.body))
        elif isinstance(action, Create):
            assert action.job in self.jobs, "of a job that is gone no pod is made"
            assert action.body["metadata"]["name"] not in self.pods, "409: it is there"
            own = {"uid": f"pod-{next(self._versions)}", "managedFields": MANAGED}
            made = {**action.body, "status": {"phase": "Pending"}}
            made["metadata"] = {**made["metadata"], **own}
            self.seen_ps += made["metadata"]["labels"][names.TASK] == "ps"
            self.pods[made["metadata"]["name"]] = made
        elif isinstance(action, Switch):
            self.switched.append(action.suspend)
            _, change = _switch_patch(action)
            self.batch[action.job] = merged(self.batch[action.job], change)
            self._follow_batch(action.job)
        elif isinstance(action, Open):
            pod = self.pods[action.pod["metadata"]["name"]]
            for change in action.patch:
                _, _, field, *key = change["path"].split("/")
                if field in ("labels", "annotations"):
                    value = {key[0].replace("~1", "/"): change["value"]} if key else None
                    pod["metadata"][field] |= value or change["value"]
            pod["metadata"]["managedFields"] = MANAGED
            nodes = {each["metadata"]["name"]: each for each in self.nodes}
            at = nodes[pod["metadata"]["annotations"][names.NODE]]
            refusal = NodeRules.of(pod["spec"]).refusal(at)
            assert refusal is None, "the scheduler would let it wait for ever"
            if not self.binds(pod, at["metadata"]["name"]):
                why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                pod["spec"] = {**pod["spec"], "schedulingGates": []}
                pod["status"] = {"phase": "Pending", "conditions": [{**why, "message": "taken"}]}
                return
            spec = {**pod["spec"], "nodeName": pod["metadata"]["annotations"][names.NODE]}
            spec["schedulingGates"] = []
            since = time_text(self.now())
            ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
            pod |= {"spec": spec, "status": {"phase": "Running", "conditions": ready}}
            if not self.opens(pod):
                waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
                state = {"containerStatuses": [{"state": {"waiting": waiting}}]}
                pod["status"] = {"phase": "Pending", **state}
        else:
            assert isinstance(action, Delete)
            name = action.pod["metadata"]["name"]
            if name in self.stuck:
                meta = {"deletionTimestamp": time_text(self.now())}
                self.pods[name] = merged(self.pods[name], {"metadata": meta})
            else:
                del self.pods[name]

    def _follow_batch(self, uid: str) -> None:
        """As the controller of Jobs: it ends the pods of a suspended one, and makes others."""
        # Pods that were ended are gone at once.
        found = self.batch[uid]
        mine = {n: pod for n, pod in self.pods.items() if owner_of(pod) == uid}
        done = {n for n, pod in mine.items() if pod["status"]["phase"] == "Succeeded"}
        if found["spec"]["suspend"]:
            self.pods = {n: pod for n, pod in self.pods.items() if n not in mine or n in done}
            return
        for name, labels, pods in parts_of(found):
            there = [
                pod["metadata"]["labels"].get(COMPLETION_INDEX)
                for pod in mine.values()
                if labels.items() <= pod["metadata"]["labels"].items()
                and pod["status"]["phase"] != "Failed"
            ]
            count, template = pods.get("parallelism", 1), pods["template"]["spec"]
            lacking = [str(k) for k in range(count) if str(k) not in there]
            for index in lacking[: count - len(there)]:
                number = next(self._versions)
                owner = {"kind": "Job", "uid": uid, "name": name, "controller": True}
                meta = {"name": f"{name}-{number}", "namespace": "ns", "uid": f"{name}-{number}"}
                own, spec = labels, template
                if "subdomain" in template:  # as those of an Indexed Job or a JobSet
                    own = {**labels, COMPLETION_INDEX: index}
                    spec = {**template, "hostname": f"{name}-{index}"}
                self.pods[meta["name"]] = {
                    "metadata": {
                        **{**meta, "labels": dict(own), "annotations": {}},
                        "ownerReferences": [owner],
                    },
                    "spec": spec,
                    "status": {"phase": "Pending"},
                }

    def succeed(self, uid: str) -> None:
        """The pods of a job end without an error, and with them a Job of the cluster."""
        for pod in self.pods.values():
            if owner_of(pod) == uid:
                pod["status"] = {"phase": "Succeeded"}
        if uid in self.batch:
            over = {"conditions": [{"type": "Complete", "status": "True"}]}
            self.batch[uid] = {**self.batch[uid], "status": over}
        self.note(uid)

    def note(self, uid: str) -> None:
        self.reconciler.note(uid, self.seen(), self.now())

    # -- what is asked -----------------------------------------------------------------------------

    def workers(self, uid: str) -> int:
        return sum(
            job_of(pod) == uid
            and pod["metadata"]["labels"][names.TASK] == "worker"
            and pod["status"]["phase"] == "Running"
            for pod in self.pods.values()
        )

    def status(self, uid: str) -> dict[str, Any]:
        if uid in self.batch:
            notes = self.batch[uid]["metadata"]["annotations"]
            return dict(json.loads(notes.get(names.STATUS, "{}")))
        return self.jobs[uid].get("status") or {}

    def phase(self, uid: str) -> str:
        return str(self.status(uid).get("phase"))

    def said(self, uid: str, kind: str) -> tuple[str, str, str] | None:
        for found in self.status(uid).get("conditions") or ():
            if found["type"] == kind:
                return found["status"], found["reason"], found["message"]
        return None

    def measured(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def parts_of(found: dict[str, Any]) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    """The Jobs of a Job or a JobSet: name, labels of its pods, and spec."""
    name, spec = found["metadata"]["name"], found["spec"]
    if "replicatedJobs" not in spec:
        return [(name, {}, spec)]
    return [
        (
            f"{name}-{part['name']}-{k}",
            {JOBSET_NAME: name, REPLICATED_JOB: part["name"], JOB_INDEX: str(k)},
            part["template"]["spec"],
        )
        for part in spec["replicatedJobs"]
        for k in range(part["replicas"])
    ]


def owner_of(pod: dict[str, Any]) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def job_of(pod: dict[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get(names.JOB_UID))
