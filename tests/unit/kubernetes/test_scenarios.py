"""Scenarios of `scenarios.yaml`, played in memory: what owners, nodes and the API server do, and
what becomes of the jobs. The head of that file says how they are written."""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

import oasis
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.acting import action_word
from tests.unit.kubernetes.played import GPU, SLOT, Played, at, job, job_of, merged, node
from tests.unit.kubernetes.test_capacity_windows import window
from tests.unit.kubernetes.test_existing_jobs import job as batch_job
from tests.unit.kubernetes.test_jobs_of_any_shape import LOOKAHEAD, past, policy

SCENARIOS = yaml.safe_load(Path(__file__).with_name("scenarios.yaml").read_text(encoding="utf-8"))
VARIANTS = [
    pytest.param(each, name, restarts, id=f"{each['name']}-{name}{'-restarts' * restarts}")
    for each in SCENARIOS
    for name in (POLICIES if each["policies"] == "all" else each["policies"])
    for restarts in ((False, True) if {"maybe": "restart"} in each["steps"] else (False,))
]


def node_of(name: str, gpus: int, *marks: str) -> dict[str, Any]:
    """A node; a mark is a label (gpu=t4), or a taint (team:NoSchedule)."""
    made, taints = node(name, "ps" if name.startswith("p") else "worker", gpus), []
    for mark in marks:
        if "=" in mark:
            made["metadata"]["labels"] |= dict([mark.split("=")])
        else:
            taints.append(dict(zip(("key", "effect"), mark.split(":"), strict=True)))
    return {**made, "spec": {"taints": taints}}


class Scenario(Played):
    """One of them; each step is the method of its name."""

    def __init__(self, name: str, given: dict[str, Any], log: pytest.LogCaptureFixture) -> None:
        self.log = log
        self.uids: dict[str, str] = {}
        self.refused: dict[str, dict[str, Any]] = {}  # by name of the job, or "any"
        self.marked: set[str] = set()
        self.bad: list[str] = []  # names of jobs with which the policy fails
        # By job: how often a pod of it was asked for, also in a dry run, and what was told on it.
        self.tried, self.events = Counter[str](), Counter[str]()
        settings = given.get("settings", {})
        last = settings.get("horizon")
        made = cluster_policy(name, {}, lookahead=LOOKAHEAD, horizon=last, bounds=past)
        # Not all: a copy of such a policy decides with the original.
        fails = any("fails with" in step for step in given["steps"])
        super().__init__(lambda: self.failing(made()) if fails else made(), **settings)
        if "nodes" in given:
            self.change(given["nodes"])
            self.restart()

    def failing(self, made: Any) -> Any:
        """Let a policy decide, and then fail if it sees a bad job."""
        decide = made.decide

        def failing(view: Any) -> Any:
            plan = decide(view)
            if any(job.id in {f"ns/{name}" for name in self.bad} for job in view.jobs()):
                raise KeyError("not like this")
            return plan

        made.decide = failing
        return made

    def refuses(self, action: Any) -> str | None:
        rule = self.refused.get(self.name_of(action.job)) or self.refused.get("any") or {}
        there = sum(job_of(pod) == action.job for pod in self.pods.values())
        self.tried[action.job] += action_word(action) == "create"
        if action_word(action) != rule.get("verb") or there < rule.get("from", 0):
            return None
        labels = action.body["metadata"]["labels"] if "task" in rule else {}
        return str(rule["says"]) if labels.get(names.TASK) == rule.get("task") else None

    def settle(self) -> None:
        super().settle()
        for uid, status in self.reconciler.statuses.items():
            self.events[uid] += len(status.news)
            status.news.clear()

    def step(self) -> None:
        self.late = 0.0
        super().step()

    def begin_early(self, part: float) -> None:
        """Go on to this part of the slot, and begin what can begin."""
        self.late = part * SLOT
        for _ in range(2):  # a new job is claimed in one turn, and begins in the next
            self.reconciler.start_between(self.now(), self.seen, 30.0, lambda: None)
            self.settle()

    def name_of(self, uid: str) -> str:
        return next((name for name, found in self.uids.items() if found == uid), "")

    def submit_all(self, jobs: dict[str, Any]) -> None:
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

    def submit_batch_jobs(self, jobs: dict[str, Any]) -> None:
        """Jobs of the cluster, suspended; `notes` are annotations by their names in `names`."""
        for uid, given in jobs.items():
            made = batch_job(given["workers"], uid=uid, **given.get("notes", {}))
            self.uids[uid] = self.submit_batch(made, float(given["slots"]))

    def patch(self, objects: dict[str, Any]) -> None:
        """What owners, or other controllers, write on Jobs of the cluster."""
        for uid, change in objects.items():
            notes = change.pop("notes", {})
            meta = {"annotations": {getattr(names, key): value for key, value in notes.items()}}
            self.batch[uid] = merged(self.batch[uid], {**change, "metadata": meta})
            if "suspend" in change.get("spec", {}):
                self._follow_batch(uid)

    def edit_all(self, jobs: dict[str, Any]) -> None:
        for name, change in jobs.items():
            self.edit(self.uids[name], **merged(self.jobs[self.uids[name]]["spec"], change))

    def change(self, nodes: dict[str, Any]) -> None:
        self.nodes = [node_of(name, *marks) for name, marks in nodes.items()]

    def declare(self, windows: list[dict[str, Any]]) -> None:
        self.windows = [window(w["name"], *w["slots"], nodes=w["nodes"]) for w in windows]

    def closes(self, closed: list[str]) -> None:
        """No pod of these jobs, or on these nodes, runs from now on."""
        self.opens = lambda pod: self.name_of(job_of(pod)) not in closed
        self.binds = lambda pod, host: host not in closed

    def change_pods(self, given: dict[str, Any]) -> None:
        """Pods of a job end, fail or report: its chief, the others, all, or one by its number."""
        uid, which = self.uids[given["of"]], given.get("which", "all")
        pods = [pod for _, pod in sorted(self.pods.items()) if job_of(pod) == uid]
        entry = self.reconciler.driver.by_uid[uid]
        chief = self.pods[self.reconciler._wanted(entry, {})[0].name]
        others = [pod for pod in pods if pod is not chief]
        chosen = {"chief": [chief], "others": others, "all": pods}.get(which) or [pods[which]]
        for pod in chosen:
            status = given.get("status", {})
            pod["status"] = status if "phase" in status else merged(pod["status"], status)
            if "progress" in given:
                told = {names.PROGRESS: given["progress"] and str(given["progress"] * SLOT)}
                pod["metadata"] = merged(pod["metadata"], {"annotations": told})

    def take_room(self, gpus: dict[str, int]) -> None:
        """Pods of others ask for these GPUs of each node, and no others do."""
        self.pods = {name: pod for name, pod in self.pods.items() if job_of(pod) != "None"}
        for at_node, count in gpus.items():
            asked = {"resources": {"requests": {GPU: str(count)}}}
            meta = {"name": f"others-{at_node}", "namespace": "ns", "uid": f"others-{at_node}"}
            spec = {"containers": [asked], "nodeName": at_node}
            self.pods[meta["name"]] = {
                "metadata": meta,
                "spec": spec,
                "status": {"phase": "Running"},
            }

    def mark(self, _: None) -> None:
        self.marked = set(self.pods)

    def lose_pods(self, _: None) -> None:
        self.pods = {}

    def maybe(self, _: str) -> None:
        self.restart()

    def expect(self, found: dict[str, Any]) -> None:
        for name, wanted in found.items():
            for key, value in wanted.items():
                assert self.holds(name, key, value), (name, key, value, self.told(name))

    def plan(self, uid: str) -> Any:
        return self.status(uid)["plan"]

    def told(self, name: str) -> Any:
        return self.status(self.uids[name]) if name in self.uids else sorted(self.pods)

    def holds(self, name: str, key: str, wanted: Any) -> bool:
        if name == "pods":
            withdrawn = self.measured("oasis_gangs_withdrawn_total")
            kept = set(self.pods) == self.marked
            anew = "arrive once more" in self.log.text
            on_n1 = any(pod["spec"].get("nodeName") == "n1" for pod in self.pods.values())
            lost = self.measured("oasis_lost_worker_slots_total")
            counts = {
                "number": len(self.pods),
                "lost worker-slots": lost,
                "withdrawn at most": withdrawn,
                "on n1": on_n1,
            }
            found = {"kept": kept, "begun anew": anew, **counts}[key]
            return bool(found <= wanted if key.endswith("most") else found == wanted)
        uid = self.uids[name]
        if key[0].isupper():  # a condition
            begin, *others = re.sub(r"@(\d+)", lambda k: at(float(k[1])), wanted or "").split(
                " .. "
            )
            if wanted is None:
                return self.said(uid, key) is None
            status, reason, message = self.said(uid, key) or ("", "", "")
            said = f"{status} {reason}: {message}"
            if not others and not begin.endswith(" "):
                return said == begin
            return said.startswith(begin) and all(part in said for part in others)
        if key == "phase":
            return self.phase(uid) in ([wanted] if isinstance(wanted, str) else wanted)
        pods = [pod for pod in self.pods.values() if job_of(pod) == uid]
        found = {
            "workers": lambda: self.workers(uid),
            "tried": lambda: self.tried[uid],
            "done": lambda: round(self.reconciler.done[uid], 6),
            "told": lambda: self.reconciler.driver.by_uid[uid].done,
            "pods that wait": lambda: sum(p["status"]["phase"] == "Pending" for p in pods),
            "live": lambda: uid in self.reconciler.driver.by_uid,
            "planned": lambda: {e["slot"]: sum(e["workers"].values()) for e in self.plan(uid)},
            "events": lambda: self.events[uid],
            "where": lambda: Counter(pod["spec"].get("nodeName") for pod in pods),
            "images": lambda: Counter(pod["spec"]["containers"][0].get("image") for pod in pods),
            "restarts": lambda: self.reconciler.driver.by_uid[uid].restarts,
            "percent": lambda: self.status(uid)["progress"]["percent"],
            "suspended": lambda: self.batch[uid]["spec"]["suspend"],
            "parallelism": lambda: self.batch[uid]["spec"]["parallelism"],
            "is at its end": lambda: self.status(uid)["progress"]["percent"] == 100,
            "percent at least": lambda: min(self.status(uid)["progress"]["percent"], wanted),
        }.get(key, lambda: self.status(uid).get(key))
        return bool(found() == wanted)


WORDS = {
    "submit": Scenario.submit_all,
    "edit": Scenario.edit_all,
    "nodes": Scenario.change,
    "closed": Scenario.closes,
    "mark": Scenario.mark,
    "pods": Scenario.change_pods,
    "others": Scenario.take_room,
    "batch": Scenario.submit_batch_jobs,
    "patch": lambda made, objects: made.patch(deepcopy(objects)),
    "succeed": lambda made, name: made.succeed(made.uids[name]),
    "fails with": lambda made, jobs: setattr(made, "bad", jobs),
    "settle": lambda made, _: made.settle(),
    "lose": Scenario.lose_pods,
    "maybe": Scenario.maybe,
    "expect": Scenario.expect,
    "run": Scenario.run,
    "at": Scenario.begin_early,
    "time": lambda made, part: setattr(made, "late", part * SLOT),
    "restart": lambda made, _: made.restart(),
    "refuse": lambda made, rules: setattr(made, "refused", rules or {}),
    "classes": lambda made, found: setattr(made, "classes", found),
    "windows": Scenario.declare,
    "delete": lambda made, name: made.delete(made.uids[name]),
}


@pytest.mark.parametrize(("given", "name", "restarts"), VARIANTS)
def test_scenario(
    given: dict[str, Any], name: str, restarts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made = Scenario(name, given, caplog)
    for step in given["steps"]:
        ((word, value),) = step.items()
        if word != "maybe" or restarts:
            WORDS[word](made, value)
    assert made.measured("oasis_policy_errors_total") == 0
    for doing in ("planning", "acting on", "following", "telling of", "reading"):
        wanted = given.get("errors", 0) if doing == "planning" else 0
        assert made.measured("oasis_job_errors_total", doing=doing) == wanted


def test_no_job_begins_early_where_it_might_have_to_leave() -> None:
    played = Played(policy("recourse"), minimum_run_time=SLOT)
    played.step()
    played.submit(job("late"))
    seen, told = played.seen(), []
    played.reconciler.start_between(played.now() + 1.0, lambda: seen, 5.0, lambda: told.append(1))
    assert not told


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
