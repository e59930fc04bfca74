"""``oasis run``: one policy on one instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import oasis
from experiments.cli import console
from experiments.cli.options import (
    AsJson,
    Floor,
    Granularity,
    InstanceFile,
    Picture,
    PolicySeed,
    RawUnits,
    ResultFile,
    Scale,
)
from experiments.cli.reading import POLICIES, check_policy, policy_for, read_instance
from experiments.cli.results import deliver
from oasis.model.usage import utilisation
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 20


def command(
    file: InstanceFile,
    policy: Annotated[str, typer.Option(help=f"One of: {', '.join(POLICIES)}.")] = "oasis",
    scale: Scale = 1.0,
    min_utility_fraction: Floor = DEFAULT_MIN_UTILITY_FRACTION,
    granularity: Granularity = "worker-slot",
    raw_units: RawUnits = False,
    policy_seed: PolicySeed = 0,
    every_job: Annotated[
        bool, typer.Option("--all", help=f"List every decision, not the first {MOST_ROWS}.")
    ] = False,
    output: ResultFile = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Run a policy: who is admitted, when jobs finish, how full the cluster is.

    Example: oasis run instance.json --policy oasis
    """
    check_policy(policy, "--policy")
    instance = read_instance(file)
    scheduler = policy_for(
        policy,
        instance,
        seed=policy_seed,
        scale=scale,
        min_utility_fraction=min_utility_fraction,
        granularity=granularity,
        raw_units=raw_units,
    )
    with console.counter("deciding", len(instance.jobs)) as advance:
        run = oasis.simulate(instance, scheduler, on_decision=lambda _: advance())
    oasis.verify(instance, run)
    document = run.to_dict() | {"utilisation": utilisation(instance, run.schedules)}
    deliver(
        document,
        lambda: _print(instance, run, len(run.decisions) if every_job else MOST_ROWS),
        as_json=as_json,
        output=output,
        plot=plot,
        draw=lambda: _draw(instance, run),
    )


def _draw(instance: oasis.Instance, run: oasis.Run) -> Figure:
    from experiments.plotting import run_page  # noqa: PLC0415 (needs an extra)

    return run_page(instance, run)


def _print(instance: oasis.Instance, run: oasis.Run, rows: int) -> None:
    console.print_facts(f"{run.policy} on {len(run.decisions)} jobs", _facts(instance, run))
    if not run.decisions:
        return
    table = [_row(decision) for decision in run.decisions[:rows]]
    columns = (("job", False), ("finishes", True), ("utility", True), ("cost", True), ("", False))
    console.print_rows(columns, table, title="\nDecisions in order of arrival")
    if len(run.decisions) > rows:
        console.note(f"({len(run.decisions) - rows} more; --all lists them, --json has them whole)")


def _facts(instance: oasis.Instance, run: oasis.Run) -> list[tuple[str, str]]:
    latency = run.latency
    facts = [
        ("total utility", console.number(run.total_utility)),
        ("admitted", f"{run.admitted} of {len(run.decisions)}"),
        (
            "decision time",
            f"median {console.seconds(latency['median'])}, p99 {console.seconds(latency['p99'])}, "
            f"max {console.seconds(latency['max'])}",
        ),
    ]
    facts += [(name.replace("_", " "), f"{value}") for name, value in run.report.items() if value]
    for group, shares in utilisation(instance, run.schedules).items():
        parts = [f"{name} {console.percent(s)}" for name, s in shares.items() if s is not None]
        facts.append((f"{group} servers used", ", ".join(parts)))
    return facts


def _row(decision: oasis.Decision) -> tuple[str, str, str, str, str]:
    if decision.admitted:
        if decision.completion is None:
            return (decision.job_id, "-", "0", "0", decision.reason or "")
        slot = f"slot {decision.completion}"
        numbers = (console.number(decision.utility), console.number(decision.cost))
        return (decision.job_id, slot, *numbers, "admitted")
    return (decision.job_id, "-", "-", "-", f"rejected: {decision.reason}")
