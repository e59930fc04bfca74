"""Events of a service, one class for each call, and their plain data for a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, get_args

from oasis.model.job import Job
from oasis.model.records import parse, plain


@dataclass(frozen=True, slots=True)
class Submit:
    """The event that a job arrives."""

    job: Job


@dataclass(frozen=True, slots=True)
class Advance:
    """The event that time passes up to slot `now`."""

    now: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """The event that the owner of a job cancels it."""

    job_id: str


@dataclass(frozen=True, slots=True)
class FinishEarly:
    """The event that a job is done earlier than planned."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Revise:
    """The event that the worker-slots left of jobs, by id, are corrected."""

    remaining_work: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoseServer:
    """The event that a server is lost."""

    server: str


@dataclass(frozen=True, slots=True)
class RestoreServer:
    """The event that a lost server is back."""

    server: str


@dataclass(frozen=True, slots=True)
class ReserveWindow:
    """The event that servers are to be closed from slot `begin` to the slot before `end`."""

    name: str
    begin: int
    end: int
    servers: Sequence[str]


Jobs = Submit | Advance | Cancel | FinishEarly | Revise
Servers = LoseServer | RestoreServer | ReserveWindow
Event = Jobs | Servers
EVENTS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


def plain_event(event: Event) -> dict[str, Any]:
    """Return an event as plain data for a journal, from which `event_of` rebuilds it."""
    arguments = {each.name: _plain(getattr(event, each.name)) for each in fields(event)}
    return {"event": type(event).__name__, "arguments": arguments}


def event_of(data: Mapping[str, Any]) -> Event:
    """Rebuild an event from the data of `plain_event`."""
    arguments = dict(data["arguments"])
    if "job" in arguments:
        arguments["job"] = parse(Job, arguments["job"])
    return EVENTS[data["event"]](**arguments)


def _plain(value: Any) -> Any:
    """Return an argument of an event as plain data; NumPy numbers become those of Python."""
    if isinstance(value, Job):
        return plain(value)
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
