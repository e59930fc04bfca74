"""Names that the adapter promises, written down once more: the tests notice a change of one."""

from __future__ import annotations

GROUP = "oasis-scheduler.io"
API_VERSION, KIND = f"{GROUP}/v1alpha1", "OasisJob"
SYSTEM, CONTROLLER = "oasis-system", "oasis-scheduler"  # its namespace, and its name

# on nodes
NODE_ROLE = f"{GROUP}/role"
HOSTNAME = "kubernetes.io/hostname"

# on pods
GATE = f"{GROUP}/placement"
JOB_NAME, JOB_UID, TASK = f"{GROUP}/job", f"{GROUP}/job-uid", f"{GROUP}/task"
ENV = f"env.{GROUP}/"
LOSS = f"{GROUP}/loss"

# on jobs of other kinds
SCHEDULED = f"{GROUP}/schedule"
UTILITY, WORK = f"{GROUP}/utility", f"{GROUP}/work"
MINIMUM, MAXIMUM = f"{GROUP}/minimum-workers", f"{GROUP}/maximum-workers"
FRAMEWORK, SERVERS = f"{GROUP}/framework", f"{GROUP}/parameter-servers"
STATUS = f"{GROUP}/status"

# resources: that of the cluster, and how much of it is one of the model
GPU, BANDWIDTH = "nvidia.com/gpu", f"{GROUP}/bandwidth"
RESOURCES = {
    "gpu": (GPU, 1),
    "cpu": ("cpu", 1),
    "memory_gb": ("memory", 10**9),
    "storage_gb": ("ephemeral-storage", 10**9),
    "bandwidth_gbps": (BANDWIDTH, 10**9),
}

# those of Kubernetes and of Kueue
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
QUEUE, GATED_BY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/admission-gated-by"
