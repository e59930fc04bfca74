"""The priority-queue autoscaler for Kubeflow."""

from baselines.priority_queue.policy import PriorityQueue

__all__ = ["PriorityQueue"]
