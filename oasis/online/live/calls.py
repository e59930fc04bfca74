"""The calls that change a live scheduler, and what each of them did to the other jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oasis.model.decision import Decision
from oasis.model.errors import InstanceError, describe
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.validation import integer
from oasis.online.live.answers import Change, Delay, Progress, Totals
from oasis.online.live.core import Core, Events

Planned = Mapping[str, tuple[Schedule | None, float]]
Answer = Decision | Progress | Change


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call led to.

    Parameters
    ----------
    answer : Decision, Progress or Change
        What the caller is told.
    change : Change
        What it did to the other jobs.
    totals : Totals
        The counts after it.
    """

    answer: Answer
    change: Change
    totals: Totals


def carry_out(core: Core, totals: Totals, call: str, arguments: Mapping[str, Any]) -> Effect:
    """Make one call; an error leaves everything as it was."""
    before = core.planned()
    decision, events, own = CALLS[call](core, **arguments)
    change = change_between(before, core.planned(), own, events)
    if call == "advance":  # what completed leaves the plan without a loss
        gone = tuple(events.gone)
        progress = Progress(core.now, tuple(events.completed), gone)
        return Effect(progress, Change(given_up=gone), counted(totals, call, None, events))
    answer = change if decision is None else decision
    return Effect(answer, change, counted(totals, call, decision, events))


def change_between(before: Planned, after: Planned, own: str | None, events: Events) -> Change:
    """What happened to all jobs but `own` between two plans."""
    found: dict[str, list[Any]] = {name: [] for name in ("moved", "delayed", "displaced", "placed")}
    for name, (old, _) in before.items():
        if name == own or name not in after:
            continue
        new = after[name][0]
        if new is old or new == old:
            continue
        if new is None:
            found["displaced"].append(name)
        elif old is None:
            found["placed"].append(name)
        elif new.completion > old.completion:
            found["delayed"].append(Delay(name, old.completion, new.completion))
        else:
            found["moved"].append(name)
    gain = math.fsum(
        [utility for _, utility in after.values()]
        + [done.utility for done in events.completed]
        + [-utility for _, utility in before.values()]
    )
    return Change(
        **{name: tuple(jobs) for name, jobs in found.items()},
        given_up=tuple(name for name in events.gone if name != own),
        broken=tuple(events.record.broken),
        utility=gain,
    )


def counted(totals: Totals, call: str, decision: Decision | None, events: Events) -> Totals:
    """`totals` after a call."""
    record = events.record
    return replace(
        totals,
        submitted=totals.submitted + (call == "submit"),
        refused=totals.refused + (decision is not None and not decision.admitted),
        completed=totals.completed + len(events.completed),
        cancelled=totals.cancelled + (call == "cancel"),
        given_up=totals.given_up + len(events.gone),
        given_up_after_start=totals.given_up_after_start + len(record.given_up),
        broken_promises=totals.broken_promises + len(record.broken),
        worker_slots_done=totals.worker_slots_done + record.done,
        worker_slots_wasted=totals.worker_slots_wasted + record.wasted,
        cut_short=totals.cut_short + record.cut_short,
        utility=totals.utility + math.fsum(done.utility for done in events.completed),
    )


Result = tuple[Decision | None, Events, str | None]


def _advance(core: Core, now: int) -> Result:
    until = integer(now, "now", minimum=core.now)
    return None, core.advance(until) if until > core.now else Events(), None


def _submit(core: Core, job: Job) -> Result:
    core.check_new(job)
    return *core.submit(job), job.id


def _cancel(core: Core, job_id: str) -> Result:
    return None, core.cancel(core.find(job_id)), job_id


def _finish(core: Core, job_id: str) -> Result:
    return None, core.complete(core.find(job_id)), job_id


def _revise(core: Core, job_id: str, remaining_work: int) -> Result:
    live = core.find(job_id)
    return None, core.revise([(live, _work(remaining_work, "remaining_work"))]), None


def _revise_all(core: Core, remaining_work: Mapping[str, int]) -> Result:
    if not isinstance(remaining_work, Mapping):
        wanted = "expected a mapping of ids to worker-slots"
        raise InstanceError("remaining_work", f"{wanted}, got {describe(remaining_work)}")
    found = [
        (core.find(job_id), _work(work, f"remaining_work[{job_id!r}]"))
        for job_id, work in remaining_work.items()
    ]
    found.sort(key=lambda pair: pair[0].key)  # a journal keeps no order of names
    return None, core.revise(found) if found else Events(), None


def _work(value: int, name: str) -> int:
    return integer(value, name, minimum=1)


def _lose(core: Core, server: str) -> Result:
    return None, core.lose(core.locate(server, lost=False)), None


def _restore(core: Core, server: str) -> Result:
    return None, core.restore(core.locate(server, lost=True)), None


CALLS: dict[str, Callable[..., Result]] = {
    "advance": _advance,
    "submit": _submit,
    "cancel": _cancel,
    "finish": _finish,
    "revise": _revise,
    "revise_all": _revise_all,
    "lose": _lose,
    "restore": _restore,
}
