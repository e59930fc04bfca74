"""Policies side by side on a plain trace: GPUs and duration, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from baselines import make
from oasis.simulator import Outcome, Policy, Workload, replay


def replay_each(
    workload: Workload,
    names: list[str],
    *,
    seed: int = 0,
    on_settled: Callable[[], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Run each policy on `workload`; figures by its name, as plain data.

    Parameters
    ----------
    workload : Workload
        Of rigid jobs.
    names : list of str
        Names in `baselines.POLICIES`.
    seed : int
        Of the policies; rigid jobs draw nothing.
    on_settled : callable, optional
        Called for each job that finished, for progress.

    Raises
    ------
    ValueError
        If there is no policy of a name.
    """
    policies = {name: make(name, seed) for name in names}
    told = None if on_settled is None else lambda _: on_settled()
    return {
        name: figures(policy, replay(workload, policy, on_settled=told))
        for name, policy in policies.items()
    }


def figures(policy: Policy, outcome: Outcome) -> dict[str, Any]:
    """What `policy` did, times in seconds."""
    jobs = outcome.jobs
    seconds = outcome.policy_seconds + outcome.simulator_seconds
    report: Mapping[str, Any] = getattr(policy, "report", {})
    return {
        "finished": len(outcome.completions),
        "mean_completion": outcome.mean_completion,
        "median_completion": outcome.completion_quantile(0.5),
        "p95_completion": outcome.completion_quantile(0.95),
        "mean_waiting": math.fsum(job.waiting for job in jobs) / len(jobs),
        "makespan": outcome.makespan,
        "gpu_utilisation": outcome.utilisation["worker"]["gpu"],
        "policy_calls": outcome.calls,
        "policy_seconds": outcome.policy_seconds,
        "simulator_seconds": outcome.simulator_seconds,
        "jobs_per_second": len(jobs) / seconds if seconds else None,
        "parameters": dict(policy.parameters),
        "report": dict(report),
    }
