"""Events of a service, one class for each call, and their plain data for a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from oasis.model.job import Job
from oasis.model.records import (
    Kind,
    ListOf,
    Record,
    RecordOf,
    TableOf,
    Text,
    Whole,
    entry,
    parse,
    plain,
)
from oasis.model.resources import Table
from oasis.model.validation import integer


class WorkLeft(Table[int]):
    """Worker-slots that are left of jobs, by id."""

    contents = "worker-slots by id"
    checked = staticmethod(partial(integer, minimum=1))


@dataclass(frozen=True, slots=True)
class Submit(Record):
    """The event that a job arrives."""

    job: Job = entry(RecordOf(Job))


@dataclass(frozen=True, slots=True)
class Advance(Record):
    """The event that time passes up to slot `now`."""

    now: int = entry(Whole())


@dataclass(frozen=True, slots=True)
class Cancel(Record):
    """The event that the owner of a job cancels it."""

    job_id: str = entry(Kind())  # the service says which jobs are live


@dataclass(frozen=True, slots=True)
class FinishEarly(Record):
    """The event that a job is done earlier than planned."""

    job_id: str = entry(Kind())


@dataclass(frozen=True, slots=True)
class Revise(Record):
    """The event that the worker-slots left of jobs, by id, are corrected."""

    remaining_work: Mapping[str, int] = entry(TableOf(WorkLeft, Whole(1)))


@dataclass(frozen=True, slots=True)
class LoseServer(Record):
    """The event that a server is lost."""

    server: str = entry(Kind())


@dataclass(frozen=True, slots=True)
class RestoreServer(Record):
    """The event that a lost server is back."""

    server: str = entry(Kind())


@dataclass(frozen=True, slots=True)
class ReserveWindow(Record):
    """The event that servers are to be closed from slot `begin` to the slot before `end`."""

    name: str = entry(Text())
    begin: int = entry(Whole())
    end: int = entry(Whole())
    servers: Sequence[str] = entry(ListOf(Text()))


Jobs = Submit | Advance | Cancel | FinishEarly | Revise
Servers = LoseServer | RestoreServer | ReserveWindow
Event = Jobs | Servers
EVENTS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


def plain_event(event: Event) -> dict[str, Any]:
    """Return an event as plain data for a journal, from which `event_of` rebuilds it."""
    return {"event": type(event).__name__, "arguments": plain(event)}


def event_of(data: Mapping[str, Any]) -> Event:
    """Rebuild an event from the data of `plain_event`."""
    return parse(EVENTS[data["event"]], data["arguments"])
