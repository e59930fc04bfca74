"""Improvement of the library: new solves, and results that others submit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from experiments.evaluation.checking import SCHEDULES, check_document
from experiments.evaluation.competitive_ratio import CompetitiveRatio
from experiments.library.families import PROBLEMS, Problem, problem_named, problems_like
from experiments.library.store import (
    BETTER,
    OPTIMAL,
    Library,
    LibraryEntry,
    PassJournal,
    digest,
    fingerprint,
    packed,
    rounded,
    rounded_up,
)
from oasis.certify.verify import verify
from oasis.driver.journal import JournalLock
from oasis.model.document import entry, mapping, text
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.online.recourse.policy import Recourse
from oasis.simulator import simulate
from oasis.simulator.result import result_from_dict
from oasis.solvers import Status
from oasis.solvers.budget import Stop
from offline.result import OfflineResult
from offline.solve import solve
from offline.state import Phase, trivial_bound

RECOURSE = "recourse"  # by whom schedules are that stood there before the first solve
JOURNAL = "pass.jsonl"  # a file beside the table, with what the present pass has done


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of one pass over the library.

    Parameters
    ----------
    time_limit : float or None
        Seconds for each solve.
    work_limit : float or None
        Units of work in place of the seconds, as in `offline.solve`.
    method : str
        Offline method.
    seed : int
        Of the offline solve; another seed may find other schedules.
    patterns : tuple of str
        Names of instances or families, with ``*`` and ``?``; none is all of them.
    """

    time_limit: float | None = 30.0
    work_limit: float | None = None
    method: str = "auto"
    seed: int = 0
    patterns: tuple[str, ...] = ()

    @property
    def stop(self) -> Stop:
        """Criterion that ends a solve: work if it is limited, otherwise time."""
        if self.work_limit is not None:
            return Stop(work_limit=self.work_limit)
        return Stop(time_limit=self.time_limit)


@dataclass(frozen=True, slots=True)
class Improvement:
    """Result of a pass on one instance.

    Parameters
    ----------
    before : LibraryEntry or None
        None if nothing was known.
    after : LibraryEntry
        Never worse.
    status : Status or None
        Why the solve ended; None if the value was proven optimal before, and nothing was solved.
    """

    before: LibraryEntry | None
    after: LibraryEntry
    status: Status | None


def improve(library: Library, effort: Effort) -> Iterator[Improvement]:
    """Solve every instance once more, and keep what is better.

    Each change is on the disk when it is yielded. A pass that was ended, by whatever signal, goes
    on where it stopped when it is started again with the same effort; after a whole pass, the next
    one begins at the first instance. What is proven optimal is not solved again.

    Parameters
    ----------
    library : Library
        What is known; its directory may be empty or missing.
    effort : Effort
        Limits of the pass.

    Raises
    ------
    OasisError
        If another process is at work on the same library, or no instance has such a name.
    SolverError
        If a bound lies below verified schedules.
    KeyboardInterrupt
        After Ctrl-C, when what is known then has been kept.
    """
    problems = problems_like(effort.patterns)
    settings = {**asdict(effort), "patterns": [*effort.patterns]}
    with sole_writer(library):
        if library.table.exists():
            library.tidy()
        journal = PassJournal(library.directory / JOURNAL, settings)
        for problem in problems:
            if problem.name in journal.done:
                continue
            change = improve_one(library, problem, effort)
            yield change
            if change.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            # Only now is the instance done: the change is on the disk, and the caller has seen it.
            journal.add(problem.name)
        journal.close()


@contextmanager
def sole_writer(library: Library) -> Iterator[None]:
    """Keep other processes from writing to a library; its directory is made if it is missing."""
    library.directory.mkdir(parents=True, exist_ok=True)
    lock = JournalLock(library.directory / JOURNAL)
    try:
        yield
    finally:
        lock.release()


def improve_one(library: Library, problem: Problem, effort: Effort) -> Improvement:
    """Solve one instance, from the best schedules that are known, and keep what is better."""
    before = library.find(problem.name)
    if before is not None and before.proof == OPTIMAL:
        return Improvement(before, before, None)
    # Where nothing is known, the run of recourse is a start that the solve need not find itself.
    if before is None:
        instance = problem.instance()
        start: Mapping[str, Schedule] = simulate(
            instance, Recourse(commitment="none", seed=0)
        ).schedules
    else:
        instance = library.instance(before)
        library.verify(before, instance)
        start = library.schedules(before)
    result = solve(instance, effort.method, stop=effort.stop, seed=effort.seed, warm_start=start)
    return Improvement(before, keep(library, problem, instance, result), result.status)


def keep(
    library: Library, problem: Problem, instance: Instance, result: OfflineResult
) -> LibraryEntry:
    """Keep what is better in a result of the instance, and return the record with it."""
    today = date.today().isoformat()
    found_by = _by(result.method, result.objective_by)
    if result.objective_by == Phase.WARM_START:
        found_by = RECOURSE  # where nothing was known before; else the value stays another's
    new = LibraryEntry(
        name=problem.name,
        family=problem.family,
        fingerprint=fingerprint(instance),
        value=rounded(verify(instance, result)),
        bound=rounded_up(result.upper_bound),
        value_by=found_by,
        value_date=today,
        bound_by=_by(result.method, result.bound_by),
        bound_date=today,
        schedules=digest(packed(result.schedules)),
    )
    before = library.find(problem.name)
    after = new if before is None else before.improved(new)
    if after != before:
        is_new = before is None or after.schedules != before.schedules
        library.put(after, result.schedules if is_new else None)
    return after


def _by(method: str, part: str) -> str:
    return f"{method}: {part}" if part else method


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A result that was verified on its instance.

    Parameters
    ----------
    problem : Problem
        The instance.
    instance : Instance
        The generated instance.
    value : float
        Total utility of the schedules, recomputed.
    bound : float or None
        The bound that the result states; only a solver can verify it.
    result : OfflineResult
        The schedules and, if it has one, the bound, in the form in which the library takes them.
    known : LibraryEntry or None
        Entry of the library.
    """

    problem: Problem
    instance: Instance
    value: float
    bound: float | None
    result: OfflineResult
    known: LibraryEntry | None

    @property
    def verdict(self) -> str:
        """Comparison of the value with the best known one: better, the same, worse or first."""
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
        """Whether its stated bound is lower than the best known one."""
        if self.bound is None:
            return False
        return self.known is None or self.bound < self.known.bound * (1 - BETTER)


def handed_in(library: Library, data: Any, name: str | None = None) -> HandedIn:
    """Verify a submitted result on its instance.

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
    """Return the named instance, or the instance of the document."""
    if name is not None:
        return problem_named(name)
    if "instance" not in data:
        raise InputError("instance", "missing; expected it, or the name of an instance")
    sha256 = entry(data, "instance", lambda named: entry(named, "sha256", text))
    # The table is searched first: to generate two hundred instances takes time.
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
