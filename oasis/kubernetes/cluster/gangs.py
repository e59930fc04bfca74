"""Gangs: which pods an allocation asks for, and how those that must know each other learn it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from oasis.driver.entry import Entry
from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import Place, natural
from oasis.kubernetes.cluster.pods import (
    WantedPod,
    has_ended,
    is_ending,
    is_gated,
    is_working,
    owner_of,
    phase_of,
    prefix_of,
    target_node,
)
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.objects.existing import BY_NAME, COMPLETION_INDEX, JOB_INDEX, part_of
from oasis.kubernetes.objects.network import Gang, address, environment, service_name
from oasis.kubernetes.objects.oasis_job import JobSpec, identity
from oasis.model.errors import InstanceError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling.job import Allocation

Object = Mapping[str, Any]
Slot = tuple[TaskGroup, Place]  # room for one pod
Numbered = list[tuple[int, str | None]]  # index and name of the pod that is there, for each slot
CHIEF = (TaskGroup.WORKER, 0)


def plan_hash(allocation: Allocation, places: tuple[Place, ...]) -> str:
    """Return ten hexadecimal digits that distinguish one allocation from another."""
    plain = [[[places[k].id, count] for k, count in tasks] for tasks in allocation.by_group]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:10]


def wanted_of(
    entry: Entry[JobSpec], places: tuple[Place, ...], seen: Seen
) -> tuple[WantedPod, ...]:
    """Return the pods that the allocation of a job asks for; empty if its object is gone."""
    spec, allocation, pods = entry.spec, entry.allocation, seen.pods.get(entry.spec.uid, {})
    if not spec.is_existing:
        return _numbered(spec.begun_in(entry.form), allocation, places, pods)
    if spec.uid not in seen.existing:  # it went, or lost our label, in this slot
        return ()
    return _matched(spec, seen.existing[spec.uid][1], allocation, places, pods)


def _numbered(
    spec: JobSpec, allocation: Allocation, places: tuple[Place, ...], pods: Mapping[str, Object]
) -> tuple[WantedPod, ...]:
    """Return the pods of an allocation, workers first; indexed if they must know each other."""
    # Indices are those from 0 on when a gang begins. While workers come and go, a pod keeps its
    # index, of those on one node the highest leaves first, and a new pod gets the lowest that is
    # free. If worker 0 or a parameter server has to leave, or is gone, all pods begin anew, because
    # the others cannot train without it. The names of a job that is restarted at every change
    # differ from one allocation to the next, so that no pod of the former one is among those of the
    # latter. The `spec` is the job in the form in which it runs.
    slots = [
        (group, places[machine])
        for group in GROUPS
        for machine, number in group.placed(allocation)
        for _ in range(number)
    ]
    tasks = [task for task, _ in slots]
    salt, is_elastic = plan_hash(allocation, places), spec.resize == "elastic"
    if spec.network is None:  # numbered on each node
        numbered: Numbered | None = _counted(slots)
        salt = "" if is_elastic else salt
    elif is_elastic:
        numbered = _going_on(slots, pods)
    else:
        numbered = _counted(tasks)
    if numbered is None:  # then none of the names is that of a pod that is there
        numbered, salt = _counted(tasks), "\0".join((salt, *sorted(pods)))
    gang = []
    for (task, place), (index, name) in zip(slots, numbered, strict=True):
        key = "\0".join((spec.uid, task, place.node, str(index), salt))
        digest = hashlib.sha256(key.encode()).hexdigest()[:10]
        known = None if spec.network is None else index
        place_in_gang = f"{task[0]}{index}" if known is None else f"{task}-{index}"
        pod_name = name or f"{prefix_of(spec)}-{place_in_gang}-{digest}"
        gang.append(WantedPod(pod_name, task, place.node, place.hostname, known))
    return tuple(gang)


def _matched(
    spec: JobSpec,
    item: Object,
    allocation: Allocation,
    places: tuple[Place, ...],
    pods: Mapping[str, Object],
) -> tuple[WantedPod, ...]:
    """Return the pods of an allocation by the names that another controller gave them."""
    # A pod whose gate was opened stays where it was sent. Gated ones, in order of their names, go
    # to what is left of the allocation. What there is no pod for yet has a name that no pod can
    # have. Which template is whose says `spec`, the job as it was read last, because the
    # annotations of the object may have been edited since.
    parts = {part.name: part for part in BY_NAME[spec.kind].parts(item)}
    gang: list[WantedPod] = []
    for group, part_name in zip(GROUPS, spec.part_names, strict=True):
        part = None if part_name is None else parts.get(part_name)
        if part is None:
            continue
        mine = of_part(pods, part.name)
        alive = {
            name: mine[name]
            for name in sorted(mine, key=natural)
            if not has_ended(mine[name]) and not is_ending(mine[name])
        }
        sent: defaultdict[str | None, list[str]] = defaultdict(list)
        for name, pod in alive.items():
            sent["" if is_gated(pod) else target_node(pod)].append(name)
        gated, free, placed = sent.pop("", []), list[Place](), list[WantedPod]()
        for machine, number in group.placed(allocation):
            place = places[machine]
            stay = sent[place.node][:number]
            placed += [WantedPod(name, group, place.node, place.hostname) for name in stay]
            free += [place] * (number - len(stay))
        # Its controller makes no more pods than have to succeed yet.
        due = part.completions - sum(phase_of(pod) == "Succeeded" for pod in mine.values())
        for k, place in enumerate(free):
            name = gated[k] if k < len(gated) else f"?{group}-{k}"
            if k < len(gated) or len(placed) < due:
                placed.append(WantedPod(name, group, place.node, place.hostname))
        gang += placed
    return tuple(gang)


def of_part(pods: Mapping[str, Object], name: str) -> dict[str, Object]:
    """Return the pods of the replicated job `name`; all pods if it is empty."""
    return {key: pod for key, pod in pods.items() if not name or part_of(pod) == name}


def _counted(among: Iterable[Hashable]) -> Numbered:
    """Return for each value its number among equal ones, from 0 on, and None for a pod's name."""
    numbers: defaultdict[Hashable, Iterator[int]] = defaultdict(count)
    return [(next(numbers[each]), None) for each in among]


def _going_on(slots: Sequence[Slot], pods: Mapping[str, Object]) -> Numbered | None:
    """Return index and name of the pod for each slot; None if all pods have to begin anew."""
    existing: defaultdict[tuple[str, str], list[tuple[bool, int, str]]] = defaultdict(list)
    for name, pod in pods.items():
        labels, notes = pod["metadata"]["labels"], pod["metadata"].get("annotations") or {}
        if names.INDEX in labels:  # it was made for a job with a network
            is_lost = is_ending(pod) or phase_of(pod) == "Failed"
            at = labels[names.TASK], notes.get(names.NODE, "")
            existing[at].append((is_lost, int(labels[names.INDEX]), name))
    taken = {(task, index) for (task, _), places in existing.items() for _, index, _ in places}
    for places in existing.values():
        places.sort(reverse=True)
    stay: list[tuple[str, tuple[bool, int, str] | None]] = [
        (task, places.pop() if (places := existing[task, place.node]) else None)
        for task, place in slots
    ]
    has_begun = any(not is_gated(pod) for pod in pods.values())
    kept = {(task, old[1]) for task, old in stay if old and not (has_begun and old[0])}
    if has_begun:
        servers = {sum(task == TaskGroup.PS for task, _ in each) for each in (slots, kept, taken)}
        if CHIEF not in kept or len(servers) > 1:
            return None
    else:  # what leaves was never seen by the others, and leaves its index to them
        taken = kept
    numbered: Numbered = []
    for task, old in stay:
        lowest = (k for k in count() if (task, k) not in taken)
        numbered.append((next(lowest), None) if old is None else old[1:])
        taken.add((task, numbered[-1][0]))
    begins = ((task, index) for (task, _), (index, _) in zip(slots, numbered, strict=True))
    return numbered if CHIEF in begins else None


def working_gang(
    wanted: Iterable[WantedPod],
    pods: Mapping[str, Object],
    min_workers: int,
    ps_needed: Any,
) -> list[str]:
    """Return the uids of the workers that do work now; none unless enough of them do."""
    # Where parameter servers are missing, only workers that the others can serve count.
    workers, ps = [], 0
    for pod in wanted:
        existing = pods.get(pod.name)
        if existing is not None and is_working(existing):
            if pod.task is TaskGroup.WORKER:
                workers.append(existing["metadata"]["uid"])
            else:
                ps += 1
    while workers and int(ps_needed(len(workers))) > ps:
        workers.pop()
    return workers if len(workers) >= min_workers else []


def has_succeeded(wanted: Iterable[WantedPod], pods: Mapping[str, Object]) -> bool:
    """Return whether the chief has succeeded: worker 0, or the first pod if none has an index."""
    workers = (pod for pod in wanted if pod.task is TaskGroup.WORKER)
    chief = min(workers, key=lambda pod: pod.index or 0, default=None)
    existing = None if chief is None else pods.get(chief.name)
    return existing is not None and phase_of(existing) == "Succeeded"


def annotations_of(
    spec: JobSpec, wanted: Iterable[WantedPod], pods: Mapping[str, Object]
) -> Callable[[WantedPod], dict[str, str]]:
    """Return a function from each pod of a gang to the annotations that name the other pods."""
    # Pods of a job without a network are told nothing; `pods` are those that are there, by name.
    network = spec.network
    if network is None:
        return lambda _: {}
    hosts = _hosts_of_others(spec, pods) if spec.is_existing else {g: {} for g in GROUPS}
    for pod in () if spec.is_existing else wanted:
        assert pod.index is not None  # a job with a network numbers its pods
        hosts[pod.task][pod.name] = pod.index, address(spec.name, pod.task, pod.index)
    by_task = [dict(each.values()) for each in hosts.values()]
    span = (spec.min_workers, spec.job.chunks) if spec.resize == "elastic" else None
    gang = Gang(spec.name, by_task[0], by_task[1], span)

    def annotations(pod: WantedPod) -> dict[str, str]:
        index, _ = hosts[pod.task][pod.name]
        read = environment(network, gang, pod.task, index)
        return {f"{names.ENV}{name}": value for name, value in read.items()}

    return annotations


Hosts = dict[TaskGroup, dict[str, tuple[int, str]]]  # index and host name by name of the pod


def _hosts_of_others(spec: JobSpec, pods: Mapping[str, Object]) -> Hosts:
    """Return index and host name of pods that another controller made, by group and name."""
    hosts: Hosts = {group: {} for group in GROUPS}
    for group, part in zip(GROUPS, spec.part_names, strict=True):
        mine = {} if part is None else of_part(pods, part)
        places = {}  # of each pod: index of its replicated job, and within that
        for name, pod in mine.items():
            labels = pod["metadata"].get("labels") or {}
            places[name] = int(labels.get(JOB_INDEX, 0)), int(labels.get(COMPLETION_INDEX, 0))
        # A recreated pod has the index of the one that failed: both count once.
        index = {place: k for k, place in enumerate(sorted(set(places.values())))}
        for name, pod in mine.items():
            host, within = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
            if not host or not within:
                expected = f"expected pods with hostname and subdomain, which {name} lacks"
                raise InstanceError(f"metadata.annotations.{names.FRAMEWORK}", expected)
            hosts[group][name] = index[places[name]], f"{host}.{within}"
    return hosts


def network_objects(
    spec: JobSpec, services: Iterable[Object], policies: Iterable[Object]
) -> tuple[Object, ...]:
    """Return the Service and NetworkPolicy that the pods of a job need and that are missing."""
    if spec.network is None or spec.is_existing:
        return ()
    meta = {
        "name": service_name(spec.name),
        "namespace": spec.namespace,
        "labels": identity(spec.name, spec.uid),
        "ownerReferences": [owner_of(spec)],  # they are deleted with the job
    }
    mine = {names.JOB_UID: spec.uid}
    headless = {
        "clusterIP": "None",
        "selector": mine,
        # Pods look for each other before they are ready, and
        # a name has to resolve in the very pod that has it.
        "publishNotReadyAddresses": True,
        "ports": [{"name": "train", "port": spec.network.port}],
    }
    pods = {"podSelector": {"matchLabels": mine}}
    closed = {**pods, "policyTypes": ["Ingress"], "ingress": [{"from": [pods]}]}
    network, lacking = "networking.k8s.io/v1", []
    if not _is_there(spec, services):
        lacking.append({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": headless})
    if spec.network.isolated and not _is_there(spec, policies):
        policy = {"apiVersion": network, "kind": "NetworkPolicy", "metadata": meta, "spec": closed}
        lacking.append(policy)
    return tuple(lacking)


def _is_there(spec: JobSpec, items: Iterable[Object]) -> bool:
    return any(
        each["metadata"]["name"] == service_name(spec.name)
        and not each["metadata"].get("deletionTimestamp")
        and any(o["uid"] == spec.uid for o in each["metadata"].get("ownerReferences") or ())
        for each in items
    )
