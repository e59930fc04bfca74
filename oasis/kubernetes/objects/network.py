"""The pods of a job in the network: their names, and what frameworks read when they start.

Nothing here knows how pods are made: from a job, a task, an index and the gang follow names and
variables. The controller writes the variables as annotations when it opens the gate of a pod, and
the container reads them from there, because its environment is resolved when it starts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oasis.kubernetes import names
from oasis.model.groups import TaskGroup

LONGEST_NAME = 40  # of 63 characters of a host name; task and index need the others
AGENT_RESTARTS = 100  # of torchrun, which counts each worker that another one lost
LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # a name that a Service may have


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """Network settings of a job."""

    framework: str = "none"  # whose variables its pods get beside ours
    port: int = 2222  # where worker 0 waits, and of TensorFlow every pod listens
    isolated: bool = False  # whether only pods of the same job may connect to its pods

    def can_resize(self, has_ps: bool) -> bool:
        """Whether workers may join and leave in training; `has_ps`: with parameter servers."""
        # JAX and TensorFlow's collectives fix their processes when they start.
        return self.framework != "jax" and (self.framework != "tensorflow" or has_ps)


@dataclass(frozen=True, slots=True)
class Gang:
    """Host names of the tasks of a job."""

    job: str
    workers: Mapping[int, str]  # host names by index
    ps: Mapping[int, str]
    # Fewest and most workers, if they come and go while the others
    # train; otherwise the gang is the same from its beginning to its end.
    span: tuple[int, int] | None = None

    def hosts(self, task: str) -> tuple[str, ...]:
        """Return the host names of the pods of `task` in order of their indices."""
        hosts = self.workers if task == TaskGroup.WORKER else self.ps
        return tuple(hosts[index] for index in sorted(hosts))


def service_name(job: str) -> str:
    """Return the name of a job's Service, the subdomain of its pods: at most 40 characters."""
    if LABEL.fullmatch(job) and len(job) <= LONGEST_NAME:
        return job
    # What is changed or cut off could make two names one, so a digest tells them apart.
    digest = hashlib.sha256(job.encode()).hexdigest()[:6]
    plain = f"j-{job.replace('.', '-')}"[: LONGEST_NAME - len(digest) - 1].rstrip("-")
    return f"{plain}-{digest}"


def hostname(job: str, task: str, index: int) -> str:
    """Return the host name of a pod by its index among those of its task."""
    return f"{service_name(job)}-{task}-{index}"


def address(job: str, task: str, index: int) -> str:
    """Return the name by which other pods of the namespace reach a pod."""
    return f"{hostname(job, task, index)}.{service_name(job)}"


def environment(network: PodNetwork, gang: Gang, task: str, index: int) -> dict[str, str]:
    """Return the variables of one pod of a gang, by its index among those of its task."""
    variables = {
        "OASIS_TASK": str(task),
        "OASIS_INDEX": str(index),
        "OASIS_HOSTS": ",".join(gang.hosts("worker")),
        "OASIS_PS_HOSTS": ",".join(gang.hosts("ps")),
        "OASIS_PORT": str(network.port),
    }
    if network.framework == "tensorflow":
        variables["TF_CONFIG"] = json.dumps(_tf_config(network, gang, task, index))
    elif task == TaskGroup.WORKER and network.framework == "torch":
        variables |= _torch(network, gang, index)
    elif task == TaskGroup.WORKER and network.framework == "jax":
        variables["JAX_COORDINATOR_ADDRESS"] = f"{gang.workers[0]}:{network.port}"
        variables["JAX_NUM_PROCESSES"] = str(len(gang.workers))
        variables["JAX_PROCESS_ID"] = str(index)
    return variables


def _torch(network: PodNetwork, gang: Gang, index: int) -> dict[str, str]:
    """Variables of torchrun, that is, options prefixed with ``PET_``, and of plain scripts."""
    first, port, count = gang.workers[0], str(network.port), str(len(gang.workers))
    variables = {"PET_RDZV_ENDPOINT": f"{first}:{port}", "PET_RDZV_ID": gang.job}
    if gang.span is None:
        return variables | {
            "PET_NNODES": count,
            "PET_NODE_RANK": str(index),
            "PET_MASTER_ADDR": first,
            "PET_MASTER_PORT": port,
            "MASTER_ADDR": first,
            "MASTER_PORT": port,
            "WORLD_SIZE": count,
            "RANK": str(index),
        }
    return variables | {
        "PET_NNODES": f"{gang.span[0]}:{gang.span[1]}",
        "PET_RDZV_BACKEND": "c10d",
        # Without it torchrun compares addresses to find out which of the pods holds the store.
        "PET_RDZV_CONF": f"is_host={int(index == 0)}",
        "PET_MAX_RESTARTS": str(AGENT_RESTARTS),
    }


def _tf_config(network: PodNetwork, gang: Gang, task: str, index: int) -> dict[str, Any]:
    """Return TensorFlow's TF_CONFIG of one pod: the hosts of the gang, and which of them it is."""
    workers, ps = (
        [f"{host}:{network.port}" for host in gang.hosts(group)] for group in ("worker", "ps")
    )
    cluster: dict[str, Any] = {"worker": workers}
    role, number = task, index
    if gang.span is not None:
        # A sparse cluster: a worker knows itself and the parameter servers, so that others may
        # come and go. A server has to know all who will ever write to it. Indices go beyond the
        # maximum where new pods begin while old ones still leave.
        known = {k: address(gang.job, TaskGroup.WORKER, k) for k in range(2 * gang.span[1])}
        if task == TaskGroup.WORKER:
            known = {index: gang.workers[index]}
        cluster["worker"] = {str(k): f"{host}:{network.port}" for k, host in known.items()}
    elif ps:
        # TensorFlow's strategy with parameter servers has a
        # coordinator, which is none of the workers that train.
        cluster = {"chief": workers[:1], **({"worker": workers[1:]} if workers[1:] else {})}
        if task == TaskGroup.WORKER:
            role, number = ("chief", 0) if index == 0 else (task, index - 1)
    if ps:
        cluster["ps"] = ps
    return {"cluster": cluster, "task": {"type": str(role), "index": number}}


def variables(network: PodNetwork, task: str, elastic: bool) -> tuple[str, ...]:
    """Return the names of the variables of a pod of `task`, the same for every gang."""
    gang = Gang("", {0: ""}, {0: ""}, (1, 2) if elastic else None)
    return tuple(environment(network, gang, task, 0))


def with_variables(spec: Mapping[str, Any], variables: Iterable[str]) -> dict[str, Any]:
    """Return the pod spec in which containers get `variables` from annotations, and POD_NAME."""
    # Its host name is another one, and the reporter has to find the pod. What a container says of a
    # variable itself stays.
    paths = {"POD_NAME": "metadata.name"}
    paths |= {name: f"metadata.annotations['{names.ENV}{name}']" for name in variables}
    refs = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in paths.items()
    ]
    pod_spec = dict(spec)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            pod_spec[field] = [_reading(container, refs) for container in spec[field]]
    return pod_spec


def _reading(container: Mapping[str, Any], refs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a container with variables `refs`, but for those that it defines itself."""
    own = list(container.get("env") or ())
    defined = {entry["name"] for entry in own}
    # Ours come first: what its owner writes may refer to them, as in $(OASIS_INDEX).
    return {**container, "env": [*(ref for ref in refs if ref["name"] not in defined), *own]}
