"""Scenarios of `scenarios.yaml` and `kueue.yaml`, played in memory: what owners, nodes and the API
server do, and what becomes of the jobs. The heads of these files say how they are written."""

from __future__ import annotations

import re
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml

import oasis
from experiments.cli.commands.kubernetes.reading import _status_row, explained, summary
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.acting import Delete, action_word
from oasis.kubernetes.cluster.gangs import wanted_of
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.objects.quantities import requests_of
from tests.unit.kubernetes.kueue import Queued
from tests.unit.kubernetes.played import (
    GPU,
    LOOKAHEAD,
    SLOT,
    Played,
    at,
    failing,
    foreign,
    job,
    job_of,
    merged,
    node,
    owner_of,
    parts_of,
    past,
    policy,
    window,
)
from tests.unit.kubernetes.test_existing_jobs import batch_job, jobset

FILES = [Path(__file__).with_name(name) for name in ("scenarios.yaml", "kueue.yaml")]
SCENARIOS = [each for file in FILES for each in yaml.safe_load(file.read_text(encoding="utf-8"))]
LONG = 30.0  # seconds, which no test takes
VARIANTS = [
    pytest.param(each, name, restarts, id=f"{each['name']}-{name}{'-restarts' * restarts}")
    for each in SCENARIOS
    for name in (POLICIES if each["policies"] == "all" else each["policies"])
    for restarts in ((False, True) if any("maybe" in step for step in each["steps"]) else (False,))
]


def node_of(name: str, gpus: int, *marks: str) -> dict[str, Any]:
    """A node; a mark is a label (gpu=t4), a taint (team:NoSchedule), or that it is cordoned."""
    made, taints = node(name, "ps" if name.startswith("p") else "worker", gpus), []
    for mark in marks:
        if "=" in mark:
            made["metadata"]["labels"] |= dict([mark.split("=")])
        elif ":" in mark:
            taints.append(dict(zip(("key", "effect"), mark.split(":"), strict=True)))
    return {**made, "spec": {"taints": taints, "unschedulable": "cordoned" in marks}}


class Scenario(Played):
    """One of them; each step is a method by its name, or one of `WORDS`."""

    def __init__(self, name: str, given: dict[str, Any], log: pytest.LogCaptureFixture) -> None:
        self.log = log
        self.uids: dict[str, str] = {}
        self.refused: dict[str, dict[str, Any]] = {}  # by name of the job, or "any"
        self.marked: dict[str, str] = {}  # uids of pods by name
        self.strays: list[str] = []  # Jobs of which a pod runs on a node that nobody planned
        self.absent: list[str] = []  # Jobs whose controller makes no pods
        self.isolated: set[str] = set()  # jobs that others could not reach when they began
        self.bad: list[str] = []  # names of jobs with which the policy fails
        self.is_broken = False  # whether the policy fails, whatever jobs there are
        self.is_asked, self.may_go, self.ended = Event(), Event(), Event()  # of a plan in a thread
        self.may_go.set()
        self.history: list[list[str]] = []  # pods in each slot
        # By job: how often a pod of it was asked for, also in a dry run, and what was told on it.
        self.tried, self.events = Counter[str](), Counter[str]()
        settings = given.get("settings", {})
        last = settings.get("horizon")
        options = given.get("options", {})
        made = cluster_policy(name, options, lookahead=LOOKAHEAD, horizon=last, bounds=past)
        # Not all: a copy of such a policy decides with the original.
        words = {"fails with", "policy fails", "begin slowly"}
        fails = any(words & step.keys() for step in given["steps"])
        super().__init__(failing(made, self.has_bad) if fails else made, **settings)
        self.opens = lambda pod: self.has_isolation(job_of(pod))
        if "nodes" in given:
            self.do_nodes(given["nodes"])
            self.restart()

    def do(self, word: str, value: Any) -> None:
        if word in WORDS:
            WORDS[word](self, value)
        else:
            getattr(self, f"do_{word.replace(' ', '_')}")(value)

    def has_isolation(self, uid: str) -> bool:
        """Note whether others cannot reach the pods of a job that begins now."""
        mine = {"matchLabels": {names.JOB_UID: uid}}
        closed = {"podSelector": mine, "ingress": [{"from": [{"podSelector": mine}]}]}
        if any(closed.items() <= each["spec"].items() for each in self.policies):
            self.isolated.add(uid)
        return True

    def has_bad(self, view: Any) -> bool:
        self.is_asked.set()
        assert self.may_go.wait(LONG)
        bad = {f"ns/{name}" for name in self.bad}
        return self.is_broken or any(job.id in bad for job in view.jobs())

    def refuses(self, action: Any) -> str | None:
        rule = self.refused.get(self.name_of(action.job)) or self.refused.get("any") or {}
        there = sum(job_of(pod) == action.job for pod in self.pods.values())
        self.tried[action.job] += action_word(action) == "create"
        if action_word(action) != rule.get("verb") or there < rule.get("from", 0):
            return None
        labels = action.body["metadata"]["labels"] if "task" in rule else {}
        return str(rule["says"]) if labels.get(names.TASK) == rule.get("task") else None

    def _follow_batch(self, uid: str) -> None:
        if uid in self.absent:
            return
        super()._follow_batch(uid)
        if uid in self.strays and not self.batch[uid]["spec"]["suspend"]:
            pod = next(pod for pod in self.pods.values() if owner_of(pod) == uid)
            meta = {**pod["metadata"], "name": "stray", "uid": "stray", "annotations": {}}
            meta |= {"annotations": {names.NODE: "n9"}, "labels": {names.JOB_UID: uid}}
            meta["managedFields"] = [{"manager": names.FIELD_MANAGER}]
            spec = {**pod["spec"], "nodeName": "n9", "schedulingGates": []}
            self.pods["stray"] = {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}

    def step(self) -> None:
        super().step()
        self.history.append(sorted(self.pods))

    def settle(self) -> None:
        super().settle()
        for uid, status in self.reconciler.statuses.items():
            self.events[uid] += len(status.news)
            status.news.clear()

    def do_begin_slowly(self, _: None) -> None:
        """Begin a slot whose plan takes until the policy is to `decide`."""
        for event in (self.is_asked, self.may_go, self.ended):
            event.clear()
        self.slot += 1
        assert not self.is_planned()
        assert self.is_asked.wait(LONG)

    def do_decide(self, _: None) -> None:
        self.may_go.set()
        assert self.ended.wait(LONG)
        assert self.is_planned()
        self.settle()

    def do_begin_at_once(self, _: None) -> None:
        self.slot += 1
        assert self.is_planned()
        self.settle()

    def is_planned(self) -> bool:
        return self.reconciler.plan_if_due(self.now(), self.seen, 0.0, self.ended.set)

    def do_maybe(self, word: str | dict[str, Any]) -> None:
        """What `maybe` happens: it is a step of its own, by its word if nothing is to be said."""
        ((name, value),) = {word: None}.items() if isinstance(word, str) else word.items()
        self.do(name, value)

    def name_of(self, uid: str) -> str:
        return next((name for name, found in self.uids.items() if found == uid), "")

    def do_submit(self, jobs: dict[str, Any]) -> None:
        for name, asked in jobs.items():
            given = dict(asked)
            counts = {
                key: given.pop(key) for key in ("minimum", "maximum", "initial") if key in given
            }
            if (workers := given.pop("workers", None)) is not None:
                counts |= {"minimum": workers, "maximum": workers}
            made = job(name, float((workers or 1) * given.pop("slots")), **counts)
            template = {"workers": {"template": {"spec": given.pop("pods", {})}}}
            made["spec"] = merged(merged(made["spec"], template), given)
            self.uids[name] = self.submit(made)

    def do_batch(self, jobs: dict[str, Any]) -> None:
        """Jobs of the cluster, suspended, and JobSets: those that say no number of workers."""
        # `notes` are annotations by their names in `names`.
        for uid, given in jobs.items():
            notes = {"uid": uid, **given.get("notes", {})}
            made = batch_job(given["workers"], **notes) if "workers" in given else jobset(**notes)
            made = merged(made, {"spec": given.get("spec", {})})
            for _, _, pods in parts_of(made):
                pods["template"]["spec"] |= given.get("pods", {})
            self.uids[uid] = self.submit_batch(made, float(given["slots"]))

    def patch(self, objects: dict[str, Any]) -> None:
        """What owners, or other controllers, write on jobs."""
        for name, change in objects.items():
            uid, notes, labels = self.uids[name], change.pop("notes", {}), change.pop("labels", {})
            notes = {getattr(names, key): value for key, value in notes.items()}
            change["metadata"] = {
                "labels": labels,
                "annotations": notes,
                **change.get("metadata", {}),
            }
            there = self.batch if uid in self.batch else self.jobs
            there[uid] = merged(there[uid], change)
            if "suspend" in change.get("spec", {}):
                self._follow_batch(uid)

    def do_edit(self, jobs: dict[str, Any]) -> None:
        for name, change in jobs.items():
            self.edit(self.uids[name], **merged(self.jobs[self.uids[name]]["spec"], change))

    def do_nodes(self, nodes: dict[str, Any]) -> None:
        self.nodes = [node_of(name, *marks) for name, marks in nodes.items()]

    def do_windows(self, windows: list[dict[str, Any]]) -> None:
        """All capacity windows, in slots; one that was there is changed."""
        before = {each["metadata"]["name"] for each in self.windows}
        self.windows = [
            window(given["name"], *given["slots"], **given.get("spec", {})) for given in windows
        ]
        for made in self.windows:
            made["metadata"]["generation"] = 1 + (made["metadata"]["name"] in before)

    def do_closed(self, closed: list[str]) -> None:
        """No pod of these jobs, or on these nodes, runs from now on."""
        self.opens = lambda pod: self.name_of(job_of(pod)) not in closed
        self.binds = lambda pod, host: host not in closed

    def do_pods(self, given: dict[str, Any]) -> None:
        """Pods of a job end, fail or report: its chief, the others, all, or one."""
        # That has a number, or a host name.
        uid, which = self.uids[given["of"]], given.get("which", "all")
        pods = [pod for _, pod in sorted(self.pods.items()) if job_of(pod) == uid]
        hosts = {f"host {pod['spec'].get('hostname')}": pod for pod in pods}
        chief = hosts.get(which) or (pods[which] if isinstance(which, int) else self.chief(uid))
        others = [pod for pod in pods if pod is not chief]
        chosen = {"others": others, "all": pods}.get(which, [chief])
        for pod in chosen:
            status = given.get("status", {})
            pod["status"] = status if "phase" in status else merged(pod["status"], status)
            pod["spec"] = merged(pod["spec"], given.get("spec", {}))
            if "progress" in given:
                told = {names.PROGRESS: given["progress"] and str(given["progress"] * SLOT)}
                pod["metadata"] = merged(pod["metadata"], {"annotations": told})
            if "loss" in given:
                pod["metadata"]["annotations"][names.LOSS] = str(given["loss"])

    def chief(self, uid: str) -> dict[str, Any]:
        entry, places = self.reconciler.driver.by_uid[uid], self.reconciler.machines.places
        (first, *_) = wanted_of(entry, places, Seen({}))
        return self.pods[first.name]

    def do_others(self, gpus: dict[str, int]) -> None:
        """Pods of others ask for these GPUs of each node, and no others do."""
        self.pods = {name: pod for name, pod in self.pods.items() if job_of(pod) != "None"}
        for at_node, count in gpus.items():
            name = f"others-{at_node}"
            self.pods[name] = foreign(name, at_node, gpu=str(count))

    def do_copy(self, meta: dict[str, Any]) -> None:
        """A pod of others on n0, of three GPUs, has these marks of ours."""
        self.pods["copy"] = merged(foreign("copy", "n0", gpu="3"), {"metadata": meta})

    def do_service(self, given: dict[str, str]) -> None:
        meta = {"name": given["name"], "namespace": "ns", "labels": {names.JOB_UID: given["of"]}}
        meta["ownerReferences"] = [{"uid": given["of"]}]
        self.services.append({"metadata": meta, "spec": {}})

    def do_orphan(self, name: str) -> None:
        uid = self.uids[name]
        del self.jobs[uid]
        for pod in self.pods.values():
            if job_of(pod) == uid:
                del pod["metadata"]["ownerReferences"]

    def do_stuck(self, name: str) -> None:
        (first, *_) = sorted(n for n, pod in self.pods.items() if job_of(pod) == self.uids[name])
        self.stuck = {first}
        self._carry_out(Delete(self.uids[name], self.pods[first], "Ended"))

    def do_one_a_node(self, _: None) -> None:
        self.binds = lambda _, host: all(
            pod["spec"].get("nodeName") != host for pod in self.pods.values()
        )

    def do_absent(self, jobs: list[str]) -> None:
        self.absent = jobs
        for uid in self.batch:  # its controller is back
            self._follow_batch(uid)

    def do_mark(self, _: None) -> None:
        self.marked = {name: pod["metadata"]["uid"] for name, pod in self.pods.items()}

    def do_lose(self, _: None) -> None:
        self.pods = {}

    def do_expect(self, found: dict[str, Any]) -> None:
        for name, wanted in found.items():
            for key, value in wanted.items():
                assert self.holds(name, key, value), (name, key, value, self.about(name))

    def about(self, name: str) -> Any:
        return self.status(self.uids[name]) if name in self.uids else sorted(self.pods)

    def of_all(self, name: str, key: str) -> Any:
        if name == "log":
            return self.log.text.count(key)
        if name == "metrics":
            return self.measured(key)
        if name == "windows":
            return self.told_on(key)
        on_n1 = any(pod["spec"].get("nodeName") == "n1" for pod in self.pods.values())
        kept, anew = self.pods.keys() == self.marked.keys(), "arrive once more" in self.log.text
        stuck, policies = len(self.stuck & self.pods.keys()), len(self.policies)
        found = {"kept": kept, "begun anew": anew, "number": len(self.pods), "on n1": on_n1}
        found["services"] = len(self.services)
        uids = {pod["metadata"]["uid"] for pod in self.pods.values()}
        found["made anew"] = len(uids - {*self.marked.values()})
        found["withdrawn at most"] = self.measured("oasis_gangs_withdrawn_total")
        return {**found, "of those that are stuck": stuck, "policies": policies}[key]

    def told_on(self, window: str) -> Any:
        if window == "told":
            return self.told.total()
        (found,) = (each for each in self.windows if each["metadata"]["name"] == window)
        (told,) = found["status"]["conditions"]
        assert told["observedGeneration"] == found["metadata"]["generation"]
        return told["status"], told["reason"], told["message"]

    def holds(self, name: str, key: str, wanted: Any) -> bool:
        if name in ("pods", "log", "metrics", "windows"):
            found = self.of_all(name, key)
            if key == "withdrawn at most":
                return bool(found <= wanted)
            is_said = name == "windows" and key != "told"
            return says(found, wanted) if is_said else bool(found == wanted)
        uid = self.uids[name]
        if key[0].isupper():  # a condition
            return says(self.said(uid, key), wanted)
        if key == "phase":
            return self.phase(uid) in ([wanted] if isinstance(wanted, str) else wanted)
        pods, told = [pod for pod in self.pods.values() if job_of(pod) == uid], self.status(uid)
        found = {
            "isolated before it began": lambda: uid in self.isolated,
            "workers": lambda: self.workers(uid),
            "ran": lambda: self.most.get(name, 0) > 0,
            "most": lambda: self.most[name],
            "tried": lambda: self.tried[uid],
            "done": lambda: round(self.reconciler.done[uid], 6),
            "told": lambda: self.reconciler.driver.by_uid[uid].done,
            "pods that wait": lambda: sum(p["status"]["phase"] == "Pending" for p in pods),
            "live": lambda: uid in self.reconciler.driver.by_uid,
            "planned": lambda: {e["slot"]: sum(e["workers"].values()) for e in told["plan"]},
            "events": lambda: self.events[uid],
            "where": lambda: Counter(pod["spec"].get("nodeName") for pod in pods),
            "planned on": lambda: sorted({p["metadata"]["annotations"][names.NODE] for p in pods}),
            "gpus": lambda: Counter(int(requests_of(pod["spec"])[GPU]) for pod in pods),
            "images": lambda: Counter(pod["spec"]["containers"][0].get("image") for pod in pods),
            "restarts": lambda: self.reconciler.driver.by_uid[uid].restarts,
            "percent": lambda: told["progress"]["percent"],
            "switched": lambda: ["suspend" if each else "resume" for each in self.switched],
            "suspended": lambda: self.batch[uid]["spec"]["suspend"],
            "parallelism": lambda: self.batch[uid]["spec"]["parallelism"],
            "completions": lambda: self.batch[uid]["spec"].get("completions"),
            "read": lambda: self.read(pods, wanted),
            "service": lambda: self.services[-1]["spec"],
            "told at": lambda: wanted if self.times(uid) == {at(wanted)} else None,
            "shown": lambda: _status_row(summary((None, self.jobs[uid])))[-1],
            "advised": lambda: explained((None, self.jobs[uid]))[0]["advice"],
            "is at its end": lambda: told["progress"]["percent"] == 100,
            "percent at least": lambda: min(told["progress"]["percent"], wanted),
        }.get(key, lambda: told.get(key))
        return bool(found() == wanted)

    def times(self, uid: str) -> set[str]:
        return {each["lastTransitionTime"] for each in self.status(uid)["conditions"]}

    def read(self, pods: list[dict[str, Any]], wanted: dict[str, Any]) -> dict[str, Any]:
        """Variables of running pods, by host name; those that are asked about."""
        found: dict[str, Any] = {name: {} for name in wanted}
        for pod in pods:
            for name in wanted if pod["status"]["phase"] == "Running" else ():
                value = pod["metadata"]["annotations"][f"{names.ENV}{name}"]
                found[name][pod["spec"]["hostname"]] = value
        return found


class Beside(Queued, Scenario):
    def patch(self, objects: dict[str, Any]) -> None:
        for change in objects.values():
            notes = {getattr(names, key): text for key, text in change.pop("notes", {}).items()}
            template = {"template": {"metadata": {"annotations": notes}}}
            change["spec"] = {**change.get("spec", {}), **template}
        super().patch(objects)
        self.kueue()

    def do_queue(self, jobs: dict[str, Any]) -> None:
        self.uids |= {name: name for name in jobs}
        for name, given in jobs.items():
            self.queue_job(name, **given)

    def do_workload(self, works: dict[str, Any]) -> None:
        for name, change in works.items():
            self.change_work(name, dict(change))

    def do_kueue(self, change: dict[str, Any]) -> None:
        self.quota |= change
        self.kueue()

    def holds(self, name: str, key: str, wanted: Any) -> bool:
        if name == "kueue":
            return bool(self.wrote == wanted)
        if key in self.work.get(name, {}):
            return bool(self.work[name][key] == wanted)
        return super().holds(name, key, wanted)


def says(found: tuple[str, str, str] | None, wanted: str | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    begin, *others = re.sub(r"@(-?\d+)", lambda k: at(float(k[1])), wanted).split(" .. ")
    said = "{} {}: {}".format(*found)
    if not others and not begin.endswith(" "):
        return said == begin
    return said.startswith(begin) and all(part in said for part in others)


WORDS = {
    "patch": lambda made, objects: made.patch(deepcopy(objects)),
    "succeed": lambda made, name: made.succeed(made.uids[name]),
    "fails with": lambda made, jobs: setattr(made, "bad", jobs),
    "policy fails": lambda made, fails: setattr(made, "is_broken", fails),
    "note": lambda made, name: made.note(made.uids[name]),
    "settle": lambda made, _: made.settle(),
    "strays": lambda made, jobs: setattr(made, "strays", jobs),
    "plan": lambda made, _: made.plan(),
    "begin": lambda made, _: made.begin_slot(),
    "clock is set by": lambda made, seconds: setattr(made, "ahead", made.ahead + seconds),
    "skip": lambda made, slots: setattr(made, "slot", made.slot + slots),
    "run": Scenario.run,
    "at": Scenario.begin_early,
    "claim": lambda made, _: made.claim(),
    "time": lambda made, part: setattr(made, "late", part * SLOT),
    "restart": lambda made, _: made.restart(),
    "refuse": lambda made, rules: setattr(made, "refused", rules or {}),
    "classes": lambda made, found: setattr(made, "classes", found),
    "delete": lambda made, name: made.delete(made.uids[name]),
    "policy": lambda made, name: setattr(made, "policy", policy(name)),
    "finish": lambda made, name: made.change_work(
        name, {"conditions": [("Finished", True, "Succeeded")]}
    ),
}


def play(name: str, given: dict[str, Any], log: Any, *, restarts: bool) -> Scenario:
    beside = {"gpus": given["kueue"]} if "kueue" in given else {}
    made = (Beside if beside else Scenario)(name, given, log, **beside)
    for step in given["steps"]:
        ((word, value),) = step.items()
        if word != "maybe" or restarts:
            made.do(word, value)
    return made


@pytest.mark.parametrize(("given", "name", "restarts"), VARIANTS)
def test_scenario(
    given: dict[str, Any], name: str, restarts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    begin = time.process_time()
    made = play(name, given, caplog, restarts=restarts)
    assert time.process_time() - begin < given.get("seconds", 60.0)
    assert made.measured("oasis_policy_errors_total") == given.get("policy errors", 0)
    for doing in ("planning", "acting on", "following", "telling of", "reading"):
        wanted = given.get({"planning": "errors", "acting on": "acting"}.get(doing, ""), 0)
        wanted = wanted if restarts or not given.get("same", False) else 0
        assert made.measured("oasis_job_errors_total", doing=doing) == wanted
    if restarts and given.get("same", False):
        other = play(name, given, caplog, restarts=False)
        assert made.history == other.history
        assert [*map(made.status, other.jobs)] == [*map(other.status, other.jobs)]


def test_a_policy_that_does_not_keep_it_is_refused() -> None:
    with pytest.raises(oasis.InputError, match="minimum_run_time: expected none with policy drf"):
        Played(policy("drf"), minimum_run_time=SLOT)


def test_a_restart_with_another_option_names_it(caplog: pytest.LogCaptureFixture) -> None:
    played = Played(policy("recourse"))
    played.submit(job("j"))
    played.run(1)
    played.policy = cluster_policy("recourse", {}, lookahead=LOOKAHEAD + 9, bounds=past)
    played.restart()
    assert f"made with other options (lookahead {LOOKAHEAD}, not {LOOKAHEAD + 9}" in caplog.text
