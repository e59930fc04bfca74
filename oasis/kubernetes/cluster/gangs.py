"""Gangs whose pods know each other: their indices, and annotations that describe the gang."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, filterfalse
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster.nodes import Place, phase_of
from oasis.kubernetes.cluster.pods import (
    WantedPod,
    is_ending,
    is_gated,
    of_part,
    owner_of,
    plan_hash,
    prefix_of,
)
from oasis.kubernetes.objects.existing import COMPLETION_INDEX, JOB_INDEX
from oasis.kubernetes.objects.network import (
    Gang,
    address,
    environment,
    service_name,
)
from oasis.kubernetes.objects.oasis_job import JobSpec, identity
from oasis.model.errors import InstanceError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.scheduling.job import Allocation

Object = Mapping[str, Any]
Slot = tuple[TaskGroup, Place]  # room for one pod
Numbered = list[tuple[int, str | None]]  # index and name of the pod that is there, for each slot
CHIEF = (TaskGroup.WORKER, 0)


def wanted_of(
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
    salt, is_elastic = plan_hash(allocation, places), spec.resize == "elastic"
    if spec.network is None:  # numbered on each node
        numbered: Numbered | None = _counted(slots)
        salt = "" if is_elastic else salt
    elif is_elastic:
        numbered = _going_on(slots, pods)
    else:
        numbered = _from_zero(slots)
    if numbered is None:  # then none of the names is that of a pod that is there
        numbered, salt = _from_zero(slots), "\0".join((salt, *sorted(pods)))
    gang = []
    for (task, place), (index, name) in zip(slots, numbered, strict=True):
        key = "\0".join((spec.uid, task, place.node, str(index), salt))
        digest = hashlib.sha256(key.encode()).hexdigest()[:10]
        known = None if spec.network is None else index
        place_in_gang = f"{task[0]}{index}" if known is None else f"{task}-{index}"
        pod_name = name or f"{prefix_of(spec)}-{place_in_gang}-{digest}"
        gang.append(WantedPod(pod_name, task, place.node, place.hostname, known))
    return tuple(gang)


def _from_zero(slots: Sequence[Slot]) -> Numbered:
    return _counted(task for task, _ in slots)


def _counted(among: Iterable[Hashable]) -> Numbered:
    """Number the values from 0 on; equal values get equal numbers."""
    numbers: defaultdict[Hashable, Iterator[int]] = defaultdict(count)
    return [(next(numbers[each]), None) for each in among]


def _going_on(slots: Sequence[Slot], pods: Mapping[str, Object]) -> Numbered | None:
    """Return indices that the existing pods keep; None if the whole gang restarts."""
    existing: dict[tuple[str, str], list[tuple[bool, int, str]]] = {}
    taken: dict[str, set[int]] = {group: set() for group in GROUPS}
    for name, pod in pods.items():
        labels, notes = pod["metadata"]["labels"], pod["metadata"].get("annotations") or {}
        if names.INDEX in labels:  # it was made for a job with a network
            task, index = labels[names.TASK], int(labels[names.INDEX])
            at = existing.setdefault((task, notes.get(names.NODE, "")), [])
            is_lost = is_ending(pod) or phase_of(pod) == "Failed"
            at.append((is_lost, index, name))
            taken[task].add(index)
    stay: list[tuple[bool, int, str] | None] = []
    for numbers in existing.values():
        numbers.sort()
    for task, place in slots:
        numbers = existing.get((task, place.node), [])
        stay.append(numbers.pop(0) if numbers else None)
    if any(not is_gated(pod) for pod in pods.values()):  # the gang has begun
        kept = [
            (task, old[1])
            for (task, _), old in zip(slots, stay, strict=True)
            if old is not None and not old[0]
        ]
        ps = sum(task is TaskGroup.PS for task, _ in slots)
        ps_kept = sum(task is TaskGroup.PS for task, _ in kept)
        if CHIEF not in kept or not ps == ps_kept == len(taken[TaskGroup.PS]):
            return None
    else:  # what leaves was never seen by the others, and leaves its index to them
        taken = {group: set() for group in GROUPS}
        for (task, _), old in zip(slots, stay, strict=True):
            if old is not None:
                taken[task].add(old[1])
    free = {group: filterfalse(taken[group].__contains__, count()) for group in GROUPS}
    numbered: Numbered = [
        (next(free[task]), None) if old is None else (old[1], old[2])
        for (task, _), old in zip(slots, stay, strict=True)
    ]
    begins = {(task, index) for (task, _), (index, _) in zip(slots, numbered, strict=True)}
    return numbered if CHIEF in begins else None


def annotations_of(
    spec: JobSpec, wanted: Iterable[WantedPod], pods: Mapping[str, Object]
) -> Callable[[WantedPod], dict[str, str]]:
    """Map each pod of a gang to the annotations from which it learns about the others."""
    # Pods of a job without a network are told nothing; `pods` are those that are there, by name.
    network = spec.network
    if network is None:
        return lambda _: {}
    hosts: Hosts = {group: {} for group in GROUPS}
    if spec.is_existing:
        hosts = _hosts_of_others(spec, pods)
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
    """Return the hosts that the controller of another kind of object gave its pods."""
    hosts: Hosts = {group: {} for group in GROUPS}
    for group, part in zip(GROUPS, spec.part_names, strict=True):
        mine = {} if part is None else of_part(pods, part)
        places = {name: _place_in_job(pod) for name, pod in mine.items()}
        # A recreated pod has the index of the one that failed: both count once.
        index = {place: k for k, place in enumerate(sorted(set(places.values())))}
        for name, pod in mine.items():
            host, within = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
            if not host or not within:
                expected = f"expected pods with hostname and subdomain, which {name} lacks"
                raise InstanceError(f"metadata.annotations.{names.FRAMEWORK}", expected)
            hosts[group][name] = index[places[name]], f"{host}.{within}"
    return hosts


def _place_in_job(pod: Object) -> tuple[int, int]:
    """Index of the replicated job, and of the pod within it."""
    labels = pod["metadata"].get("labels") or {}
    return int(labels.get(JOB_INDEX, 0)), int(labels.get(COMPLETION_INDEX, 0))


def service_object(spec: JobSpec) -> dict[str, Any]:
    """The headless Service that names the pods of a job; it is deleted with the job."""
    assert spec.network is not None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service_name(spec.name),
            "namespace": spec.namespace,
            "labels": identity(spec.name, spec.uid),
            "ownerReferences": [owner_of(spec)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {names.JOB_UID: spec.uid},
            # Pods look for each other before they are ready, and
            # a name has to resolve in the very pod that has it.
            "publishNotReadyAddresses": True,
            "ports": [{"name": "train", "port": spec.network.port}],
        },
    }


def policy_object(spec: JobSpec) -> dict[str, Any]:
    """The NetworkPolicy that admits only a job's pods to its pods; it is deleted with the job."""
    pods = {"matchLabels": {names.JOB_UID: spec.uid}}
    service = service_object(spec)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": service["metadata"],
        "spec": {
            "podSelector": pods,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": pods}]}],
        },
    }


def network_objects(
    spec: JobSpec, services: Iterable[Object], policies: Iterable[Object]
) -> tuple[Object, ...]:
    """Return the Service and the NetworkPolicy that must exist before the pods of a job start."""
    if spec.network is None or spec.is_existing:
        return ()
    lacking = [] if _is_there(spec, services) else [service_object(spec)]
    if spec.network.isolated and not _is_there(spec, policies):
        lacking.append(policy_object(spec))
    return tuple(lacking)


def _is_there(spec: JobSpec, items: Iterable[Object]) -> bool:
    return any(
        each["metadata"]["name"] == service_name(spec.name)
        and not each["metadata"].get("deletionTimestamp")
        and any(o["uid"] == spec.uid for o in each["metadata"].get("ownerReferences") or ())
        for each in items
    )
