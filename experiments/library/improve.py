"""One pass over the library: each open instance is solved again, and what is better is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date

from experiments.library.families import Problem, problems_like
from experiments.library.store import (
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
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.online.live.journal import JournalLock
from oasis.online.recourse.policy import Recourse
from oasis.simulator import simulate
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Stop
from offline import OfflineResult, Phase, solve

RECOURSE = "recourse"  # by whom schedules are that stood there before the first solve
JOURNAL = "pass.jsonl"  # a file beside the table, with what the present pass has done


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a pass tries.

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
        """When a solve ends: by work if that is limited, else by time."""
        if self.work_limit is not None:
            return Stop(work_limit=self.work_limit)
        return Stop(time_limit=self.time_limit)


@dataclass(frozen=True, slots=True)
class Improvement:
    """What a pass has made of one instance.

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


def improve(
    library: Library,
    effort: Effort,
    *,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> Iterator[Improvement]:
    """Solve every instance once more, and keep what is better.

    Each change is on the disk when it is yielded. A pass that was ended, by whatever signal, goes
    on where it stopped when it is started again with the same effort; after a whole pass, the next
    one begins at the first instance. What is proven optimal is not solved again.

    Parameters
    ----------
    library : Library
        What is known; its directory may be empty or missing.
    effort : Effort
        How hard to try.
    on_progress : callable, optional
        Called with the progress of each solve.

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
            change = improve_one(library, problem, effort, on_progress=on_progress)
            yield change
            if change.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            journal.add(problem.name)
        journal.close()


@contextmanager
def sole_writer(library: Library) -> Iterator[None]:
    """Keep other processes from writing to a library; its directory is made if it is missing.

    Raises
    ------
    OasisError
        If another process is at work on it.
    """
    library.directory.mkdir(parents=True, exist_ok=True)
    lock = JournalLock(library.directory / JOURNAL)
    try:
        yield
    finally:
        lock.release()


def improve_one(
    library: Library,
    problem: Problem,
    effort: Effort,
    *,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> Improvement:
    """Solve one instance, from the best schedules that are known, and keep what is better."""
    before = library.find(problem.name)
    if before is not None and before.proof == OPTIMAL:
        return Improvement(before, before, None)
    if before is None:
        instance = problem.instance()
        start: Mapping[str, Schedule] = simulate(
            instance, Recourse(commitment="none", seed=0)
        ).schedules
    else:
        instance = library.instance(before)
        library.verify(before, instance)
        start = library.schedules(before)
    result = solve(
        instance,
        effort.method,
        stop=effort.stop,
        seed=effort.seed,
        warm_start=start,
        on_progress=on_progress,
    )
    return Improvement(before, keep(library, problem, instance, result), result.status)


def keep(
    library: Library, problem: Problem, instance: Instance, result: OfflineResult
) -> LibraryEntry:
    """Keep what is better in a result of the instance, and return the record with it.

    Raises
    ------
    VerificationError
        If the schedules break a constraint.
    SolverError
        If a bound lies below verified schedules.
    """
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
