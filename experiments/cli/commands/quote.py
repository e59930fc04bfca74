"""``oasis quote``: what would happen to one more job, and to the others because of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import oasis
from experiments.cli import console
from experiments.cli.options import (
    InstanceFile,
    OasisFlags,
    Set,
    choose_options,
)
from experiments.cli.results import Delivery, pages, read_instance, read_job
from experiments.evaluation.live import quote_recourse
from experiments.evaluation.policies import OASIS, POLICIES
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import quote_facts
from oasis.model.errors import located_at
from oasis.online.answers import Change
from oasis.online.oasis import OASiS


def command(
    *,
    file: InstanceFile,
    job_file: Annotated[
        Path,
        typer.Argument(
            metavar="JOB.json", help="One entry of an instance's jobs.", show_default=False
        ),
    ],
    policy: Annotated[
        Literal["oasis", "recourse"], typer.Option(case_sensitive=False, help="Who would decide.")
    ] = "oasis",
    oasis_options: OasisFlags,
    assignments: Set = None,
    delivery: Delivery,
) -> None:
    """Say what would happen to one more job, submitted after the jobs of FILE that arrive no later.

    Nothing is committed. The answer says whether the job would be admitted, when it would finish,
    what it would cost and, if it is rejected, what would have to change. OASiS takes its prices
    from the jobs of FILE. With --policy recourse, the answer also says which jobs would be moved,
    delayed or given up, and how the total utility would change; the plan reaches as many slots
    ahead as FILE has.

    Example: oasis quote instance.json job.json
    """
    (options,) = choose_options([policy], assignments, oasis=oasis_options).values()
    instance = read_instance(file)
    job = read_job(job_file)
    change: Change | None = None
    with located_at(source=job_file):
        if policy == OASIS:
            decision, parameters = _quote(instance, job, options)
        else:
            quote = quote_recourse(instance, job, options)
            decision, change = quote.decision, quote.change
            parameters = POLICIES[policy].resolve(options)
    provenance = {
        "change": None if change is None else change.to_dict(),
        "policy": policy,
        "parameters": dict(parameters),
        "instance": instance_reference(instance, str(file)),
        "seed": instance.metadata.get("seed"),
        "version": oasis.__version__,
    }

    def show() -> None:
        verdict = "would be admitted" if decision.admitted else "would be rejected"
        facts = quote_facts(decision, job.arrival) + ([] if change is None else _others(change))
        console.print_facts(f"job {job.id} {verdict}", facts)

    document = {"kind": "quote"} | decision.to_dict() | provenance
    delivery(document, show, lambda: pages().plot_quote(decision).figure)


def _quote(
    instance: oasis.Instance, job: oasis.Job, options: Mapping[str, Any]
) -> tuple[oasis.Decision, Mapping[str, Any]]:
    scheduler = OASiS.from_instance(instance, **options)
    for earlier in instance.jobs_by_arrival():
        if earlier.arrival <= job.arrival:
            scheduler.submit(earlier)
    return scheduler.quote(job), scheduler.parameters


def _others(change: Change) -> list[tuple[str, str]]:
    """Describe the effects on the other jobs."""
    delays = [f"{d.job_id} (slot {d.before} to {d.after})" for d in change.delayed]
    lists = [
        ("moved", list(change.moved)),
        ("delayed", delays),
        ("displaced", list(change.displaced)),
        ("given up", list(change.given_up)),
    ]
    facts = [(name, ", ".join(jobs)) for name, jobs in lists if jobs]
    if not facts:
        facts = [("others", "nothing changes for them")]
    return [*facts, ("utility of all", f"{change.utility:+.6g}")]
