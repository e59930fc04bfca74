"""OASiS as plain data: its decisions, each of which must follow from those before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oasis.model.decision import Decision
from oasis.model.document import count, entry, list_of, optional, text
from oasis.model.errors import InputError, located_at
from oasis.model.groups import GROUPS
from oasis.model.instance_file import cluster_from_dict, cluster_to_dict
from oasis.model.job import Job
from oasis.model.records import parse, plain
from oasis.model.schedule import COUNT, Schedule
from oasis.model.validation import integer
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds
from oasis.online.rejection import schedule_cost

if TYPE_CHECKING:
    from oasis.online.oasis import OASiS

CHECKPOINT = "oasis-scheduler 1"


def content(scheduler: OASiS) -> dict[str, Any]:
    """Return plain data of a scheduler, without prices and amounts, which follow from it."""
    if not isinstance(scheduler.bounds, PriceBounds):
        raise InputError("prices", "expected the paper's: a saved scheduler holds no code of yours")
    jobs = scheduler.history.jobs
    return {
        "horizon": scheduler.horizon,
        "now": scheduler.now,
        "granularity": scheduler.granularity,
        "bounds": scheduler.bounds.to_dict(),
        "bounds_from": scheduler.bounds_from,
        "cluster": cluster_to_dict(scheduler.cluster),
        "decisions": [
            {**decision.to_dict(), "job": plain(next(jobs)) if decision.admitted else None}
            for decision in scheduler.decisions
        ],
    }


def restore(kind: type[OASiS], state: Mapping[str, Any]) -> OASiS:
    """Rebuild a scheduler from what `content` returned; `InputError` names a wrong entry."""
    scheduler = kind(
        entry(state, "cluster", cluster_from_dict),
        entry(state, "horizon", count),
        entry(state, "bounds", PriceBounds.from_dict),
        granularity=entry(state, "granularity", lambda value: value),
    )
    scheduler.bounds_from = entry(state, "bounds_from", optional(text))
    entry(state, "decisions", list_of(lambda data: _follow(scheduler, data)))
    first, last = scheduler.now, scheduler.horizon - 1
    scheduler.now = integer(state.get("now"), "now", minimum=first, maximum=last)
    return scheduler


def _follow(scheduler: OASiS, data: Any) -> None:
    """Check a saved decision against those before it, and repeat it in `scheduler`."""
    decision, job = Decision.from_dict(data), entry(data, "job", optional(partial(parse, Job)))
    if job is not None:
        with located_at("job"):
            scheduler.check(job)
    elif decision.job_id in scheduler.ids:
        raise InputError("job_id", "expected a new job", decision.job_id)
    _check_decision(decision, job, scheduler.ledger)
    if job is not None and decision.schedule is not None:
        scheduler.history.commit(job, decision.schedule)
        if scheduler.ledger.lacks_room(decision.schedule):
            raise InputError("schedule", "expected no more than the servers have left")
    scheduler.record(decision, scheduler.now if job is None else job.arrival)


def _check_decision(decision: Decision, job: Job | None, ledger: Ledger) -> None:
    """Raise `InputError` unless the numbers of `decision` follow; `job` is None if rejected."""
    computed = Decision(
        decision.job_id, False, reason=decision.reason, rejection=decision.rejection
    )
    if decision.schedule is not None and job is not None:
        with located_at("schedule"):
            _check_rows(decision.schedule, job, ledger)
        with np.errstate(over="ignore"):  # at bounds of e^709, which no decision follows from
            cost = schedule_cost(decision.schedule, job, ledger).total
        end = decision.schedule.completion
        utility = float(job.in_form(decision.schedule.form).utility(end - job.arrival))
        computed = Decision(job.id, True, utility - cost, utility, cost, end, decision.schedule)
    # Another machine may round the last bit of a cost in another way.
    slack = 1e-9 * abs(computed.utility)
    for name in ("payoff", "utility", "cost"):
        its = getattr(computed, name)
        if not abs(getattr(decision, name) - its) <= slack:  # nor if one of them is no number
            raise InputError(name, f"expected {its}, as it follows", getattr(decision, name))
        computed = replace(computed, **{name: getattr(decision, name)})
    if computed != decision:
        expected = "expected a schedule and its completion if it is admitted, otherwise none"
        raise InputError("", expected, decision)


def _check_rows(schedule: Schedule, job: Job, ledger: Ledger) -> None:
    """Raise `InputError` unless slots, servers and counts can be those of a schedule of `job`."""
    integer(schedule.form, "form", maximum=len(job.in_forms) - 1)
    for group in GROUPS:
        rows, servers = group.placed(schedule), len(group.capacity(ledger.cluster))
        last = ledger.horizon - 1, servers - 1, job.in_form(schedule.form).chunks
        repeated = (rows[1:, :COUNT] == rows[:-1, :COUNT]).all(axis=1)
        if (rows < (job.arrival, 0, 1)).any() or (rows > last).any() or repeated.any():
            expected = f"slots {job.arrival}..{last[0]}, servers 0..{last[1]}, each place once"
            raise InputError(f"{group}", f"expected {expected}, with 1..{last[2]} tasks")
    if not len(schedule.workers):
        raise InputError("workers", "expected at least one")
