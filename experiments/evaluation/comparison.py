"""Policies side by side on one instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import oasis
from oasis.model.instance import Instance
from oasis.simulator import Policy, Scheduler
from oasis.simulator.result import Run


@dataclass(frozen=True, slots=True)
class Comparison:
    """Verified runs of several policies on one instance.

    Parameters
    ----------
    runs : mapping of str to Run
        By name of the policy, in the order asked for.
    slot_seconds : float
        Length of a slot.
    """

    runs: Mapping[str, Run]
    slot_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: for each policy the figures of the table, and its parameters."""
        return {
            name: figures(run) | {"parameters": dict(run.parameters), "report": dict(run.report)}
            for name, run in self.runs.items()
        }


def figures(run: Run) -> dict[str, Any]:
    """The figures by which policies are compared, as plain data; measured times come last.

    Raises
    ------
    ValueError
        If the run was not simulated.
    """
    outcome = run.outcome
    if outcome is None:
        raise ValueError(f"{run.policy}: expected a simulated run")
    return {
        "total_utility": run.total_utility,
        "admitted": run.admitted,
        "rejected": run.rejected,
        "finished": len(outcome.completions),
        "mean_completion": outcome.mean_completion,
        "p95_completion": outcome.completion_quantile(0.95),
        "makespan": outcome.makespan,
        "given_up_after_start": outcome.given_up_after_start,
        "wasted_share": outcome.wasted_share,
        "utilisation": outcome.utilisation,
        "decision_seconds": run.latency,
        "policy_seconds": outcome.policy_seconds,
        "simulator_seconds": outcome.simulator_seconds,
    }


def compare(
    instance: Instance,
    policies: Mapping[str, Callable[[], Policy | Scheduler]],
    *,
    on_run: Callable[[Run], None] | None = None,
) -> Comparison:
    """Run each policy on `instance` and verify what it did.

    Parameters
    ----------
    instance : Instance
        The problem.
    policies : mapping of str to callable
        Makes a fresh policy.
    on_run : callable, optional
        Called after each run, for progress.

    Raises
    ------
    PolicyError
        If a policy asks for what cannot run.
    VerificationError
        If a schedule breaks a constraint of the model.

    Examples
    --------
    >>> from baselines import DRF, FIFO
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> found = compare(instance, {"fifo": FIFO, "drf": DRF}).to_dict()
    >>> {name: row["admitted"] for name, row in found.items()}
    {'fifo': 4, 'drf': 4}
    """
    runs = {}
    for name, make in policies.items():
        runs[name] = oasis.simulate(instance, make())
        oasis.verify(instance, runs[name])
        if on_run is not None:
            on_run(runs[name])
    return Comparison(runs, instance.slot_seconds)
