"""Results of other people: verified, and compared with the best that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.evaluation.checking import SCHEDULES, check_document
from experiments.evaluation.competitive_ratio import CompetitiveRatio
from experiments.library.families import PROBLEMS, Problem, problem_named
from experiments.library.store import BETTER, Library, LibraryEntry, fingerprint
from oasis.certify.verify import verify
from oasis.model.document import entry, mapping, text
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.schedule import schedules_by_job
from oasis.simulator.result import result_from_dict
from offline import OfflineResult, Phase, Status
from offline.state import trivial_bound


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A result that was verified on its instance.

    Parameters
    ----------
    problem : Problem
        The instance.
    instance : Instance
        The same, generated.
    value : float
        Total utility of the schedules, recomputed.
    bound : float or None
        The bound that the result states; nobody but a solver can verify it.
    result : OfflineResult
        The schedules and, if it has one, the bound, in the form in which the library takes them.
    known : LibraryEntry or None
        What the library has.
    """

    problem: Problem
    instance: Instance
    value: float
    bound: float | None
    result: OfflineResult
    known: LibraryEntry | None

    @property
    def verdict(self) -> str:
        """How the value compares with the best known one: better, the same, worse, or the first."""
        if self.known is None:
            return "first"
        allowed = BETTER * abs(self.known.value)
        if self.value > self.known.value + allowed:
            return "better"
        return "worse" if self.value < self.known.value - allowed else "the same"

    @property
    def refutes(self) -> bool:
        """Whether the schedules are worth more than the best known bound, which is wrong then."""
        return self.known is not None and self.known.is_refuted_by(self.value)

    @property
    def is_tighter(self) -> bool:
        """Whether the bound that it states is lower than the best known one."""
        if self.bound is None:
            return False
        return self.known is None or self.bound < self.known.bound * (1 - BETTER)


def handed_in(library: Library, data: Any, name: str | None = None) -> HandedIn:
    """Verify a result on the instance that it is of.

    Parameters
    ----------
    library : Library
        To compare it with.
    data : plain data
        The document of ``oasis run``, ``solve`` or ``ratio``, or ``{"schedules": [...]}``.
    name : str, optional
        Of the instance; left out, the one whose digest the document has.

    Raises
    ------
    VerificationError
        If a schedule breaks a constraint, or a figure is not what follows from the rest.
    OasisError
        If the document is malformed or of no instance of the library.
    """
    problem = problem_of(library, mapping(data), name)
    known = library.find(problem.name)
    instance = problem.instance() if known is None else library.instance(known)
    check_document(instance, data)
    result, states_bound = _offline_result(instance, data)
    value = verify(instance, result)
    bound = result.upper_bound if states_bound else None
    return HandedIn(problem, instance, value, bound, result, known)


def problem_of(library: Library, data: Any, name: str | None) -> Problem:
    """The instance that was named, or the one that the document is of.

    Raises
    ------
    OasisError
        If there is none.
    """
    if name is not None:
        return problem_named(name)
    if "instance" not in data:
        raise InputError("instance", "missing; expected it, or the name of an instance")
    sha256 = entry(data, "instance", lambda named: entry(named, "sha256", text))
    for record in library.records().values() if library.table.exists() else ():
        if sha256.startswith(record.fingerprint):
            return PROBLEMS[record.name]
    for problem in PROBLEMS.values():
        if sha256.startswith(fingerprint(problem.instance())):
            return problem
    raise InputError("instance.sha256", f"{sha256[:16]} is of no instance of the library")


def _offline_result(instance: Instance, data: Any) -> tuple[OfflineResult, bool]:
    """The schedules of a document as an offline result, and whether it states a bound."""
    found = result_from_dict(data) if "kind" in data else None
    if isinstance(found, CompetitiveRatio):
        found = found.offline
    if isinstance(found, OfflineResult):
        return found, True
    if found is None:
        schedules, found_by = entry(data, SCHEDULES, schedules_by_job), "handed in"
    else:
        schedules, found_by = found.schedules, f"handed in: {found.policy}"
    result = OfflineResult(
        status=Status.INTERRUPTED,
        objective=verify(instance, schedules),
        upper_bound=trivial_bound(instance),
        schedules=schedules,
        method=found_by,
        seconds=0.0,
        bound_by=Phase.TRIVIAL,
    )
    return result, False
