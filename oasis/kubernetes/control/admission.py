"""Admission of pods by nodes, written into the jobs as their requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from oasis.driver.driver import Driver
from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import AWAY, Place, has_ended
from oasis.kubernetes.cluster.pods import is_ending
from oasis.kubernetes.cluster.world import Requests, free_room
from oasis.kubernetes.objects.neighbours import Bound, Neighbours, PodRules
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.volumes import Volumes
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling.capabilities import Planner
from oasis.scheduling.policy import Policy

Object = Mapping[str, Any]
Required = Mapping[str, tuple[str, ...]]
Both = tuple[Required, Required]  # of workers and of parameter servers, as in `GROUPS`

Verdict = tuple[tuple[str, ...], Mapping[str, str]]  # nodes that admit, and why the others do not

ANYWHERE: Required = {}
NOWHERE: Required = {names.NODE: ("/",)}  # which is the name of no node


class Admission:
    """Judges pods against nodes as kube-scheduler does, and remembers what it found.

    A machine has the name of its node as a label, and a job requires one of the names of the nodes
    that admit its pods. So a change of the labels or the taints of a node is, to those jobs whose
    verdict it changes, an edit; the machines stay the same.
    """

    def __init__(
        self,
        places: Iterable[Place],
        nodes: Iterable[Object],
        volumes: Volumes | None = None,
        requests: Requests | None = None,
    ) -> None:
        self._requests = requests or Requests()
        self.refused: dict[str, str] = {}  # why no node admits a job in any form, by its uid
        self._hosts: dict[TaskGroup, tuple[str, ...]] = {}
        self._nodes: dict[str, Object] = {}  # those that are gone stay as they were
        self._refusals: dict[NodeRules, dict[str, str]] = {}  # by rules and node
        self._learned: dict[tuple[str, NodeRules], NodeRules] = {}
        self._made: dict[str, tuple[JobSpec, list[Both], JobSpec]] = {}
        self._together: dict[str, tuple[str, ...]] = {}  # where the pods of a job are to be
        self.look(places, nodes, volumes)

    def look(
        self,
        places: Iterable[Place],
        nodes: Iterable[Object],
        volumes: Volumes | None = None,
        pods: Iterable[Object] = (),
    ) -> None:
        """Update the machines of the plan, the nodes, the volumes and the pods."""
        self._volumes = volumes
        self._around = {node["metadata"]["name"]: node for node in nodes}
        self._pods = [pod for pod in pods if pod["spec"].get("nodeName") and not has_ended(pod)]
        bound = (Bound.of(pod, pod["spec"]["nodeName"]) for pod in self._pods)
        self._neighbours = Neighbours(self._around, bound)
        places = tuple(places)
        for group in GROUPS:
            hosts = (place.node for place in places if group in place.hosts)
            self._hosts[group] = tuple(dict.fromkeys(hosts))
        known = {place.node for place in places}
        seen = {name: _lasting(node) for name, node in self._around.items()}
        found = {name: seen.get(name, self._nodes.get(name)) for name in known}
        now = {name: node for name, node in found.items() if node is not None}
        if now != self._nodes:
            self._nodes = now
            self._refusals.clear()

    def required(self, spec: JobSpec, pods: Iterable[Object]) -> JobSpec:
        """Return the job as its owner wants it, limited to the nodes that admit its pods.

        Where its `pods` run they stay, though a node that got another label or a taint without
        ``NoExecute`` takes no new ones.
        """
        pods = tuple(pods)
        staying, own = self._staying(spec, pods), {pod["metadata"]["uid"] for pod in pods}
        asked: list[Both] = []
        whys: list[str] = []
        for form in spec.in_forms:
            groups = [g for g in GROUPS if g is TaskGroup.WORKER or form.needs_ps(form.job)]
            found = {g: self._admitting(form, g, staying, own) for g in groups}
            self._put_together(form, found, pods)
            lacking = [group for group, (nodes, _) in found.items() if not nodes]
            whys += [self._why(group, found[group][1]) for group in lacking]
            worker, ps = (
                self._required(g, found[g][0]) if g in found else ANYWHERE for g in GROUPS
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

    def learn(self, uid: str, rules: NodeRules, pod: NodeRules, node: str) -> None:
        """Record that the node of a pod did not admit it.

        Whoever made or changed the pod added to the rules of its template, or the job was to get
        one more pod on a node where it only stays. From now on its `pod` says where it may go, and
        it stays only as long as no other node admits it.
        """
        if node in self._nodes and pod.refusal(self._nodes[node]) is not None:
            self._learned[uid, rules] = pod

    def forget_others(self, uids: Iterable[str]) -> None:
        """Forget all other jobs."""
        kept = set(uids)
        self.refused = {uid: why for uid, why in self.refused.items() if uid in kept}
        self._made = {uid: made for uid, made in self._made.items() if uid in kept}
        self._learned = {key: rules for key, rules in self._learned.items() if key[0] in kept}
        self._together = {uid: part for uid, part in self._together.items() if uid in kept}

    def _admitting(
        self,
        form: JobSpec,
        group: TaskGroup,
        staying: Mapping[TaskGroup, set[str]],
        own: Container[str],
    ) -> Verdict:
        refusals, stay = self._rules(form, group)
        if beside := self._beside_others(form, group, own):
            refusals = {**beside, **refusals}
        hosts = self._hosts[group]
        found = tuple(node for node in hosts if node not in refusals)
        if stay or not found:
            kept = staying.get(group, set())
            found = tuple(node for node in hosts if node not in refusals or node in kept)
        return found, refusals

    def _required(self, group: TaskGroup, found: tuple[str, ...]) -> Required:
        if not found:
            return NOWHERE
        return ANYWHERE if len(found) == len(self._hosts[group]) else {names.NODE: found}

    def _beside_others(
        self, form: JobSpec, group: TaskGroup, own: Container[str]
    ) -> dict[str, str]:
        """Nodes that the pods of others keep those of a group off, and why.

        What its own pods say of each other is seen when all of them are there.
        """
        rules, gang, at = form.beside[group], form.beside.values(), form.rules[group]
        if rules.spread:
            kept = (s for s in rules.spread if not any(one.is_in(s.pods) for one in gang))
            rules = replace(rules, spread=tuple(kept))
        judge = self._neighbours.judge(rules, at, own)
        if rules.near and not judge.near and _may_be_near(rules, gang):
            judge = self._neighbours.judge(replace(rules, near=()), at, own)
        if not judge.minds:
            return {}
        return {
            name: why
            for name in self._hosts[group]
            if name in self._around and (why := judge.refusal(name)) is not None
        }

    def _put_together(
        self, form: JobSpec, found: dict[TaskGroup, Verdict], pods: Iterable[Object]
    ) -> None:
        """Limit groups with pod affinity to the nodes of a single topology domain.

        That is where they are; else where the most workers find room now. A job is not sent to
        another part before it finds no room where it was sent to.
        """
        groups = [g for g in found if _may_be_near(form.beside[g], [form.beside[g]])]
        keys = sorted({term.key for g in groups for term in form.beside[g].near})
        if not keys:
            return
        parts: dict[tuple[str, ...], dict[TaskGroup, list[str]]] = {}
        for group in groups:
            for node in found[group][0]:
                labels = self._nodes[node]["metadata"]["labels"]
                part = tuple(labels.get(key, "") for key in keys)
                parts.setdefault(part, {g: [] for g in groups})[group].append(node)
        if not parts:
            return
        chosen = self._chosen(form, parts, groups[0], pods)
        for group in groups:
            nodes, refusals = found[group]
            found[group] = tuple(node for node in nodes if node in parts[chosen][group]), refusals

    def _chosen(
        self,
        form: JobSpec,
        parts: Mapping[tuple[str, ...], Mapping[TaskGroup, Iterable[str]]],
        group: TaskGroup,
        pods: Iterable[Object],
    ) -> tuple[str, ...]:
        """Choose the domain of the cluster for a job, by the number of pods that fit there."""
        mine = {pod["metadata"]["uid"] for pod in pods}
        there = {pod["spec"].get("nodeName") for pod in pods}
        others = (pod for pod in self._pods if pod["metadata"]["uid"] not in mine)
        free = free_room(self._around, others, self._requests)
        asked = form.worker_requests if group is TaskGroup.WORKER else form.ps_requests
        most = {
            part: sum(_tasks_in(free.get(node, {}), asked) for node in groups[group])
            for part, groups in parts.items()
        }
        before = self._together.get(form.uid)
        chosen = max(
            sorted(parts),
            key=lambda part: (
                bool(there & {*parts[part][group]}),
                part == before and most[part] >= form.min_workers,
                min(most[part], form.job.chunks),
            ),
        )
        runs = there & {*parts[chosen][group]}
        if before is not None and before in parts and not runs and most[chosen] < form.min_workers:
            chosen = before
        self._together[form.uid] = chosen
        return chosen

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
        """Constraints of the pods of a job that the plan does not foresee."""
        found = {
            f"{name} of its {group.tasks}": None
            for form in spec.in_forms
            for group, rules in form.rules.items()
            for name in (
                *rules.unjudged,
                *self._unbound(rules, spec.namespace),
                *_among_themselves(form.beside[group], form.beside.values()),
            )
        }
        return list(found)

    def _unbound(self, rules: NodeRules, namespace: str) -> list[str]:
        if self._volumes is None:
            return []
        return [f"volume {n}, not bound yet," for n in self._volumes.unbound(rules, namespace)]

    def _staying(self, spec: JobSpec, pods: Iterable[Object]) -> dict[TaskGroup, set[str]]:
        """Return nodes on which pods of each group run already: a running pod is not evicted."""
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

    def _why(self, group: TaskGroup, refusals: Mapping[str, str]) -> str:
        hosts = self._hosts[group]
        if not hosts:
            return f"waits until a node takes {group.tasks} (label {names.NODE_ROLE})"
        counts = Counter(refusals[node] for node in hosts)
        said = (f"{why} ({n} node{'s' * (n > 1)})" for why, n in counts.most_common())
        return f"no node admits its {group.tasks}: {', '.join(said)}"


def _may_be_near(rules: PodRules, gang: Iterable[PodRules]) -> bool:
    """Return whether a pod of the gang is what such a pod wants to be near."""
    return bool(rules.near) and any(all(own.is_in(t.pods) for t in rules.near) for own in gang)


def _among_themselves(rules: PodRules, gang: Iterable[PodRules]) -> list[str]:
    """Constraints between pods of a gang that no plan foresees."""
    gang = list(gang)
    found = []
    if any(own.is_in(term.pods) for own in gang for term in rules.apart):
        found.append("affinity.podAntiAffinity")
    if _may_be_near(rules, gang) and not _may_be_near(rules, [rules]):
        found.append("affinity.podAffinity")
    if any(own.is_in(one.pods) for own in gang for one in rules.spread):
        found.append("topologySpreadConstraints")
    return [f"{name} (between its own pods)" for name in found]


def _tasks_in(room: Mapping[str, Fraction], asked: Mapping[str, Fraction]) -> int:
    """Number of tasks that fit on a node."""
    demand = {**asked, "pods": Fraction(1)}
    return max(0, min(int(room.get(k, Fraction(0)) // v) for k, v in demand.items() if v))


def _lasting(node: Object) -> Object:
    """Return the facts that decide on a node, without those of a temporary absence."""
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


def reach_of(policy: Policy) -> int | None:
    """Slots that a policy plans ahead; None if no job is too long for it."""
    return policy.lookahead if isinstance(policy, Planner) else None


def too_long(driver: Driver[JobSpec], spec: JobSpec, reach: int) -> str:
    """Return why a policy that plans `reach` slots ahead can never plan a job; empty if it can.

    A job that is worth nothing by then is left to the policy, which turns it away.
    """
    slots = driver.fewest_slots(spec)
    if slots is None or slots <= reach or not spec.job.utility(slots - 1):
        return ""
    return (
        f"takes {slots} slots even with all the workers that fit, and policy "
        f"{driver.policy.name} plans {reach} ahead: run the controller with --lookahead "
        f"{slots} or more, or with longer --slot-seconds"
    )
