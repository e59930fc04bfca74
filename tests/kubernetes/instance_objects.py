"""The jobs and servers of an instance as objects of a cluster, in its default resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import oasis
from tests.kubernetes.names import API_VERSION, HOSTNAME, KIND, NODE_ROLE, REQUIRED, RESOURCES

Object = dict[str, Any]


@dataclass
class Slots:
    """Slots of so many seconds, of which pods may take some to start, from `epoch` on."""

    slot_seconds: float
    startup_seconds: float = 0.0
    epoch: float = 0.0

    @property
    def work_seconds(self) -> float:
        return self.slot_seconds - self.startup_seconds

    def begin(self, slot: int) -> float:
        return self.epoch + slot * self.slot_seconds


def written(amount: Fraction) -> str:
    """An amount as Kubernetes reads it, rounded up to a whole number or a thousandth."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{-(-amount.numerator * 1000 // amount.denominator)}m"


def requests(amounts: Mapping[str, float]) -> dict[str, str]:
    """Amounts of the model as requests of the cluster, without zeros."""
    found = {}
    for name, (resource, unit) in RESOURCES.items():
        amount = Fraction(amounts.get(name, 0.0)) * unit
        if amount:
            # The API server takes only whole numbers of GPUs and other extended resources.
            whole = resource not in ("cpu", "memory", "ephemeral-storage")
            found[resource] = str(round(amount)) if whole else written(amount)
    return found


def job_object(
    job: oasis.Job, clock: Slots, *, slot_seconds: float, namespace: str = "default"
) -> Object:
    """A job of an instance as an ``OasisJob``, its times scaled from its own slots to `clock`."""
    # What a job of several forms says itself is only what they leave out: each is written whole.
    several = job.forms or job.speeds is not None
    first = job.in_forms[0]
    spec: Object = {
        "utility": utility_object(job.utility, clock),
        "work": {"epochs": first.epochs, **_work(first, clock, slot_seconds)},
        "workers": {"maximum": first.chunks, **_pods(first.worker)},
        "gracePeriodSeconds": 0,
        "completion": "work",  # its pods never end by themselves
    }
    if first.min_workers > 1:
        spec["workers"]["minimum"] = first.min_workers
    if any(form.needs_ps for form in job.in_forms):
        spec["parameterServers"] = _pods(first.ps)
    if several:
        spec["forms"] = [_form(form, clock, slot_seconds) for form in job.in_forms]
    else:
        for name, required in (("workers", job.requires), ("parameterServers", job.ps_requires)):
            if required and name in spec:
                asked = [{"key": k, "operator": "In", "values": [*v]} for k, v in required.items()]
                terms = {"nodeSelectorTerms": [{"matchExpressions": asked}]}
                affinity = {"nodeAffinity": {REQUIRED: terms}}
                spec[name]["template"]["spec"]["affinity"] = affinity
    meta = {"name": job.id, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def _work(job: oasis.Job, clock: Slots, slot_seconds: float) -> Object:
    """The work of a job of one form, but for its epochs."""
    # Both times keep their length in slots. That of the exchange follows from megabytes over
    # bandwidth, so the megabytes are scaled.
    return {
        "chunks": job.chunks,
        "minibatches": job.minibatches,
        "minibatchSeconds": job.minibatch_time * clock.work_seconds,
        "gradientMb": job.gradient_mb * clock.work_seconds / slot_seconds,
    }


def _resources(demand: Mapping[str, float]) -> Object:
    asked = requests(demand)
    return {"requests": asked, "limits": {name: v for name, v in asked.items() if "/" in name}}


def _pods(demand: Mapping[str, float]) -> Object:
    container = {"name": "train", "image": "train", "resources": _resources(demand)}
    return {"template": {"spec": {"containers": [container]}}}


def _form(form: oasis.Job, clock: Slots, slot_seconds: float) -> Object:
    """A form of a job, with all that may differ from the others."""
    made: Object = {
        "work": _work(form, clock, slot_seconds),
        "workers": {
            "minimum": form.min_workers,
            "maximum": form.chunks,
            "resources": _resources(form.worker),
        },
    }
    if form.requires:
        made["requires"] = {name: list(values) for name, values in form.requires.items()}
    if form.needs_ps:
        required = {name: list(values) for name, values in form.ps_requires.items()}
        made["parameterServers"] = {"resources": _resources(form.ps)}
        if required:
            made["parameterServers"]["requires"] = required
    return made


def utility_object(utility: oasis.Utility, clock: Slots) -> Object:
    """A utility by slots as one by seconds."""
    seconds = clock.slot_seconds
    if isinstance(utility, oasis.Sigmoid):
        return {
            "kind": "sigmoid",
            "priority": utility.priority,
            "decayPerSecond": utility.decay / seconds,
            "targetSeconds": utility.target * seconds,
        }
    if isinstance(utility, oasis.Deadline):
        limit = utility.deadline * seconds
        return {"kind": "deadline", "value": utility.value, "deadlineSeconds": limit}
    if isinstance(utility, oasis.Constant):
        return {"kind": "constant", "value": utility.value}
    assert isinstance(utility, oasis.Piecewise)
    delays = [delay * seconds for delay in utility.delays]
    return {"kind": "piecewise", "delaysSeconds": delays, "values": list(utility.values)}


def node_objects(cluster: oasis.Cluster) -> list[Object]:
    """The servers of an instance as nodes."""
    found = []
    for role, servers in (("worker", cluster.worker_servers), ("ps", cluster.ps_servers)):
        for name, server in [(name, each) for each in servers for name in each.ids]:
            amounts = requests(server.capacity) | {"pods": "110"}  # as a kubelet has it
            host = name.replace("#", "-")
            labels = {**server.labels, HOSTNAME: host, NODE_ROLE: role}
            status = {"allocatable": amounts, "capacity": amounts}
            found.append({"metadata": {"name": host, "labels": labels}, "status": status})
    return found
