"""Policies side by side, on one instance or on one trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import oasis
from oasis.model.document import entry, mapping, text
from oasis.model.errors import located_at
from oasis.model.frames import frame
from oasis.model.instance import Instance, expect_instance
from oasis.model.summary import Facts, Summarised
from oasis.model.validation import describe
from oasis.simulator import Policy, Scheduler
from oasis.simulator.result import Run

SLOT_SECONDS = 600.0  # length of the slots of OASiS and recourse on elastic jobs
# Figures of the jobs that finished alone: where jobs did not, every page and plot marks them.
OF_FINISHED = ("mean_completion", "median_completion", "p95_completion")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Summarised):
    """Figures of several policies on the same jobs.

    Parameters
    ----------
    kind : {"compare", "replay"}
        On an instance, each run verified; or on a trace.
    policies : mapping of str to mapping
        For each policy, in the order asked for, the figures of the table, its parameters and what
        it reports of its own run.
    about : mapping
        What they ran on: the number of ``jobs``, the ``version`` of the package, and what else the
        document says.
    """

    kind: str
    policies: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any]

    @property
    def unfinished(self) -> dict[str, float]:
        """Jobs that did not finish under each policy, rejected ones included; means over seeds.

        Where it is not 0, completion times are those of the other jobs alone. Results of versions
        that did not count these jobs have it too.

        Examples
        --------
        >>> from baselines import DRF, FIFO
        >>> instance = oasis.generate("testbed", jobs=4, seed=1)
        >>> compare(instance, {"fifo": FIFO, "drf": DRF}).unfinished
        {'fifo': 3, 'drf': 3}
        """
        jobs = self.about.get("jobs", 0)
        return {
            name: row["unfinished"] if "unfinished" in row else jobs - row.get("finished", jobs)
            for name, row in self.policies.items()
        }

    @property
    def missing(self) -> list[str]:
        """Policies that were asked for and are not there, because Ctrl-C ended the comparison."""
        return list(self.about.get(MISSING, ()))

    def summary(self) -> tuple[str, Facts]:
        """Jobs, and of the first policies how many finished."""
        most = 4
        rows = list(self.policies.items())
        done = [(name, f"finished {row.get('finished', 0):.6g}") for name, row in rows[:most]]
        more = [("and", f"{len(rows) - most} more policies")] if len(rows) > most else []
        return "Comparison", [("jobs", f"{self.about.get('jobs')}"), *done, *more]

    def to_frame(self) -> Any:
        """Figures as a pandas DataFrame: a row a policy, a column for each single number.

        Returns
        -------
        pandas.DataFrame
            The column policy, and those figures that are single numbers.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed, naming the extra that brings it.

        Examples
        --------
        >>> from baselines import DRF, FIFO
        >>> instance = oasis.generate("testbed", jobs=4, seed=1)
        >>> frame = compare(instance, {"fifo": FIFO, "drf": DRF}).to_frame()
        >>> frame[["policy", "admitted"]].values.tolist()
        [['fifo', 4.0], ['drf', 4.0]]
        """
        rows = [{"policy": name, **row} for name, row in self.policies.items()]
        first = next(iter(self.policies.values()), {})
        numbers = [name for name, value in first.items() if not isinstance(value, Mapping)]
        return frame(rows, {"policy": "string", **dict.fromkeys(numbers, "float64")})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        policies = {name: dict(row) for name, row in self.policies.items()}
        return {"kind": self.kind, "policies": policies, **self.about}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Comparison:
        """Rebuild from `to_dict`, also after a trip through JSON.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.

        Examples
        --------
        >>> from baselines import FIFO
        >>> instance = oasis.generate("testbed", jobs=4, seed=1)
        >>> document = compare(instance, {"fifo": FIFO}).to_dict()
        >>> Comparison.from_dict(document).to_dict() == document
        True
        """
        policies = entry(data, "policies", mapping)
        with located_at("policies"):
            rows = {name: entry(policies, name, mapping) for name in policies}
        about = {name: value for name, value in data.items() if name not in ("kind", "policies")}
        return cls(entry(data, "kind", text), rows, about)


MISSING = "missing"  # key of a comparison that was interrupted: names of policies without figures


def until_interrupted(
    names: Iterable[str], run: Callable[[str], dict[str, Any]], *, keep: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Figures of each policy, and what the document says of those that Ctrl-C has left out.

    Parameters
    ----------
    names : iterable of str
        Names of policies, in this order.
    run : callable
        Makes the figures of one.
    keep : bool
        Whether Ctrl-C keeps the figures of the policies that are done, and the names of the others
        are said under `MISSING`. If not, or if none is done, KeyboardInterrupt goes on.

    Examples
    --------
    >>> until_interrupted(["a", "b"], lambda name: {"finished": 1}, keep=True)
    ({'a': {'finished': 1}, 'b': {'finished': 1}}, {})
    """
    rows: dict[str, dict[str, Any]] = {}
    left = list(names)
    try:
        while left:
            rows[left[0]] = run(left[0])
            left.pop(0)
    except KeyboardInterrupt:
        if not keep or not rows:
            raise
    missing = [name for name in left if name not in rows]
    return rows, {MISSING: missing} if missing else {}


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
        "unfinished": outcome.unfinished,
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
    on_decision: Callable[[str], None] | None = None,
) -> Comparison:
    """Run each policy on `instance` and verify what it did.

    Parameters
    ----------
    instance : Instance
        The problem.
    policies : mapping of str to callable
        Makes a fresh policy.
    on_decision : callable, optional
        Called with the name of the policy once for each job whose fate is known, for progress.

    Raises
    ------
    TypeError
        If an argument is something else, such as a path or a policy in place of what makes one.
    PolicyError
        If a policy asks for what cannot run.
    VerificationError
        If a schedule breaks a constraint of the model.

    Examples
    --------
    >>> from baselines import DRF, FIFO
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> found = compare(instance, {"fifo": FIFO, "drf": DRF})
    >>> {name: row["admitted"] for name, row in found.policies.items()}
    {'fifo': 4, 'drf': 4}
    """
    expect_instance(instance)
    _expect_makers(policies)
    rows = {}
    for name, make in policies.items():
        told = None if on_decision is None else partial(_tell, on_decision, name)
        run = oasis.simulate(instance, make(), on_decision=told)
        oasis.verify(instance, run)
        said = {"parameters": dict(run.parameters), "report": dict(run.report)}
        rows[name] = figures(run) | said
    about = {
        "jobs": len(instance.jobs),
        "slot_seconds": instance.slot_seconds,
        "seed": instance.metadata.get("seed"),
        "version": oasis.__version__,
    }
    return Comparison("compare", rows, about)


def _expect_makers(policies: object) -> None:
    expected = "expected a mapping of names to what makes a policy, such as {'fifo': FIFO}"
    if not isinstance(policies, Mapping):
        raise TypeError(f"policies: {expected}, got {describe(policies)}")
    for name, make in policies.items():
        if not callable(make):
            made = f"policies[{name!r}]: expected what makes a fresh policy, such as FIFO"
            raise TypeError(f"{made} or lambda: FIFO(seed=1), got {describe(make)}")


def _tell(on_decision: Callable[[str], None], name: str, _: oasis.Decision) -> None:
    on_decision(name)
