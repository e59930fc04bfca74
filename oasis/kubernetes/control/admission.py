"""Which nodes admit the pods of which jobs, written into the jobs as what they require."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import AWAY, Place, has_ended
from oasis.kubernetes.cluster.pods import is_ending
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.volumes import Volumes
from oasis.model.groups import GROUPS, TaskGroup

Object = Mapping[str, Any]
Required = Mapping[str, tuple[str, ...]]
Both = tuple[Required, Required]  # of workers and of parameter servers, as in `GROUPS`

ANYWHERE: Required = {}
NOWHERE: Required = {names.NODE: ("/",)}  # which is the name of no node


class Admission:
    """Judges as the cluster's own scheduler does, and keeps what it found.

    A machine has the name of its node as a label, and a job requires one of the names of the nodes
    that admit its pods. So a change of the labels or the taints of a node is, to those jobs whose
    verdict it changes, an edit; the machines stay the same.
    """

    def __init__(
        self, places: Iterable[Place], nodes: Iterable[Object], volumes: Volumes | None = None
    ) -> None:
        self.refused: dict[str, str] = {}  # why no node admits a job in any form, by its uid
        self._hosts: dict[TaskGroup, tuple[str, ...]] = {}
        self._nodes: dict[str, Object] = {}  # those that are gone stay as they were
        self._refusals: dict[NodeRules, dict[str, str]] = {}  # by rules and node
        self._learned: dict[tuple[str, NodeRules], NodeRules] = {}
        self._made: dict[str, tuple[JobSpec, list[Both], JobSpec]] = {}
        self.look(places, nodes, volumes)

    def look(
        self, places: Iterable[Place], nodes: Iterable[Object], volumes: Volumes | None = None
    ) -> None:
        """Take in the machines of the plan, and what their nodes and the volumes are like now."""
        self._volumes = volumes
        places = tuple(places)
        for group in GROUPS:
            hosts = (place.node for place in places if group in place.hosts)
            self._hosts[group] = tuple(dict.fromkeys(hosts))
        known = {place.node for place in places}
        seen = {node["metadata"]["name"]: _lasting(node) for node in nodes}
        found = {name: seen.get(name, self._nodes.get(name)) for name in known}
        now = {name: node for name, node in found.items() if node is not None}
        if now != self._nodes:
            self._nodes = now
            self._refusals.clear()

    def required(self, spec: JobSpec, pods: Iterable[Object]) -> JobSpec:
        """The job, as its owner wants it, with the nodes that it requires.

        Where its `pods` run they stay, though a node that got another label or a taint without
        ``NoExecute`` takes no new ones.
        """
        staying = self._staying(spec, pods)
        asked: list[Both] = []
        whys: list[str] = []
        for form in spec.in_forms:
            worker = self._admitting(form, TaskGroup.WORKER, staying)
            has_ps = spec.needs_ps(form.job)
            ps = self._admitting(form, TaskGroup.PS, staying) if has_ps else ANYWHERE
            lacking = [g for g, each in zip(GROUPS, (worker, ps), strict=True) if each == NOWHERE]
            whys += [self._why(form, group) for group in lacking]
            asked.append((NOWHERE, NOWHERE) if lacking else (worker, ps))
        self.refused.pop(spec.uid, None)
        if all(worker == NOWHERE for worker, _ in asked):
            self.refused[spec.uid] = "; ".join(dict.fromkeys(whys))
        known = self._made.get(spec.uid)
        # The same object as long as nothing changes, which the driver sees at once.
        if known is None or known[0] is not spec or known[1] != asked:
            self._made[spec.uid] = known = (spec, asked, _with_required(spec, asked))
        return known[2]

    def learn(self, uid: str, rules: NodeRules, pod: NodeRules, node: str) -> None:
        """A pod of a job was made, and its node does not admit it.

        Whoever made or changed the pod added to the rules of its template, or the job was to get
        one more pod on a node where it only stays. From now on its `pod` says where it may go, and
        it stays only as long as no other node admits it.
        """
        if node in self._nodes and pod.refusal(self._nodes[node]) is not None:
            self._learned[uid, rules] = pod

    def forget_others(self, uids: Iterable[str]) -> None:
        """Keep only what is known of these jobs."""
        kept = set(uids)
        self.refused = {uid: why for uid, why in self.refused.items() if uid in kept}
        self._made = {uid: made for uid, made in self._made.items() if uid in kept}
        self._learned = {key: rules for key, rules in self._learned.items() if key[0] in kept}

    def _admitting(
        self, form: JobSpec, group: TaskGroup, staying: Mapping[TaskGroup, set[str]]
    ) -> Required:
        refusals, stay = self._rules(form, group)
        hosts = self._hosts[group]
        found = tuple(node for node in hosts if node not in refusals)
        if stay or not found:
            kept = staying.get(group, set())
            found = tuple(node for node in hosts if node not in refusals or node in kept)
        if not found:
            return NOWHERE
        return ANYWHERE if len(found) == len(hosts) else {names.NODE: found}

    def _rules(self, form: JobSpec, group: TaskGroup) -> tuple[dict[str, str], bool]:
        """Nodes that refuse the pods of a group and why; whether pods that run elsewhere stay."""
        rules = form.rules[group]
        learned = self._learned.get((form.uid, rules), rules)
        asked = learned
        if self._volumes is not None and learned.claims:
            asked = self._volumes.narrowed(learned, form.namespace)
        if asked not in self._refusals:
            self._refusals[asked] = {
                name: why
                for name, node in self._nodes.items()
                if (why := asked.refusal(node)) is not None
            }
        return self._refusals[asked], learned is rules

    def unjudged(self, spec: JobSpec) -> list[str]:
        """What the pods of a job ask for and the plan does not foresee."""
        found = {
            f"{name} of its {group.tasks}": None
            for form in spec.in_forms
            for group, rules in form.rules.items()
            for name in (*rules.unjudged, *self._unbound(rules, spec.namespace))
        }
        return list(found)

    def _unbound(self, rules: NodeRules, namespace: str) -> list[str]:
        if self._volumes is None:
            return []
        return [f"volume {n}, not bound yet," for n in self._volumes.unbound(rules, namespace)]

    def _staying(self, spec: JobSpec, pods: Iterable[Object]) -> dict[TaskGroup, set[str]]:
        """Nodes where pods of each group run that nothing evicts."""
        found: dict[TaskGroup, set[str]] = {}
        for pod in pods:
            name = pod["spec"].get("nodeName")
            task = (pod["metadata"].get("labels") or {}).get(names.TASK)
            if name in self._nodes and task in GROUPS and not (has_ended(pod) or is_ending(pod)):
                group = TaskGroup(task)
                rules = [form.rules[group] for form in spec.in_forms if group in form.rules]
                taints = [t for each in rules for t in each.untolerated(self._nodes[name])]
                if all(taint["effect"] != "NoExecute" for taint in taints):
                    found.setdefault(group, set()).add(name)
        return found

    def _why(self, form: JobSpec, group: TaskGroup) -> str:
        hosts = self._hosts[group]
        if not hosts:
            return f"waits until a node takes {group.tasks} (label {names.NODE_ROLE})"
        refusals, _ = self._rules(form, group)
        counts = Counter(refusals[node] for node in hosts)
        said = (f"{why} ({n} node{'s' * (n > 1)})" for why, n in counts.most_common())
        return f"no node admits its {group.tasks}: {', '.join(said)}"


def _lasting(node: Object) -> Object:
    """What the verdict on a node follows from, but for what is so only while it is away."""
    meta = node["metadata"]
    taints = (node.get("spec") or {}).get("taints") or ()
    kept = [taint for taint in taints if taint["key"] not in AWAY]
    return {
        "metadata": {"name": meta["name"], "labels": meta.get("labels") or {}},
        "spec": {"taints": kept},
    }


def _with_required(spec: JobSpec, asked: list[Both]) -> JobSpec:
    if not spec.forms:
        ((worker, ps),) = asked
        job = replace(spec.job, requires=worker, ps_requires=ps)
        return replace(spec, job=job) if worker or ps else spec
    forms = tuple(
        replace(form, requires=worker, ps_requires=ps)
        for form, (worker, ps) in zip(spec.job.forms, asked, strict=True)
    )
    return replace(spec, job=replace(spec.job, forms=forms))
