"""What a quote says, as pairs of a name and a text."""

from __future__ import annotations

from experiments.evaluation import texts
from experiments.evaluation.facts import Facts
from oasis.model.decision import Decision
from oasis.model.schedule import Schedule


def quote_facts(decision: Decision, arrival: int | None = None) -> Facts:
    """When a job would run and what it would cost; or why not, and what would have to change."""
    schedule = decision.schedule
    if schedule is not None:
        came = "" if arrival is None else f"; arrives in slot {arrival}"
        return [
            ("runs", f"in {slots_of(schedule)}{came}"),
            ("workers", f"{schedule.worker_slots} worker-slots, at most {_peak(schedule)} at once"),
            ("utility", texts.number(decision.utility)),
            ("cost", texts.number(decision.cost)),
            ("payoff", texts.number(decision.payoff)),
        ]
    facts = [("reason", decision.reason or "")]
    rejection = decision.rejection
    if rejection is None:
        return [*facts, ("to change it", "no utility would: there is no schedule at any price")]
    slot = rejection.smallest_utility_completion
    utility = f"more than {texts.number(rejection.smallest_utility)} (completing by slot {slot})"
    facts.append(("needs to be worth", utility))
    if rejection.utility_factor is not None:
        factor = texts.number(rejection.utility_factor)
        facts.append(("or its utility", f"multiplied by more than {factor}"))
    spot = rejection.bottleneck
    if spot is not None:
        facts.append(("pays most for", f"{spot.resource} of {_GROUPS[spot.group]}"))
        facts.append(("", f"{texts.percent(spot.share)} of the cost"))
        facts.append(("in slots", ", ".join(map(str, spot.slots))))
        facts.append(("on servers", ", ".join(spot.servers)))
    return facts


_GROUPS = {"worker": "the worker servers", "ps": "the parameter-server hosts"}


def slots_of(schedule: Schedule) -> str:
    """The slots with workers, each stretch without a pause by its first and last."""
    slots = sorted({slot for slot, _, _ in schedule.workers.tolist()})
    stretches: list[list[int]] = []
    for slot in slots:
        if stretches and stretches[-1][1] == slot - 1:
            stretches[-1][1] = slot
        else:
            stretches.append([slot, slot])
    named = (f"{first}" if first == last else f"{first} to {last}" for first, last in stretches)
    return f"{'slot' if len(slots) == 1 else 'slots'} {', '.join(named)}"


def _peak(schedule: Schedule) -> int:
    counts: dict[int, int] = {}
    for slot, _, count in schedule.workers.tolist():
        counts[slot] = counts.get(slot, 0) + count
    return max(counts.values())
