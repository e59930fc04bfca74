"""Names that the adapter uses on the cluster: the API group, labels, annotations and the gate."""

from __future__ import annotations

import re

GROUP = "oasis-scheduler.io"
API_VERSION = f"{GROUP}/v1alpha1"
KIND, PLURAL = "OasisJob", "oasisjobs"
WINDOW_KIND, WINDOW_PLURAL = "CapacityWindow", "capacitywindows"
CLASS_KIND, CLASS_PLURAL = "UtilityClass", "utilityclasses"

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # the name of one

FIELD_MANAGER = "oasis-scheduler"
GATE = f"{GROUP}/placement"

# on nodes
NODE_ROLE = f"{GROUP}/role"  # worker, ps or both
HOSTNAME = "kubernetes.io/hostname"

# on pods
JOB_NAME = f"{GROUP}/job"
JOB_UID = f"{GROUP}/job-uid"
TASK = f"{GROUP}/task"  # worker or ps
INDEX = f"{GROUP}/index"  # among those of its task, in its host name too
ENV = f"env.{GROUP}/"  # and the name of a variable of its containers
NODE = f"{GROUP}/node"
PLAN = f"{GROUP}/plan"
SLOT = f"{GROUP}/slot"
TEMPLATE = f"{GROUP}/template"  # hash of that of its job from which it was made

# on pods, set by the training process
PROGRESS = f"{GROUP}/progress"  # worker-seconds done by the whole job
LOSS = f"{GROUP}/loss"

# on Jobs, JobSets and TrainJobs, set by their owner
SCHEDULED = f"{GROUP}/schedule"  # the label by which they are ours: "true"
UTILITY = f"{GROUP}/utility"  # JSON, as spec.utility of an OasisJob
WORK = f"{GROUP}/work"  # JSON, as spec.work of an OasisJob
UTILITY_CLASS = f"{GROUP}/utility-class"  # as spec.utilityClassName of an OasisJob
MINIMUM = f"{GROUP}/minimum-workers"  # of a Job that may be resized, beside the next
MAXIMUM = f"{GROUP}/maximum-workers"
SERVERS = f"{GROUP}/parameter-servers"  # name of the replicated job that they are
ON_REJECTION = f"{GROUP}/on-rejection"
FRAMEWORK = f"{GROUP}/framework"  # as spec.network of an OasisJob
PORT = f"{GROUP}/port"
STATUS = f"{GROUP}/status"  # JSON, written by us, as the status of an OasisJob
QUEUE = "kueue.x-k8s.io/queue-name"  # the label by which they are Kueue's

# on what Kueue has
STARTS_IN = f"{GROUP}/starts-in"  # of a held LocalQueue: in which one its jobs start
PAUSED = f"{GROUP}/paused"  # of a Workload that is inactive by our plan, not by a person or Kueue

BANDWIDTH = f"{GROUP}/bandwidth"  # extended resource, bits a second
