"""Schedules that somebody has found for an instance of the library: verified, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.competitive_ratio import CompetitiveRatio
from experiments.evaluation.provenance import SCHEDULES, check_document, stated_digest
from experiments.library.families import PROBLEMS, Problem, problem_named
from experiments.library.store import BETTER, Library, LibraryEntry, fingerprint
from oasis.certify.verify import verify
from oasis.model.document import entry, mapping
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.results import result_from_dict
from offline.result import OfflineResult


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Submitted schedules that were verified, beside the best known result (`known`)."""

    problem: Problem
    instance: Instance
    schedules: Mapping[str, Schedule]
    value: float
    value_by: str
    known: LibraryEntry | None
    bound: float | None = None  # as the result states it: only a solver can verify it
    bound_by: str = ""

    @property
    def verdict(self) -> str:
        """How the value compares with the best known: better, the same, worse, first."""
        if self.known is None:
            return "first"
        allowed = BETTER * abs(self.known.value)
        if self.value > self.known.value + allowed:
            return "better"
        return "worse" if self.value < self.known.value - allowed else "the same"

    @property
    def refutes(self) -> bool:
        """Whether the schedules earn more than the best known bound, which is then wrong."""
        return self.known is not None and self.known.is_refuted_by(self.value)

    @property
    def is_tighter(self) -> bool:
        """Whether the submitted bound is lower than the best known one, or the first."""
        if self.bound is None:
            return False
        return self.known is None or self.bound < self.known.bound * (1 - BETTER)


def handed_in(library: Library, data: Any, name: str | None = None) -> HandedIn:
    """Verify a submitted document; `name` is its problem, by default found by its digest."""
    problem = _problem_of(library, mapping(data), name)
    record = library.find(problem.name)
    instance = problem.instance() if record is None else library.instance(record)
    check_document(instance, data)
    result = result_from_dict(data) if "kind" in data else None
    if isinstance(result, CompetitiveRatio):
        result = result.offline
    if isinstance(result, OfflineResult):
        return of_solve(problem, instance, result, record)
    if result is None:
        schedules, by = entry(data, SCHEDULES, schedules_by_job), "handed in"
    else:
        schedules, by = result.schedules, f"handed in: {result.policy}"
    return HandedIn(problem, instance, schedules, verify(instance, schedules), by, record)


def of_solve(
    problem: Problem, instance: Instance, result: OfflineResult, record: LibraryEntry | None
) -> HandedIn:
    """Verify the schedules of a solve, and pair them with its bound and the known `record`."""
    method, value = result.method, verify(instance, result)
    by = [
        f"{method}: {part}" if part else method for part in (result.objective_by, result.bound_by)
    ]
    schedules = result.schedules
    return HandedIn(problem, instance, schedules, value, by[0], record, result.upper_bound, by[1])


def _problem_of(library: Library, data: Any, name: str | None) -> Problem:
    """Find the problem by its name, or by the digest in the document."""
    if name is not None:
        return problem_named(name)
    if "instance" not in data:
        raise InputError("instance", "missing; expected it, or the name of an instance")
    sha256 = stated_digest(data)
    # The table is searched first: to generate two hundred instances takes time.
    for record in library.records().values() if library.table.exists() else ():
        if sha256.startswith(record.fingerprint):
            return PROBLEMS[record.name]
    for problem in PROBLEMS.values():
        if sha256.startswith(fingerprint(problem.instance())):
            return problem
    raise InputError("instance.sha256", f"{sha256[:16]} is of no instance of the library")
