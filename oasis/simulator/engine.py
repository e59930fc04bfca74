"""Feed the jobs of an instance to a policy in order of arrival."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

from oasis.job import Job
from oasis.prices import PriceBounds
from oasis.problem import Instance
from oasis.result import Decision, Run
from oasis.version import __version__


class Policy(Protocol):
    """A scheduler that decides on each job at its arrival, once and for all."""

    name: str
    bounds: PriceBounds

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this run from another, as plain data."""
        ...

    def submit(self, job: Job) -> Decision:
        """Decide on `job`, knowing only the jobs submitted before it."""
        ...


def simulate(
    instance: Instance,
    policy: Policy,
    *,
    on_decision: Callable[[Decision], None] | None = None,
) -> Run:
    """Run `policy` on the jobs of `instance` in order of arrival.

    Parameters
    ----------
    instance : Instance
        Its jobs are shown to the policy one at a time.
    policy : Policy
        For example `OASiS.from_instance(instance)`.
    on_decision : callable, optional
        Called after each decision, for progress.

    Returns
    -------
    Run
        Decisions, schedules, total utility and the measured decision times.
    """
    decisions, seconds = [], []
    for job in instance.jobs_by_arrival():
        begin = perf_counter()
        decision = policy.submit(job)
        seconds.append(perf_counter() - begin)
        decisions.append(decision)
        if on_decision is not None:
            on_decision(decision)
    return Run(
        policy=policy.name,
        parameters=policy.parameters,
        decisions=tuple(decisions),
        bounds=policy.bounds,
        decision_seconds=tuple(seconds),
        seed=instance.metadata.get("seed"),
        version=__version__,
    )
