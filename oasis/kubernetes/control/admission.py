"""Admission of pods by nodes, written into the jobs as their requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from oasis.driver.driver import Driver
from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import AWAY, Place, has_ended
from oasis.kubernetes.cluster.pods import is_ending
from oasis.kubernetes.control.verdicts import Verdicts
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling.policy import Planner, Policy

Object = Mapping[str, Any]
Required = Mapping[str, tuple[str, ...]]
Both = tuple[Required, Required]  # of workers and of parameter servers, as in `GROUPS`

Verdict = tuple[tuple[str, ...], Mapping[str, str]]  # nodes that admit, and why the others do not

ANYWHERE: Required = {}
NOWHERE: Required = {names.NODE: ("/",)}  # which is the name of no node


class Admission:
    """Judges pods against nodes as kube-scheduler does, beside the `verdicts` that it learnt."""

    # A machine has the name of its node as a label, and a job requires one of the names of the
    # nodes that admit its pods. So a change of the labels or the taints of a node is, to those jobs
    # whose verdict it changes, an edit; the machines stay the same.
    def __init__(
        self, places: Iterable[Place], nodes: Iterable[Object], verdicts: Verdicts | None = None
    ) -> None:
        self._verdicts = verdicts or Verdicts()
        self.refused: dict[str, str] = {}  # why no node admits a job in any form, by its uid
        self._hosts: dict[TaskGroup, tuple[str, ...]] = {}
        self._nodes: dict[str, Object] = {}  # those that are gone stay as they were
        self._refusals: dict[NodeRules, dict[str, str]] = {}  # by rules and node
        self._made: dict[str, tuple[JobSpec, list[Both], JobSpec]] = {}
        self.look(places, nodes)

    def look(self, places: Iterable[Place], nodes: Iterable[Object]) -> None:
        """Update the machines of the plan, and the nodes."""
        places = tuple(places)
        for group in GROUPS:
            hosts = (place.node for place in places if group in place.hosts)
            self._hosts[group] = tuple(dict.fromkeys(hosts))
        seen = {node["metadata"]["name"]: _lasting(node) for node in nodes}
        latest = {p.node: seen.get(p.node, self._nodes.get(p.node)) for p in places}
        now = {name: node for name, node in latest.items() if node is not None}
        if now != self._nodes:
            self._nodes = now
            self._refusals.clear()

    def required(self, spec: JobSpec, pods: Iterable[Object], slot: int = 0) -> JobSpec:
        """Return the job as its owner wants it, limited to nodes that admit its pods in `slot`."""
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

    def forget_others(self, uids: Iterable[str]) -> None:
        """Forget all other jobs."""
        kept = set(uids)
        self.refused = {uid: why for uid, why in self.refused.items() if uid in kept}
        self._made = {uid: limited for uid, limited in self._made.items() if uid in kept}

    def refusing(self, rules: NodeRules) -> Mapping[str, str]:
        """Nodes that refuse a pod with these rules, and why."""
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
        refusals, hosts = self.refusing(form.rules[group]), self._hosts[group]
        staying = runs.get(group, set())
        learnt = ((node, self._verdicts.why(form, slot, node, runs=bool(runs))) for node in hosts)
        out = {node: why for node, why in learnt if why is not None}
        admitting = [
            node for node in hosts if node not in out and (node not in refusals or node in staying)
        ]
        # What runs where it gets no further pod stays there only if it can go nowhere else.
        admitting = admitting or [node for node in hosts if node in staying]
        return tuple(admitting), {**out, **refusals}

    def _staying(self, spec: JobSpec, pods: Iterable[Object]) -> dict[TaskGroup, set[str]]:
        """Return nodes on which pods of each group run already: a running pod is not evicted."""
        nodes: dict[TaskGroup, set[str]] = {}
        for pod in pods:
            name = pod["spec"].get("nodeName")
            task = (pod["metadata"].get("labels") or {}).get(names.TASK)
            if name in self._nodes and task in GROUPS and not (has_ended(pod) or is_ending(pod)):
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
    """Return why a policy that plans `reach` slots ahead can never plan a job; empty if it can."""
    # A job that is worth nothing by then is left to the policy, which turns it away.
    slots = driver.fewest_slots(spec)
    if slots is None or slots <= reach or not spec.job.utility(slots - 1):
        return ""
    return (
        f"takes {slots} slots even with all the workers that fit, and policy "
        f"{driver.policy.name} plans {reach} ahead: run the controller with --lookahead "
        f"{slots} or more, or with longer --slot-seconds"
    )
