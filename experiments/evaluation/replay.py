"""Policies side by side on a plain trace: GPUs and duration, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from experiments.evaluation.policies import POLICIES, entry_of
from oasis.simulator import Outcome, Policy, Workload, replay

PLAIN = tuple(name for name, entry in POLICIES.items() if not entry.needs_instance)


def replay_each(
    workload: Workload,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    on_settled: Callable[[], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Run each policy on `workload`; figures by its name, as plain data.

    Parameters
    ----------
    workload : Workload
        Of rigid jobs.
    policies : mapping of str to mapping
        The options of each policy that differ from their defaults, by its name.
    on_settled : callable, optional
        Called for each job that finished, for progress.

    Raises
    ------
    ValueError
        If there is no such policy or option, or it needs an instance of the model.

    Examples
    --------
    >>> from oasis.simulator import PlainJob, rigid_workload
    >>> workload = rigid_workload([PlainJob("a", 0.0, 60.0, 1), PlainJob("b", 0.0, 30.0, 1)], 1, 1)
    >>> found = replay_each(workload, {"fifo": {}, "srtf": {"line": "backfill"}})
    >>> {name: figures["mean_completion"] for name, figures in found.items()}
    {'fifo': 75.0, 'srtf': 60.0}
    """
    made = {name: _plain_policy(name, options) for name, options in policies.items()}
    told = None if on_settled is None else lambda _: on_settled()
    return {
        name: figures(policy, replay(workload, policy, on_settled=told))
        for name, policy in made.items()
    }


def _plain_policy(name: str, options: Mapping[str, Any]) -> Policy:
    return cast(Policy, entry_of(name, PLAIN).make(None, options))


def figures(policy: Policy, outcome: Outcome) -> dict[str, Any]:
    """Figures of one replay as plain data; times are in seconds."""
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
