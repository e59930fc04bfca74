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
    options: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """Run each policy on `workload`; figures by its name, as plain data.

    Parameters
    ----------
    workload : Workload
        Of rigid or elastic jobs.
    names : list of str
        Names in `baselines.ALL`.
    seed : int
        Of the policies; jobs that say with how many workers they run draw nothing.
    on_settled : callable, optional
        Called for each job that finished, for progress.
    options : mapping, optional
        Further arguments of `oasis.simulator.replay`: speed, costs, observation. Where they are
        given, the figures say how often jobs were changed and what that cost them too.

    Raises
    ------
    ValueError
        If there is no policy of a name.
    """
    policies = {name: make(name, seed) for name in names}
    told = None if on_settled is None else lambda _: on_settled()
    return {name: _run(workload, policy, told, options) for name, policy in policies.items()}


def _run(
    workload: Workload, policy: Policy, told: Any, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    outcome = replay(workload, policy, on_settled=told, **(options or {}))
    found = figures(policy, outcome)
    return found if options is None else found | changes(outcome)


def changes(outcome: Outcome) -> dict[str, Any]:
    """How often the jobs were changed, and the mean times of it in seconds."""
    jobs = outcome.jobs
    count = len(jobs)
    return {
        "mean_running": math.fsum(job.running for job in jobs) / count,
        "mean_overhead": math.fsum(job.overhead for job in jobs) / count,
        "mean_stalled": math.fsum(job.stalled for job in jobs) / count,
        "restarts": sum(job.restarts for job in jobs),
        "resizes": sum(job.resizes for job in jobs),
        "migrations": sum(job.migrations for job in jobs),
        "use": outcome.use,
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
        "gpu_utilisation": outcome.use.get("gpu"),
        "policy_calls": outcome.calls,
        "policy_seconds": outcome.policy_seconds,
        "simulator_seconds": outcome.simulator_seconds,
        "jobs_per_second": len(jobs) / seconds if seconds else None,
        "parameters": dict(policy.parameters),
        "report": dict(report),
    }
