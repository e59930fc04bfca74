"""What makes a live scheduler last: saved states, and a journal of the calls since."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from oasis.model.errors import OasisError
from oasis.model.files import read_archive, write_archive
from oasis.model.instance_file import cluster_from_dict, job_from_dict, job_to_dict
from oasis.model.job import Job
from oasis.online.live.answers import Change, Totals
from oasis.online.live.calls import Answer, carry_out
from oasis.online.live.core import Core
from oasis.online.live.irrevocable import OasisCore
from oasis.online.live.journal import Journal, checksum, read_journal
from oasis.online.live.lock import JournalLock
from oasis.online.live.with_recourse import RecourseCore

SNAPSHOT = "oasis-live-scheduler 1"
INTERRUPTED = "a call was interrupted; reopen the journal"
CORES: dict[str, type[Core]] = {core.name: core for core in (RecourseCore, OasisCore)}


class LastingCalls:
    """Calls to a core that can be saved, and kept in a journal before they are answered.

    Parameters
    ----------
    core : Core
        What plans.

    Attributes
    ----------
    totals, calls, last_change, notes
        Those of `oasis.LiveScheduler`.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self.totals = Totals()
        self.calls = 0
        self.last_change = Change()
        self.notes: tuple[str, ...] = ()
        self._journal: Journal | None = None
        self._lock: JournalLock | None = None
        self._unusable: str | None = None

    def _call(self, call: str, **arguments: Any) -> Answer:
        """Make a call and, with a journal open, put it on the disk before it is answered."""
        self._check_usable()
        if self._journal is None:
            return self._made(call, arguments)
        plain = {name: _plain(value) for name, value in arguments.items()}
        self._unusable = INTERRUPTED
        try:
            answer = self._made(call, arguments)
        except OasisError:  # refused before anything changed
            self._unusable = None
            raise
        except BaseException:
            self._release()
            raise
        entry = {"call": call, "arguments": plain, "number": self.calls}
        entry |= {"rounds": self.core.rounds_done, "answer": _sum_of(answer)}
        with self._released_on_failure():
            self._journal.append(entry)
        self._unusable = None
        return answer

    def _made(self, call: str, arguments: Mapping[str, Any]) -> Answer:
        effect = carry_out(self.core, self.totals, call, arguments)
        self.totals, self.last_change = effect.totals, effect.change
        self.calls += 1
        return effect.answer

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise OasisError(self._unusable)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to `path`, a NumPy archive; it appears whole or not at all.

        Raises
        ------
        InstanceError
            If a live job has a utility that the file format does not know.
        """
        self._check_usable()
        state, arrays = self.core.state()
        header = {
            "core": self.core.name,
            **self.core.to_dict(),
            "state": state,
            "totals": self.totals.to_dict(),
            "calls": self.calls,
        }
        write_archive(path, SNAPSHOT, header, arrays, durable=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; it goes on as the saved one would have, bit for bit.

        Raises
        ------
        OasisError
            If the file is no saved live scheduler.
        """
        header, arrays = read_archive(path, SNAPSHOT)
        cluster = cluster_from_dict(header["cluster"])
        core = CORES[header["core"]].made_with(cluster, header["parameters"])
        core.restore_state(header["state"], arrays)
        scheduler = cls(core)
        scheduler.totals = Totals.from_dict(header["totals"])
        scheduler.calls = header["calls"]
        return scheduler

    def open_journal(self, path: str | os.PathLike[str]) -> None:
        """From now on no call is answered before it is on the disk.

        The state is saved to `path` with ``.snapshot`` added, every call accepted after that is a
        line of `path`, and `reopen` continues from both.

        Raises
        ------
        OasisError
            If a journal is open already, `path` exists, or another scheduler is about to make it.
        """
        self._check_usable()
        if self._journal is not None:
            raise OasisError(f"journal: {self._journal.path} is open already")
        if Path(path).exists():
            raise OasisError(f"journal: expected a new file, {os.fspath(path)} exists")
        self._lock = JournalLock(path)
        with self._released_on_failure():
            self.save(_snapshot_of(path))
            self._journal = Journal.begin(path, self.calls)

    @classmethod
    def reopen(cls, path: str | os.PathLike[str]) -> Self:
        """Continue where the journal at `path` ends, bit for bit; a torn last line is dropped.

        Raises
        ------
        OasisError
            If the journal is damaged, does not follow on its snapshot, or is open in another
            scheduler, of this process or of another one.
        """
        Path(_snapshot_of(path)).stat()  # where there is no journal, no lock is left behind
        lock = JournalLock(path)
        try:
            scheduler = cls.load(_snapshot_of(path))
            contents = read_journal(path)
            for entry in contents.entries:
                if entry["number"] > scheduler.calls:
                    scheduler._repeat(entry, os.fspath(path))
            scheduler.core.rounds_given = None
            scheduler.notes = (contents.note,) if contents.note else ()
            scheduler._journal = Journal.resume(path, contents)
        except BaseException:
            lock.release()
            raise
        scheduler._lock = lock
        return scheduler

    def _repeat(self, entry: Mapping[str, Any], path: str) -> None:
        if entry["number"] != self.calls + 1:
            found = f"got call {entry['number']}"
            raise OasisError(f"{path}: expected call {self.calls + 1} of the snapshot, {found}")
        arguments = dict(entry["arguments"])
        if "job" in arguments:
            arguments["job"] = job_from_dict(arguments["job"])
        self.core.rounds_given = entry["rounds"]
        if _sum_of(self._made(entry["call"], arguments)) != entry["answer"]:
            raise OasisError(f"{path}: call {entry['number']} does not give the recorded answer")

    def checkpoint(self) -> None:
        """Save the state beside the journal and begin the journal anew, so that it stays short."""
        self._check_usable()
        if self._journal is None:
            raise OasisError("journal: none is open")
        path = self._journal.path
        self.save(_snapshot_of(path))
        self._unusable = INTERRUPTED
        with self._released_on_failure():
            self._journal = Journal.begin(path, self.calls)
        self._unusable = None

    def close(self) -> None:
        """Close the journal, so that others may open it; calls go on without one."""
        self._journal = None
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextmanager
    def _released_on_failure(self) -> Iterator[None]:
        """Whatever fails inside leaves the journal to the next who opens it."""
        try:
            yield
        except BaseException:
            self._release()
            raise


def _snapshot_of(path: str | os.PathLike[str]) -> str:
    return f"{os.fspath(path)}.snapshot"


def _plain(value: Any) -> Any:
    """An argument as JSON keeps it."""
    if isinstance(value, Job):
        return job_to_dict(value)
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    return int(value) if isinstance(value, Integral) else value


def _sum_of(answer: Answer) -> str:
    return checksum(json.dumps(answer.to_dict()).encode("utf-8"))
