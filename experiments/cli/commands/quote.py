"""``oasis quote``: what would happen to one more job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.flags import with_options
from experiments.cli.options import AsJson, InstanceFile
from experiments.cli.policy_options import Set, choose_options
from experiments.cli.reading import errors_name, read_instance, read_job
from experiments.evaluation.policies import OASIS, OasisOptions
from experiments.evaluation.provenance import instance_reference
from oasis.online.oasis import OASiS


@with_options(OasisOptions, "oasis_options", only_given=True)
def command(
    file: InstanceFile,
    job_file: Annotated[
        Path,
        typer.Argument(
            metavar="JOB.json", help="One entry of an instance's jobs.", show_default=False
        ),
    ],
    oasis_options: Any = None,
    assignments: Set = None,
    as_json: AsJson = False,
) -> None:
    """Quote a job that would arrive after those of FILE that arrive no later than it.

    Prices come from the jobs of FILE. Nothing is committed: would the job be admitted, when would
    it finish, what would it cost, and if it is rejected, what would have to change.

    Example: oasis quote instance.json job.json
    """
    (options,) = choose_options([OASIS], assignments, oasis=oasis_options).values()
    instance = read_instance(file)
    job = read_job(job_file)
    scheduler = OASiS.from_instance(instance, **options)
    for earlier in instance.jobs_by_arrival():
        if earlier.arrival <= job.arrival:
            scheduler.submit(earlier)
    with errors_name(job_file):
        decision = scheduler.quote(job)
    if as_json:
        provenance = {
            "policy": OASIS,
            "parameters": dict(scheduler.parameters),
            "instance": instance_reference(instance, str(file)),
            "seed": instance.metadata.get("seed"),
            "version": oasis.__version__,
        }
        console.print_json({"kind": "quote"} | decision.to_dict() | provenance)
    else:
        verdict = "would be admitted" if decision.admitted else "would be rejected"
        console.print_facts(f"job {job.id} {verdict}", _facts(decision, job))


def _facts(decision: oasis.Decision, job: oasis.Job) -> list[tuple[str, str]]:
    schedule = decision.schedule
    if schedule is not None:
        return [
            ("runs", f"in {slots_of(schedule)}; arrives in slot {job.arrival}"),
            ("workers", f"{schedule.worker_slots} worker-slots, at most {_peak(schedule)} at once"),
            ("utility", console.number(decision.utility)),
            ("cost", console.number(decision.cost)),
            ("payoff", console.number(decision.payoff)),
        ]
    facts = [("reason", decision.reason or "")]
    rejection = decision.rejection
    if rejection is None:
        return [*facts, ("to change it", "no utility would: there is no schedule at any price")]
    slot = rejection.smallest_utility_completion
    utility = f"more than {console.number(rejection.smallest_utility)} (completing by slot {slot})"
    facts.append(("needs to be worth", utility))
    if rejection.utility_factor is not None:
        factor = console.number(rejection.utility_factor)
        facts.append(("or its utility", f"multiplied by more than {factor}"))
    spot = rejection.bottleneck
    if spot is not None:
        facts.append(("pays most for", f"{spot.resource} of {_GROUPS[spot.group]}"))
        facts.append(("", f"{console.percent(spot.share)} of the cost"))
        facts.append(("in slots", ", ".join(map(str, spot.slots))))
        facts.append(("on servers", ", ".join(spot.servers)))
    return facts


_GROUPS = {"worker": "the worker servers", "ps": "the parameter-server hosts"}


def slots_of(schedule: oasis.Schedule) -> str:
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


def _peak(schedule: oasis.Schedule) -> int:
    counts: dict[int, int] = {}
    for slot, _, count in schedule.workers.tolist():
        counts[slot] = counts.get(slot, 0) + count
    return max(counts.values())
