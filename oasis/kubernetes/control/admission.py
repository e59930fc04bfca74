"""Admission of pods by nodes, judged or learnt, written into the jobs as their requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oasis.driver.driver import Driver
from oasis.kubernetes import names
from oasis.kubernetes.acting import Create, Steps
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import Place
from oasis.kubernetes.cluster.seen import AWAY, Seen
from oasis.kubernetes.control.job_reader import JobReader
from oasis.kubernetes.control.patience import Failure, Patience
from oasis.kubernetes.control.statuses import PODS_REFUSED
from oasis.kubernetes.objects.conditions import said, time_text
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.schema import TERMINAL
from oasis.model.groups import GROUPS, TaskGroup

Object = Mapping[str, Any]
Required = Mapping[str, tuple[str, ...]]
Both = tuple[Required, Required]  # of workers and of parameter servers, as in `GROUPS`
Verdict = tuple[tuple[str, ...], Mapping[str, str]]  # nodes that admit, and why the others do not

ANYWHERE: Required = {}
NOWHERE: Required = {names.NODE: ("/",)}  # which is the name of no node
ANY = ""  # stands for every node where a verdict is about all pods of a job
LONGEST = 64  # slots for which a verdict holds; more on a cluster of more nodes


@dataclass(slots=True)
class Verdicts:
    """Nodes excluded for a job, for 1 slot, then for twice as long each time; an edit ends it."""

    # By job and node: version of the job, how often in a row, from and until which slot, and why.
    _known: dict[tuple[str, str], tuple[int, int, int, int, str]] = field(default_factory=dict)
    longest: int = LONGEST  # slots for which one against a node holds, at most

    def refuse(self, spec: JobSpec, slot: int, why: str, node: str = ANY) -> None:
        """Exclude `node` (ANY: every node) from `slot` on, unless it is excluded already."""
        generation, times, _, until, _ = self._known.get((spec.uid, node), (0, 0, 0, slot, ""))
        if generation != spec.generation:
            times, until = 0, slot
        if until <= slot:
            until = slot + min(2 ** min(times, LONGEST), LONGEST if node == ANY else self.longest)
            self._known[spec.uid, node] = spec.generation, times + 1, slot, until, why

    def accept(self, uid: str, node: str = ANY, slot: int | None = None) -> None:
        """Drop the verdict on `node` (ANY: every node); with `slot` only if it is over then."""
        if slot is None or self.until(uid, node) <= slot:
            self._known.pop((uid, node), None)

    def why(self, spec: JobSpec, slot: int, node: str = ANY, *, runs: bool = False) -> str | None:
        """Return why `node` is excluded in `slot`, or None; verdicts are long if the job `runs`."""
        # For a job that runs elsewhere all verdicts are long: a node that comes back moves it.
        key = spec.uid, node
        generation, _, since, until, why = self._known.get(key, (None, 0, 0, 0, ""))
        until = max(until, since + LONGEST) if runs else until
        return why if generation == spec.generation and slot < until else None

    def until(self, uid: str, node: str = ANY) -> int:
        """Return the first slot in which the job is tried again; 0 if it was not refused."""
        return self._known.get((uid, node), (0, 0, 0, 0, ""))[3]

    def forget(self, existing: Container[str]) -> None:
        """Drop the verdicts on all jobs but the `existing` ones."""
        self._known = {key: verdict for key, verdict in self._known.items() if key[0] in existing}

    def state(self) -> list[Any]:
        """Return plain data for a takeover."""
        return [[*key, *verdict] for key, verdict in self._known.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Restore the verdicts from the data of `state`."""
        self._known = {(uid, node): tuple(verdict) for uid, node, *verdict in state}


class Admission:
    """Judges pods against nodes as kube-scheduler does, beside the verdicts that it learnt."""

    # A machine has the name of its node as a label, and a job requires one of the names of the
    # nodes that admit its pods. So a change of the labels or the taints of a node is, to those jobs
    # whose verdict it changes, an edit; the machines stay the same.
    def __init__(self, places: Iterable[Place], nodes: Iterable[Object]) -> None:
        self.verdicts = Verdicts()
        self.refused: dict[str, str] = {}  # why no node admits a job in any form, by its uid
        self._hosts: dict[TaskGroup, tuple[str, ...]] = {}
        self._nodes: dict[str, Object] = {}  # those that are gone stay as they were
        self._refusals: dict[NodeRules, dict[str, str]] = {}  # by rules and node
        self._made: dict[str, tuple[JobSpec, list[Both], JobSpec]] = {}
        self.follow_nodes(places, nodes)

    def follow_nodes(self, places: Iterable[Place], nodes: Iterable[Object]) -> None:
        """Update the machines of the plan and their nodes; a node that is gone stays as it was."""
        places = tuple(places)
        self.verdicts.longest = max(LONGEST, len(places))  # or those tried first come back first
        for group in GROUPS:
            hosts = (place.node for place in places if group in place.hosts)
            self._hosts[group] = tuple(dict.fromkeys(hosts))
        seen = {node["metadata"]["name"]: _lasting(node) for node in nodes}
        latest = {at.node: seen.get(at.node, self._nodes.get(at.node)) for at in places}
        now = {name: node for name, node in latest.items() if node is not None}
        if now != self._nodes:
            self._nodes = now
            self._refusals.clear()

    def on_admitting(self, spec: JobSpec, pods: Iterable[Object], slot: int = 0) -> JobSpec:
        """Return the job limited to nodes that admit its pods in `slot`, or run some of `pods`."""
        # Where its `pods` run they stay, though a node that got another label or a taint without
        # ``NoExecute`` takes no new ones.
        staying = self._staying(spec, tuple(pods))
        asked: list[Both] = []
        whys: list[str] = []
        for form in spec.in_forms:
            groups = [g for g in GROUPS if g is TaskGroup.WORKER or form.needs_ps(form.job)]
            admitting = {g: self._admitting(form, g, staying, slot) for g in groups}
            lacking = [group for group, (nodes, _) in admitting.items() if not nodes]
            whys += [self._why(group, admitting[group][1]) for group in lacking]
            # Where all of them admit it, nothing is required.
            worker, ps = (
                {names.NODE: admitting[g][0]}
                if g in admitting and len(admitting[g][0]) < len(self._hosts[g])
                else ANYWHERE
                for g in GROUPS
            )
            asked.append((NOWHERE, NOWHERE) if lacking else (worker, ps))
        self.refused.pop(spec.uid, None)
        if all(worker == NOWHERE for worker, _ in asked):
            self.refused[spec.uid] = "; ".join(dict.fromkeys(whys))
        known = self._made.get(spec.uid)
        # The same object as long as nothing changes, which the driver sees at once.
        if known is None or known[0] is not spec or known[1] != asked:
            self._made[spec.uid] = known = (spec, asked, _with_required(spec, asked))
        return known[2]

    def forget_others(self, uids: Container[str]) -> None:
        """Drop what is stored about jobs that are not in `uids`."""
        self.refused = {uid: why for uid, why in self.refused.items() if uid in uids}
        self._made = {uid: limited for uid, limited in self._made.items() if uid in uids}
        self.verdicts.forget(uids)

    def refusing(self, rules: NodeRules) -> Mapping[str, str]:
        """Return the nodes that refuse a pod with these rules, each with the reason."""
        if rules not in self._refusals:
            self._refusals[rules] = {
                name: why
                for name, node in self._nodes.items()
                if (why := rules.refusal(node)) is not None
            }
        return self._refusals[rules]

    def _admitting(
        self, form: JobSpec, group: TaskGroup, runs: Mapping[TaskGroup, set[str]], slot: int
    ) -> Verdict:
        """Return the nodes that admit the pods of `group`, and why each other node does not."""
        refusals, hosts = self.refusing(form.rules[group]), self._hosts[group]
        staying = runs.get(group, set())
        learnt = ((node, self.verdicts.why(form, slot, node, runs=bool(runs))) for node in hosts)
        out = {node: why for node, why in learnt if why is not None}
        admitting = [
            node for node in hosts if node not in out and (node not in refusals or node in staying)
        ]
        # What runs where it gets no further pod stays there only if it can go nowhere else.
        admitting = admitting or [node for node in hosts if node in staying]
        return tuple(admitting), {**out, **refusals}

    def _staying(self, spec: JobSpec, pods: Iterable[Object]) -> dict[TaskGroup, set[str]]:
        """Return by group the nodes on which `pods` run already: a running pod is not evicted."""
        nodes: dict[TaskGroup, set[str]] = {}
        for pod in pods:
            name = pod["spec"].get("nodeName")
            task = (pod["metadata"].get("labels") or {}).get(names.TASK)
            if (
                name in self._nodes
                and task in GROUPS
                and not (p.has_ended(pod) or p.is_ending(pod))
            ):
                group = TaskGroup(task)
                rules = [form.rules[group] for form in spec.in_forms if group in form.rules]
                taints = [t for each in rules for t in each.untolerated(self._nodes[name])]
                if all(taint["effect"] != "NoExecute" for taint in taints):
                    nodes.setdefault(group, set()).add(name)
        return nodes

    def _why(self, group: TaskGroup, refusals: Mapping[str, str]) -> str:
        hosts = self._hosts[group]
        if not hosts:
            return f"waits until a node takes {group.tasks} (label {names.NODE_ROLE})"
        counts = Counter(refusals[node] for node in hosts)
        causes = (f"{why} ({n} node{'s' * (n > 1)})" for why, n in counts.most_common())
        return f"no node admits its {group.tasks}: {', '.join(causes)}"


def _lasting(node: Object) -> Object:
    """Return name, labels and taints of a node, without taints of a temporary absence."""
    meta = node["metadata"]
    taints = (node.get("spec") or {}).get("taints") or ()
    kept = [taint for taint in taints if taint["key"] not in AWAY]
    return {
        "metadata": {"name": meta["name"], "labels": meta.get("labels") or {}},
        "spec": {"taints": kept},
    }


def _with_required(spec: JobSpec, asked: list[Both]) -> JobSpec:
    """Return the job with the nodes `asked` for in each form as its requirements."""
    if not spec.forms:
        ((worker, ps),) = asked
        job = replace(spec.job, requires=worker, ps_requires=ps)
        return replace(spec, job=job) if worker or ps else spec
    forms = tuple(
        replace(form, requires=worker, ps_requires=ps)
        for form, (worker, ps) in zip(spec.job.forms, asked, strict=True)
    )
    return replace(spec, job=replace(spec.job, forms=forms))


class Learning:
    """Records refusals as verdicts, and reports each one in the status of its job."""

    def __init__(
        self, clock: SlotClock, reader: JobReader, patience: Patience, admission: Admission
    ) -> None:
        self._clock, self._reader, self._patience = clock, reader, patience
        self._admission, self._verdicts = admission, admission.verdicts
        self._tried: dict[str, int] = {}  # versions of jobs of which a pod can be made, by uid
        self._counts: Counter[str] = Counter()  # pods of each namespace at the last boundary

    def tries(self, now: float, is_due: bool, seen: Seen) -> list[Create]:
        """Return pods to create in a dry run; more if a slot `is_due`. Give answers to `tried`."""
        # Tried are jobs that are new, edited, or were refused long enough ago. If a slot `is_due`,
        # jobs are tried as well that had capacity in the last slot and got no pod, and jobs in
        # whose namespace pods ended, because that may free quota.
        slot, freed = self._clock.slot(now), set()
        if is_due:
            counts = Counter(pod["metadata"]["namespace"] for pod in seen.ours)
            freed = {space for space, count in self._counts.items() if counts[space] < count}
            self._counts = counts
            known = self._reader.specs
            self._tried = {uid: version for uid, version in self._tried.items() if uid in known}
        tries: list[Create] = []
        for uid, spec in list(self._reader.specs.items()):
            is_over = self._reader.statuses[uid].phase in TERMINAL
            is_barred = self._verdicts.why(spec, slot) is not None and spec.namespace not in freed
            again = is_due and self._patience.is_refused(uid, "create")
            is_known = self._tried.get(uid) == spec.generation and not again
            if spec.is_existing or is_over or is_barred or is_known or uid in seen.pods:
                continue
            try:
                tries += [Create(uid, p.tried_pod(form)) for form in spec.in_forms]
            except Exception as error:  # noqa: BLE001 (any error is reported on this job)
                self._reader.fail(uid, error, "acting on", now)
        return tries

    def tried(self, tries: Iterable[Create], failures: Iterable[Failure], now: float) -> None:
        """Record which jobs can have a pod, in one of their forms at least; the others wait."""
        slot, refused = self._clock.slot(now), Counter(uid for uid, *_ in failures)
        why = {uid: str(refusal) for uid, _, refusal in failures}
        for uid, count in Counter(each.job for each in tries).items():
            spec = self._reader.specs[uid]
            if refused[uid] < count:
                self._tried[uid] = spec.generation
                self._verdicts.accept(uid)
                continue
            self._tried.pop(uid, None)
            self._verdicts.refuse(spec, slot, why[uid])
            again = self._clock.wall(self._clock.begin(self._verdicts.until(uid)))
            message = f"{why[uid]}; tried again at {time_text(again)}"
            self._reader.statuses[uid].waits(PODS_REFUSED, message, now)

    def accept_bound(self, job_pods: p.Pods, slot: int) -> None:
        """Drop expired verdicts against nodes that now run a pod of the job."""
        for uid, pods in job_pods.items():
            for pod in pods.values():
                if "nodeName" in pod["spec"]:
                    self._verdicts.accept(uid, pod["spec"]["nodeName"], slot)

    def withdrawn(self, uid: str, pods: Iterable[Any], stuck: Container[str], now: float) -> None:
        """Exclude the nodes on which the scheduler did not bind any pod of a withdrawn gang."""
        pods, spec = list(pods), self._reader.specs.get(uid)
        bound = {pod["spec"].get("nodeName") for pod in pods}
        message = "the scheduler found no room for all pods; tried again in the next slot"
        for pod in pods:
            node = p.target_node(pod)
            # Where another pod of the gang is bound, the node is fine, and the number too high.
            if pod["metadata"]["uid"] in stuck and node is not None and node not in bound:
                why = said(pod, "PodScheduled").get("message", "")
                message = f"the scheduler lets it not go to node {node}: {why}"
                if spec is not None:
                    self._verdicts.refuse(spec, self._clock.slot(now) + 1, why, node)
        if uid in self._reader.statuses:
            self._reader.statuses[uid].in_trouble("Withdrawn", message, now)

    def not_admitted(self, steps: Steps, forms: Mapping[str, int], now: float) -> None:
        """Exclude nodes that refuse the created pods, although they admit the job's template."""
        for uid, (pod, rules, why) in steps.refused.items():
            spec = self._reader.specs.get(uid)
            if spec is None or uid not in self._reader.statuses:
                continue
            known = self._admission.refusing(spec.begun_in(forms[uid]).rules[pod.task])
            for node, refusal in self._admission.refusing(rules).items():
                if node == pod.node or node not in known:
                    self._verdicts.refuse(spec, self._clock.slot(now) + 1, refusal, node)
            message = f"node {pod.node} does not admit pod {pod.name}: {why}"
            self._reader.statuses[uid].in_trouble("NotAdmitted", message, now)


def too_long(driver: Driver[JobSpec], spec: JobSpec) -> str:
    """Return why a job takes more slots than the policy plans ahead; empty if it does not."""
    # A job that is worth nothing by then is left to the policy, which turns it away.
    reach = driver.planner.lookahead
    slots = None if reach is None else driver.fewest_slots(spec)
    if reach is None or slots is None or slots <= reach or not spec.job.utility(slots - 1):
        return ""
    return (
        f"takes {slots} slots even with all the workers that fit, and policy "
        f"{driver.policy.name} plans {reach} ahead: run the controller with --lookahead "
        f"{slots} or more, or with longer --slot-seconds"
    )
