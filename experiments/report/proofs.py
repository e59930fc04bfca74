"""What of a result is proven or checked, and how."""

from __future__ import annotations

from typing import Any

from experiments.evaluation.checking import SCHEDULES
from experiments.evaluation.facts import Facts, certificate_facts
from experiments.evaluation.texts import number
from oasis.certify.certificate import certify
from oasis.model.instance import Instance
from oasis.solvers import Status

CHECKED = "every schedule satisfies (2)-(13), and every figure is what it is computed anew"
NOT_AGAIN = "not checked again, the instance is not there; the command did before it wrote this"


def proofs_of(kind: str, found: Any, instance: Instance | None) -> Facts:
    """What is proven of a result, as pairs of a name and a text.

    Parameters
    ----------
    kind : str
        Kind of the document.
    found : Run, OfflineResult, CompetitiveRatio, Comparison or Decision
        The result; None for schedules alone.
    instance : Instance or None
        The instance on which its schedules have just been verified.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> [name for name, _ in proofs_of("run", run, instance)][:2]
    ['verified', '2 alpha']
    """
    if kind == "quote":
        return [("none", "a quote commits nothing, and runs no schedule")]
    if kind == "replay":
        return [("checked", "each answer of a policy, against the machines, before it was done")]
    if kind == "compare":
        text = "the schedules of each policy satisfied (2)-(13) when the command ran"
        return [("verified", text), ("not again", "a comparison holds figures, no schedules")]
    proofs = [("verified", CHECKED if instance is not None else NOT_AGAIN)]
    if kind == "run" and found.bounds is not None and instance is not None:
        proofs += certificate_facts(found.policy, certify(instance, found))
    if kind == "solve":
        proofs += _of_offline(found)
    if kind == "ratio":
        proofs += _of_offline(found.offline)
        if found.certificate is not None:
            proofs += certificate_facts(found.run.policy, found.certificate)
    if kind == SCHEDULES:
        proofs.append(("bound", "none: schedules alone do not say how far from optimal they are"))
    return proofs


def _of_offline(result: Any) -> Facts:
    """A schedule that earns so much, and a bound that none exceeds."""
    agree = "they agree: optimal" if result.status is Status.OPTIMAL else f"{result.status}"
    return [
        ("a schedule earns", f"{number(result.objective)}, found by {result.objective_by or '-'}"),
        ("none earns more than", f"{number(result.upper_bound)}, by {result.bound_by or '-'}"),
        ("so", agree),
    ]
