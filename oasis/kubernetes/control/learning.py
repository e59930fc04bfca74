"""Learns from refusals: of dry runs, of the cluster's scheduler, and of nodes for created pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Any

from oasis.kubernetes.acting import Create, Steps
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.control.admission import Admission
from oasis.kubernetes.control.job_reader import JobReader, begun_in
from oasis.kubernetes.control.patience import Failure, Patience
from oasis.kubernetes.control.statuses import PODS_REFUSED
from oasis.kubernetes.objects.conditions import time_text
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.schema import TERMINAL

Pods = Mapping[str, Mapping[str, Any]]  # of each job, by uid and by name


class Learning:
    """Records refusals as verdicts, and reports each one in the status of its job."""

    def __init__(
        self, clock: SlotClock, reader: JobReader, patience: Patience, admission: Admission
    ) -> None:
        self._clock, self._reader, self._patience = clock, reader, patience
        self._admission, self._verdicts = admission, admission.verdicts
        self._tried: dict[str, int] = {}  # versions of jobs of which a pod can be made, by uid
        self._counts: Counter[str] = Counter()  # pods of each namespace at the last boundary

    def tries(self, now: float, is_due: bool, seen: Mapping[str, list[Any]]) -> list[Create]:
        """Pods to create in a dry run before planning; `tried` takes the answers."""
        # Tried are jobs that are new, edited, or were refused long enough ago. If a slot `is_due`,
        # jobs are tried as well that had capacity in the last slot and got no pod, and jobs in
        # whose namespace pods ended, because that may free quota.
        slot, freed, job_pods = self._clock.slot(now), set(), None
        if is_due:
            job_pods = p.by_job(seen)
            pods = (pod for each in job_pods.values() for pod in each.values())
            counts = Counter(pod["metadata"]["namespace"] for pod in pods)
            freed = {space for space, count in self._counts.items() if counts[space] < count}
            self._counts = counts
        due = [
            spec
            for uid, spec in self._reader.specs.items()
            if not spec.is_existing
            and self._reader.statuses[uid].phase not in TERMINAL
            and (self._verdicts.why(spec, slot) is None or spec.namespace in freed)
            and (
                self._tried.get(uid) != spec.generation
                or (is_due and self._patience.is_refused(uid, "create"))
            )
        ]
        tries: list[Create] = []
        for spec in due:
            job_pods = p.by_job(seen) if job_pods is None else job_pods
            if spec.uid not in job_pods:
                try:
                    tries += [Create(spec.uid, p.tried_pod(form)) for form in spec.in_forms]
                except Exception as error:  # noqa: BLE001 (any error is reported on this job)
                    self._reader.fail(spec.uid, error, "acting on", now)
        return tries

    def tried(self, tries: Iterable[Create], failures: Iterable[Failure], now: float) -> None:
        """Record which jobs can have a pod, in one of their forms at least."""
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

    def accept_bound(self, job_pods: Pods, slot: int) -> None:
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
                why = (p.condition(pod, "PodScheduled") or {}).get("message", "")
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
            known = self._admission.refusing(begun_in(spec, forms[uid]).rules[pod.task])
            for node, refusal in self._admission.refusing(rules).items():
                if node == pod.node or node not in known:
                    self._verdicts.refuse(spec, self._clock.slot(now) + 1, refusal, node)
            message = f"node {pod.node} does not admit pod {pod.name}: {why}"
            self._reader.statuses[uid].in_trouble("NotAdmitted", message, now)

    def forget_others(self, existing: Container[str]) -> None:
        """Drop what was learnt about jobs that no longer exist."""
        self._verdicts.forget(existing)
        self._tried = {uid: version for uid, version in self._tried.items() if uid in existing}
