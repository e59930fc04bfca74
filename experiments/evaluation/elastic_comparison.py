"""Policies side by side on elastic jobs, OASiS and recourse among them, beside a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import oasis
from experiments.evaluation.comparison import SLOT_SECONDS, Comparison, until_interrupted
from experiments.evaluation.elastic_model import ElasticModel
from experiments.evaluation.live import planning_policy
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE, entry_of
from experiments.evaluation.slotted import Slotted
from oasis.online.prices import PriceBounds
from oasis.scheduling.policy import Policy
from oasis.scheduling.policy_check import parameters_of, report_of
from oasis.simulator import ElasticWorkload, Outcome, replay
from offline.elastic_bound import ElasticBound, elastic_bound, slots_needed


def elastic_policy(
    name: str, options: Mapping[str, Any], made: ElasticWorkload, slot_seconds: float = SLOT_SECONDS
) -> Policy:
    """A fresh policy for `made`.

    OASiS gets the U and L of all jobs of the workload, as the paper assumes them known; it and
    recourse plan in slots (`Slotted`), and see the jobs as `ElasticModel` translates them.

    Parameters
    ----------
    name : str
        Of the registry.
    options : mapping
        Its options that differ from their defaults.
    made : ElasticWorkload
        What it will run on.
    slot_seconds : float
        Length of the slots of OASiS and recourse.

    Raises
    ------
    ValueError
        If there is no such policy or option, or OASiS gets one that has no meaning here.
    InstanceError
        If OASiS or recourse meets a job without utility.

    Examples
    --------
    >>> from oasis.simulator import generate_elastic
    >>> elastic_policy("dragon", {}, generate_elastic(jobs=2)).name
    'dragon'
    """
    if name not in (OASIS, RECOURSE):
        return cast(Policy, entry_of(name).make(None, options))
    model = ElasticModel(made, slot_seconds)
    slots = slots_needed(made, slot_seconds)
    bounds: Callable[[oasis.Cluster], PriceBounds] | None = None
    if name == OASIS:
        found = _bounds(model, slots, options)

        def bounds(_: oasis.Cluster) -> PriceBounds:
            return found

    live = planning_policy(name, options, slots, reach=4 * slots, bounds=bounds)
    return cast(Policy, Slotted(live, model))


def _bounds(model: ElasticModel, slots: int, options: Mapping[str, Any]) -> PriceBounds:
    whole = POLICIES[OASIS].resolve(options)
    for option in ("granularity", "bounds"):
        if option in options:
            raise ValueError(f"oasis.{option}: expected none on elastic jobs")
    return PriceBounds.from_jobs(
        model.jobs(),
        model.cluster(),
        slots,
        min_utility_fraction=whole["min_utility_fraction"],
        normalize=whole["normalize"],
    )


def utility_of(made: ElasticWorkload, outcome: Outcome) -> float | None:
    """What the jobs that finished are worth at their delays; None if some job has no utility."""
    jobs = {job.id: job for job in made.workload.jobs}
    if not all(job.has_utility for job in jobs.values()):
        return None
    worth = []
    for job in outcome.jobs:
        if job.end is not None:
            worth.append(float(jobs[job.job_id].utility(job.end - job.arrival)))
    return math.fsum(worth)


def elastic_figures(
    made: ElasticWorkload, outcome: Outcome, bound: ElasticBound | None
) -> dict[str, Any]:
    """The figures of one run by which policies are compared; measured times come last.

    Restarts are all changes of a running or paused job: resumed, resized, moved.
    """
    jobs, utility = outcome.jobs, utility_of(made, outcome)
    count = len(jobs)
    return {
        "total_utility": utility,
        "of_bound": _share(utility, bound),
        "admitted": sum(job.refusal is None or job.start is not None for job in jobs),
        "finished": len(outcome.completions),
        "unfinished": outcome.unfinished,
        "mean_completion": outcome.mean_completion,
        "p95_completion": outcome.completion_quantile(0.95),
        "mean_waiting": math.fsum(job.waiting for job in jobs) / count,
        "mean_running": math.fsum(job.running for job in jobs) / count,
        "mean_overhead": math.fsum(job.overhead for job in jobs) / count,
        "restarts": sum(job.restarts + job.resizes + job.migrations for job in jobs),
        "makespan": outcome.makespan,
        "wasted_share": outcome.wasted_share,
        "use": outcome.use,
        "policy_calls": outcome.calls,
        "policy_seconds": outcome.policy_seconds,
        "simulator_seconds": outcome.simulator_seconds,
    }


def _share(utility: float | None, bound: ElasticBound | None) -> float | None:
    """What part of the bound was earned; None if there is no utility, or nothing to earn."""
    if utility is None or bound is None or bound.value == 0:
        return None
    return utility / bound.value


def compare_elastic(
    made: ElasticWorkload,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    slot_seconds: float = SLOT_SECONDS,
    on_settled: Callable[[], None] | None = None,
    keep_interrupted: bool = False,
) -> Comparison:
    """Run each policy on the same elastic jobs.

    Parameters
    ----------
    made : ElasticWorkload
        The jobs and the machines.
    policies : mapping of str to mapping
        The options of each policy that differ from their defaults, by its name.
    slot_seconds : float
        Length of the slots of OASiS and recourse, and of the bound.
    on_settled : callable, optional
        Called for each job that finished or was rejected, for progress.
    keep_interrupted : bool
        Whether Ctrl-C keeps the policies that are done, as `until_interrupted` does.

    Raises
    ------
    ValueError, InstanceError
        As `elastic_policy`.

    Examples
    --------
    >>> from oasis.simulator import generate_elastic
    >>> found = compare_elastic(generate_elastic(jobs=3, seed=1), {"fifo": {}, "dragon": {}})
    >>> [row["finished"] for row in found.policies.values()], found.about["bound"]
    ([3, 3], None)
    """
    makers = {
        name: elastic_policy(name, given, made, slot_seconds) for name, given in policies.items()
    }
    valued = all(job.has_utility for job in made.workload.jobs)
    bound = elastic_bound(made, slot_seconds) if valued else None
    told = None if on_settled is None else lambda _: on_settled()

    def run(name: str) -> dict[str, Any]:
        policy = makers[name]
        outcome = replay(made.workload, policy, on_settled=told, **made.options)
        parameters = {**policies[name], **parameters_of(policy)}
        said = entry_of(name).recorded(policies[name], parameters) | {"report": report_of(policy)}
        return elastic_figures(made, outcome, bound) | said

    rows, missing = until_interrupted(makers, run, keep=keep_interrupted)
    about = {
        "jobs": len(made.workload.jobs),
        "format": made.document["format"],
        "machines": len(made.workload.site.machines),
        "slot_seconds": slot_seconds,
        "bound": None if bound is None else bound.value,
        "version": oasis.__version__,
        **missing,
    }
    return Comparison("compare", rows, about)
