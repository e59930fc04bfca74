"""Live schedulers for services that run for years: calls, decisions, snapshots and a journal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar

from oasis.driver import events
from oasis.driver.journal import (
    Contents,
    JournalLock,
    add_to_journal,
    begin_journal,
    read_journal,
)
from oasis.driver.policy_state import in_one_line, restore_policy
from oasis.driver.service import Answer, Service
from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.errors import OasisError, describe, located_at
from oasis.model.files import checksum, naming, save_state, saved_state
from oasis.model.instance_file import cluster_from_dict, cluster_to_dict
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.validation import integer, number
from oasis.online.answers import Change, Progress, Quote, Totals
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR
from oasis.online.recourse.futures import DEFAULT_SAMPLES
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.policy import Recourse
from oasis.online.recourse.rules import RuleName
from oasis.online.rolling import restricted
from oasis.online.rolling_oasis import RollingOASiS
from oasis.scheduling.policy import Planner, Policy
from oasis.scheduling.policy_check import check_interface, parameters_of
from oasis.scheduling.site import site_of

SNAPSHOT = "oasis-live-scheduler 3"
ENTRY = frozenset(("event", "arguments", "number", "rounds", "answer"))  # of the journal
OWN = ("_turn", "_process", "_journal", "_lock")  # of a scheduler, not of its copy
INTERRUPTED = "a call was interrupted; reopen the journal"
TAKEN_OVER = "the journal belongs to another scheduler, or to the process that this is a fork of"
FAILED = "the policy failed in a call; reopen the journal, or make another scheduler"
KNOWN: dict[str, type[Recourse] | type[RollingOASiS]] = {
    kind.name: kind for kind in (Recourse, RollingOASiS)
}


def remembered(
    name: str, making: Mapping[str, Any], cluster: Mapping[str, Any], state: str
) -> RollingOASiS | Recourse:
    """Rebuild the policy OASiS or recourse from a saved `state`, without jobs, for `foresee`."""
    policy = KNOWN[name].made(making)
    site = site_of(cluster_from_dict(cluster))
    policy.reset(site)
    restore_policy(policy, state, {}, site)
    return policy


A = TypeVar("A", Decision, Progress, Change)


class LiveScheduler:
    """A policy in service, on a horizon that rolls: it runs for years in bounded memory.

    Slots are absolute, counted from 0. The present slot is `now`; it has not begun, and whatever
    is decided may use it. The plan of recourse and of OASiS reaches `lookahead` slots ahead. Jobs
    that ended leave nothing but counts (`totals`).

    `LiveScheduler.recourse` and `LiveScheduler.oasis` make one of these two; any other policy, such
    as one of `baselines` or of your own, runs unchanged in ``LiveScheduler(policy, cluster)``.

    Threads may share a scheduler: their calls are made one after the other.

    Parameters
    ----------
    policy : Policy
        What decides. It is asked at every event: a call, a completion, a slot with a live job if it
        is `slotted`.
    cluster : Cluster
        Servers and the length of a slot.

    Attributes
    ----------
    policy, cluster
        As given; schedules name servers by index (`Cluster.worker_ids`, `Cluster.ps_ids`).
    notes : tuple of str
        What was found on reopening a journal, such as a torn last line.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> for job in instance.jobs_by_arrival():
    ...     progress = scheduler.advance(job.arrival)
    ...     decision = scheduler.submit(job)
    ...     print(decision.job_id, decision.completion)
    j0 8
    j1 10
    j2 9
    >>> sorted(scheduler.plan(slots=1))  # who runs in slot 6
    ['j0', 'j2']
    """

    def __init__(self, policy: Policy, cluster: Cluster) -> None:
        self._service: Service = Service(policy, cluster)
        self.policy, self.cluster = policy, cluster
        self.notes: tuple[str, ...] = ()
        self._journal: Path | None = None
        self._lock: JournalLock | None = None
        self._unusable: str | None = None
        self._turn, self._process = RLock(), os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy has turns of its own, and no journal.
        vars(self).update(state, _turn=RLock(), _process=os.getpid(), _journal=None, _lock=None)

    def __repr__(self) -> str:
        totals = self.totals
        counts = f"{len(self.jobs)} jobs live, {totals.submitted} submitted"
        what = f"{self.policy.name}, slot {self.now}, {counts}, {totals.completed} completed"
        return f"<LiveScheduler: {what}>"

    # -- making one --------------------------------------------------------------------------------

    @classmethod
    def recourse(
        cls,
        cluster: Cluster,
        lookahead: int,
        commitment: Commitment = "none",
        *,
        patience: int | None = None,
        params: RecourseParams | None = None,
        seed: int = 0,
        seconds: float | None = None,
        admission: RuleName | None = None,
        prices: LearnedPrices | str | None = None,
        bounds: PriceBounds | None = None,
        samples: int = DEFAULT_SAMPLES,
        min_utility_fraction: float = DEFAULT_FLOOR,
    ) -> Self:
        """Plan all live jobs again at every call that changes jobs or capacity.

        Parameters
        ----------
        cluster : Cluster
            Servers and the length of a slot.
        lookahead : int
            Slots that the plan reaches ahead, the present one included.
        commitment, params, seed, seconds
            As for `oasis.Recourse`. A journal repeats decisions made under a limit in `seconds`.
        patience : int, optional
            Number of slots after the arrival in which a completion counts; a job that can no longer
            complete by then is given up. Default: twice `lookahead`.
        admission, prices, bounds, samples, min_utility_fraction
            Who is admitted under commitment on arrival, as for `oasis.Recourse`, where the last
            is called ``admission_floor``. Slot 0 is the first slot of a day.
        """
        policy = Recourse.rolling(
            lookahead,
            commitment,
            patience=patience,
            params=params,
            seed=integer(seed, "seed"),
            seconds=None if seconds is None else number(seconds, "seconds"),
            admission=admission,
            prices=learned_from(prices, "prices"),
            bounds=bounds,
            samples=samples,
            admission_floor=min_utility_fraction,
        )
        return cls(policy, cluster)

    @classmethod
    def oasis(
        cls,
        cluster: Cluster,
        lookahead: int,
        bounds: PriceBounds,
        *,
        patience: int | None = None,
    ) -> Self:
        """OASiS on the next `lookahead` slots: a job keeps the schedule that it was admitted with.

        Where a server is lost or a job's work is revised, the rest of the work is placed by
        Algorithm 2 at the prices of the moment. Promised completions that this breaks, and jobs
        for which nothing pays then, are named in the answer.

        Parameters
        ----------
        cluster, lookahead, patience
            As for `recourse`; patience matters only for jobs that are placed again.
        bounds : PriceBounds
            U and L, estimated from past jobs with the horizon `lookahead`.
        """
        return cls(RollingOASiS(lookahead, bounds, patience=patience), cluster)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The present slot, which has not begun."""
        return self._service.now

    @property
    def totals(self) -> Totals:
        """Counts over the whole life."""
        return self._service.totals

    @property
    def calls(self) -> int:
        """Number of calls accepted over the whole life."""
        return self._service.calls

    @property
    def last_change(self) -> Change:
        """What the last accepted call did to the other jobs."""
        return self._service.last_change

    @property
    def jobs(self) -> tuple[str, ...]:
        """Live jobs, planned or waiting, in order of arrival."""
        with self._own_turn():
            return self._service.jobs

    def plan(self, slots: int | None = None) -> dict[str, Schedule]:
        """Planned allocations from the present slot on, by job.

        A policy that does not plan ahead has decided on the present slot alone.

        Parameters
        ----------
        slots : int, optional
            Number of slots to look ahead; jobs that run in none of them are left out.
        """
        with self._own_turn():
            planned, now = self._service.schedules(), self.now
        if slots is None:
            return planned
        end = now + integer(slots, "slots", minimum=1)
        cut = {job_id: restricted(schedule, end) for job_id, schedule in planned.items()}
        return {job_id: schedule for job_id, schedule in cut.items() if schedule is not None}

    def promised(self, job_id: str) -> int | None:
        """The slot by which a live job must complete; None if nothing was promised."""
        with self._own_turn():
            return self._service.promised(job_id)

    def quote(self, job: Job) -> Quote:
        """Quote `job`: the decision of `submit` now, and its effects on other jobs.

        Nothing changes. With a limit in seconds `submit` may still decide otherwise.
        """
        with self._in_turn():
            return self._service.quote(job)

    # -- calls -------------------------------------------------------------------------------------

    def submit(self, job: Job) -> Decision:
        """Decide on `job`, which arrives in the present slot.

        An admitted job without a completion waits: there is no room for it yet. With recourse,
        completion and schedule are what is planned now, and the payoff is the planned utility.

        Raises
        ------
        InstanceError
            If the job does not fit the cluster's resources, arrives in another slot, or has the
            id of a live job.
        """
        return self._call(events.Submit(job), Decision)

    def advance(self, now: int) -> Progress:
        """Let everything happen that is planned before slot `now`."""
        return self._call(events.Advance(now), Progress)

    def cancel(self, job_id: str) -> Change:
        """Take back a live job that is no longer wanted."""
        return self._call(events.Cancel(job_id), Change)

    def finish(self, job_id: str) -> Change:
        """End a live job that is done before its time.

        It completes in the present slot if it is planned there, otherwise in the one before.
        """
        return self._call(events.FinishEarly(job_id), Change)

    def revise(self, job_id: str, remaining_work: int) -> Change:
        """Set the work that a live job has left to `remaining_work` worker-slots."""
        with self._in_turn():
            job_id = self._service.find(job_id).job.id
            return self._call(events.Revise({job_id: remaining_work}), Change)

    def revise_all(self, remaining_work: Mapping[str, int]) -> Change:
        """Correct the work left of several live jobs at once, by id; recourse plans once for all.

        Raises
        ------
        OasisError
            If it is no mapping, one of the jobs is not live, or its work is not a whole number of
            at least 1; nothing is changed then.
        """
        return self._call(events.Revise(remaining_work), Change)

    def lose(self, server: str) -> Change:
        """Do without the server with that id from the present slot on: it is lost."""
        return self._call(events.LoseServer(server), Change)

    def restore(self, server: str) -> Change:
        """Use a lost server again from the present slot on: it is back."""
        return self._call(events.RestoreServer(server), Change)

    def reserve(
        self,
        name: str,
        begin: int,
        end: int,
        servers: Sequence[str],
    ) -> Change:
        """Keep servers from jobs for some slots, such as for maintenance.

        Jobs that run there before the window leave when it begins. Another call with the same name
        replaces the window, and with ``servers=[]`` takes it back.

        Parameters
        ----------
        name : str
            The name of the window.
        begin, end : int
            The first slot of the window, not before `now`, and the first slot after it.
        servers : sequence of str
            Ids of the servers.

        Raises
        ------
        OasisError
            If an argument is not as above, or the policy plans ahead but not around windows.

        Examples
        --------
        >>> import oasis
        >>> instance = oasis.generate("testbed", jobs=1, seed=1)
        >>> (job,) = instance.jobs
        >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
        >>> scheduler.advance(job.arrival).now
        6
        >>> scheduler.submit(job).completion
        7
        >>> scheduler.reserve("firmware", 7, 9, instance.cluster.worker_ids).delayed
        (Delay(job_id='j0', before=7, after=9),)
        """
        return self._call(events.ReserveWindow(name, begin, end, servers), Change)

    # -- what lasts --------------------------------------------------------------------------------

    def _call(self, event: events.Event, kind: type[A]) -> A:
        """Carry out an event, write it to the journal if one is open, and return the answer."""
        with self._in_turn():
            # Made before the call: afterwards an argument may have been changed by its owner.
            entry = {} if self._journal is None else events.plain_event(event)
            with self._half_done():
                answer = self._service.take_in(event)
                if self._journal is not None:
                    # The rounds repeat a search that a clock cut short; the sum of the answer
                    # proves on reopening that the repeated call decided the same.
                    entry |= {"number": self.calls, "rounds": self._service.rounds}
                    # On the disk before the caller has the answer: what was promised survives a
                    # crash. A call that is not on the disk was never answered.
                    add_to_journal(self._journal, entry | {"answer": _sum_of(answer)})
            assert isinstance(answer, kind)
            return answer

    def _own_turn(self) -> RLock:
        """Return the lock for calls from several threads; a new one in a forked process."""
        if self._process != os.getpid():
            # A thread that is not in this process may have held the lock when it was forked off.
            self._turn, self._process = RLock(), os.getpid()
        return self._turn

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Hold the lock for one call; `OasisError` if the scheduler can make no calls any more."""
        with self._own_turn():
            if self._service.has_failed:
                raise OasisError(FAILED)
            if self._unusable is not None:
                raise OasisError(self._unusable)
            # two that number their calls alike would overwrite each other's
            if self._lock is not None and not self._holds(self._lock):
                raise OasisError(TAKEN_OVER)
            yield

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to the file `path`; it appears whole or not at all.

        Raises
        ------
        InputError
            If a live job has a utility of one's own, or the policy an attribute that cannot be
            saved.
        """
        with self._in_turn():
            policy = self.policy
            state = {
                "policy": policy.name,
                "parameters": parameters_of(policy),
                "making": policy.making() if isinstance(policy, Planner) else None,
                "cluster": cluster_to_dict(self.cluster),
                **self._service.state(),
            }
            # Durable: `checkpoint` throws the journal away afterwards,
            # so the snapshot must be on the disk.
            save_state(path, SNAPSHOT, state, durable=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], policy: Policy | None = None) -> Self:
        """Read a file of `save`; the service continues like the saved one, bit for bit.

        Parameters
        ----------
        path : str or path-like
            The file.
        policy : Policy, optional
            An unused policy with the same options; OASiS and recourse need none.

        Raises
        ------
        OasisError
            If the file is no saved live scheduler, or was saved with another policy.
        """
        if policy is not None:
            check_interface(policy)
        state = saved_state(path, SNAPSHOT)
        with located_at(source=path), in_one_line("", "expected what was saved"):
            name, making = state["policy"], state["making"]
            if policy is None:
                if making is None or name not in KNOWN:
                    expected = f"expected one like the one that was saved, {name!r}, got none"
                    raise OasisError(f"policy: {expected}")
                # as it was, whatever its maker called what he gave: a file, what computes bounds
                policy = KNOWN[name].made(making)
            else:
                # Through JSON, as the saved ones went: tuples become lists on both sides.
                own = policy.name, json.loads(json.dumps(parameters_of(policy)))
                if own != (name, state["parameters"]):
                    saved = f"{name!r} with {state['parameters']}"
                    got = f"{own[0]!r} with {own[1]}"
                    raise OasisError(f"policy: expected {saved}, got {got}")
            scheduler = cls(policy, cluster_from_dict(state["cluster"]))
            scheduler._service.restore(state)
        return scheduler

    def open_journal(self, path: str | os.PathLike[str]) -> None:
        """Begin a journal: from now on no call is answered before it is on the disk.

        The state is saved to `path` with ``.snapshot`` added, every call accepted after that is a
        line of `path`, and `reopen` continues from both.

        Raises
        ------
        OasisError
            If a journal is open already, `path` exists, or another scheduler is about to make it.
        """
        with self._in_turn():
            if self._journal is not None:
                raise OasisError(f"journal: {self._journal} is open already")
            if Path(path).exists():
                raise OasisError(f"journal: expected a new file, {os.fspath(path)} exists")
            # The lock comes first: two processes that both see no journal must not both make one.
            self._lock = JournalLock.of(path)
            self._lock.holder = id(self)
            try:
                # The snapshot before the journal that follows on it: a
                # journal alone could not be reopened.
                self.save(_snapshot_of(path))
                begin_journal(path, self.calls)
                self._journal = Path(path)
            except BaseException:
                self._release()
                raise

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], policy: Policy | None = None) -> Self:
        """Continue where the journal at `path` ends, bit for bit; a torn last line is dropped.

        `policy` is as for `load`.

        Raises
        ------
        OasisError
            If the journal is damaged, does not follow on its snapshot, or is open in another
            process. A scheduler of this process that had it open makes no more calls.
        """
        Path(_snapshot_of(path)).stat()  # where there is no journal, no lock is left behind
        lock = JournalLock.of(path)
        try:
            scheduler = cls.load(_snapshot_of(path), policy)
            contents = read_journal(path)
            with located_at(source=path), in_one_line("", "expected what was saved"):
                scheduler._repeat_all(contents)
            scheduler.notes = (contents.note,) if contents.note else ()
            with naming(path):
                # A new line behind half a line would make both unreadable.
                os.truncate(path, contents.size)
            scheduler._journal = Path(path)
        except BaseException:
            if lock.holder is None:
                lock.release()
            raise
        scheduler._lock, lock.holder = lock, id(scheduler)
        return scheduler

    def _repeat_all(self, contents: Contents) -> None:
        """Repeat the calls of a journal that came after the snapshot; check answers against it."""
        # A checkpoint saves its snapshot first, so a journal may be older, and never newer.
        if contents.calls > self.calls:
            expected = f"expected a snapshot of {contents.calls} calls or more"
            raise OasisError(f"{expected}, got one of {self.calls} calls")
        # Whoever went on behind a gap could not be reopened.
        if (last := contents.calls + len(contents.entries)) < self.calls:
            raise OasisError(f"expected the {self.calls} calls of the snapshot, got {last}")
        for entry in contents.entries:
            with located_at(f"call {entry['number']}"):
                if entry.keys() != ENTRY or entry["event"] not in events.EVENTS:
                    raise OasisError(f"expected a call and its answer, got {describe(entry)}")
                if entry["number"] <= self.calls:
                    continue
                # Another answer than the recorded one means another program or another machine's
                # arithmetic: going on would break what callers were told.
                answer = self._service.take_in(events.event_of(entry), entry["rounds"])
                if _sum_of(answer) != entry["answer"]:
                    raise OasisError(f"call {entry['number']} does not give the recorded answer")

    def checkpoint(self) -> None:
        """Save the state beside the journal and start an empty journal."""
        with self._in_turn():
            if self._journal is None:
                raise OasisError("journal: none is open")
            # The snapshot is written before the journal begins anew: between the two, the old
            # journal only has calls too many, which `reopen` skips.
            self.save(_snapshot_of(self._journal))
            with self._half_done():
                begin_journal(self._journal, self.calls)

    def close(self) -> None:
        """Close the journal, so that another service may open it; calls continue without one."""
        with self._own_turn():
            self._journal = None
            self._release()

    def _holds(self, lock: JournalLock) -> bool:
        return lock.is_held and lock.holder == id(self)

    def _release(self) -> None:
        if self._lock is not None and self._holds(self._lock):
            self._lock.release()
        self._lock = None

    @contextmanager
    def _half_done(self) -> Iterator[None]:
        """Mark a scheduler with a journal as unusable if the block fails after a change."""
        self._unusable = None if self._journal is None else INTERRUPTED
        try:
            yield
        except BaseException as error:
            if isinstance(error, OasisError) and not self._service.has_failed:
                self._unusable = None  # refused before anything changed
            else:
                self._release()
            raise
        self._unusable = None


def _snapshot_of(path: str | os.PathLike[str]) -> str:
    return f"{os.fspath(path)}.snapshot"


def _sum_of(answer: Answer) -> str:
    return checksum(json.dumps(answer.to_dict()).encode("utf-8"))
