"""Policies side by side on a plain trace, or on elastic jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from experiments.evaluation.comparison import until_interrupted
from experiments.evaluation.policies import POLICIES, entry_of
from oasis.scheduling.policy_check import parameters_of, report_of
from oasis.simulator import Outcome, Policy, Workload, replay

PLAIN = tuple(name for name, entry in POLICIES.items() if not entry.needs_instance)


def replay_each(
    workload: Workload,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    on_settled: Callable[[], None] | None = None,
    options: Mapping[str, Any] | None = None,
    keep_interrupted: bool = False,
) -> dict[str, dict[str, Any]]:
    """Run each policy on `workload`; figures by its name, as plain data.

    Parameters
    ----------
    workload : Workload
        Of rigid or elastic jobs.
    policies : mapping of str to mapping
        The options of each policy that differ from their defaults, by its name.
    on_settled : callable, optional
        Called for each job that finished, for progress.
    options : mapping, optional
        Further arguments of `oasis.simulator.replay`: speed, costs, observation. Where they are
        given, the figures say how often jobs were changed and what that cost them too.
    keep_interrupted : bool
        Whether Ctrl-C keeps the policies that are done, as `until_interrupted` does; those that
        have no figures are missing then.

    Raises
    ------
    ValueError
        If there is no such policy or option, or it needs an instance of the model.

    Examples
    --------
    >>> from oasis.simulator import PlainJob, rigid_workload
    >>> workload = rigid_workload([PlainJob("a", 0.0, 60.0, 1), PlainJob("b", 0.0, 30.0, 1)], 1, 1)
    >>> found = replay_each(workload, {"fifo": {}, "srtf": {"line": "fit"}})
    >>> {name: figures["mean_completion"] for name, figures in found.items()}
    {'fifo': 75.0, 'srtf': 60.0}
    """
    made = {name: _plain_policy(name, given) for name, given in policies.items()}
    told = None if on_settled is None else lambda _: on_settled()

    def run(name: str) -> dict[str, Any]:
        row = _run(workload, made[name], told, options)
        return row | entry_of(name).recorded(policies[name], row["parameters"])

    return until_interrupted(made, run, keep=keep_interrupted)[0]


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


def _plain_policy(name: str, options: Mapping[str, Any]) -> Policy:
    return cast(Policy, entry_of(name, PLAIN).make(None, options))


def figures(policy: Policy, outcome: Outcome) -> dict[str, Any]:
    """Figures of one replay as plain data; times are in seconds."""
    jobs = outcome.jobs
    seconds = outcome.policy_seconds + outcome.simulator_seconds
    return {
        "finished": len(outcome.completions),
        "unfinished": outcome.unfinished,
        "rejected": sum(job.refusal is not None for job in jobs),
        "mean_completion": outcome.mean_completion,
        "median_completion": outcome.median_completion,
        "p95_completion": outcome.completion_quantile(0.95),
        "mean_waiting": math.fsum(job.waiting for job in jobs) / len(jobs),
        "makespan": outcome.makespan,
        "gpu_utilisation": outcome.use.get("gpu"),
        "policy_calls": outcome.calls,
        "policy_seconds": outcome.policy_seconds,
        "simulator_seconds": outcome.simulator_seconds,
        "jobs_per_second": len(jobs) / seconds if seconds else None,
        "parameters": parameters_of(policy),
        "report": report_of(policy),
    }
