"""``oasis run`` and ``quote``: one policy on one instance, and what one more job would change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import oasis
from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.progress import counter
from experiments.cli.results import (
    Delivery,
    pages,
    read_document,
    read_instance,
    read_job,
    read_recipe,
)
from experiments.evaluation import provenance, tables
from experiments.evaluation.live import quote_recourse
from experiments.evaluation.policies import OASIS, POLICIES, SEED, entry_of
from experiments.evaluation.provenance import Recipe, instance_reference
from oasis.model.errors import located_at
from oasis.model.files import json_text
from oasis.model.summary import how_many
from oasis.online.answers import Change
from oasis.online.oasis import OASiS

MOST_ROWS = 20


def run(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Instance file (JSON). With --from: by default the file that it names.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        f"One of: {', '.join(POLICIES)}. [default: {OASIS}]",
        {"autocompletion": flags.A_POLICY},
    ] = None,
    oasis_options: flags.OasisFlags,
    policy_seed: flags.PolicySeed = None,
    assignments: flags.Set = None,
    result: Annotated[
        Path | None,
        "Repeat this result of oasis run: the same policy and options on the same instance.",
        {"flag": "--from", "metavar": "RESULT.json"},
    ] = None,
    every_job: Annotated[
        bool, f"List every decision, not the first {MOST_ROWS}.", {"flag": "--all-decisions"}
    ] = False,
    payments: Annotated[bool, "Also list what each job pays at the posted prices."] = False,
    delivery: Delivery,
) -> None:
    """Run a policy: which jobs are admitted, when they finish, how full the cluster is.

    The JSON result names the policy, all its options, and the instance's file and digest. --from
    repeats such a result: it gives the same bytes except for measured times, or says what differs.

    Example: oasis run instance.json --policy las --set las.line=fit
    """
    if result is None:
        name = flags.known_policy(policy or OASIS, "--policy")
        (options,) = flags.choose_options(
            [name], assignments, oasis=oasis_options, shared={SEED: policy_seed}
        ).values()
        recipe, path = None, file
    else:
        if policy or oasis_options or policy_seed is not None or assignments:
            raise oasis.InputError("--from", "expected no policy and no options beside it")
        recipe = read_recipe(result)
        name, options = _recorded(recipe, result)
        path = file or recipe.file
    if path is None:
        expected = "expected an instance file, or --from with a result that names one"
        raise oasis.InputError("FILE", expected)
    instance = read_instance(path)
    if recipe is not None:
        _check_same(recipe, instance, path)
    entry = entry_of(name)
    scheduler = entry.make(instance, options)
    if payments and getattr(scheduler, "bounds", None) is None:
        raise oasis.InputError("--payments", f"expected a policy with prices, {name} has none")
    with counter("deciding", len(instance.jobs)) as advance:
        run = oasis.simulate(instance, scheduler, on_decision=lambda _: advance())
    # Nothing is printed or written before every constraint has been checked.
    oasis.verify(instance, run)
    utilisation = run.outcome.utilisation if run.outcome else {}

    def document() -> dict[str, Any]:
        named = {"policy": name, "utilisation": utilisation}
        source = {"instance": instance_reference(instance, str(path))}
        made = {} if recipe is None or recipe.command is None else {"command": recipe.command}
        return run.to_dict() | entry.recorded(options, run.parameters) | named | source | made

    if result is not None:
        with located_at(source=result):
            # Through JSON, as the recorded document came: there, tuples are lists.
            made = json.loads(json_text(document()))
            provenance.check_reproduced(read_document(result), made)

    def show() -> None:
        _print(run, utilisation, len(run.decisions) if every_job else MOST_ROWS)
        if payments:
            _print_payments(run)

    delivery(document, show, lambda: pages().run_page(instance, run))


def _recorded(recipe: Recipe, result: Path) -> tuple[str, dict[str, Any]]:
    """Return policy and options of a result, checked like those of the command line."""
    name = flags.known_policy(recipe.policy, f"--from {result}: policy")
    entry = entry_of(name)
    recorded = recipe.parameters
    if entry.imported is not None:
        if recipe.files is None:
            lacks = "does not say what code its policy was; expected policy_files"
            raise oasis.InputError(f"--from {result}", lacks)
        # `parameters` may hold more than options; `check_reproduced` compares all of it at the end
        recorded = {option: value for option, value in recorded.items() if option in entry.options}
    with located_at(source=f"--from {result}"):
        options = entry.resolve(recorded)
    if entry.imported is not None or recipe.files is not None:
        with located_at(source=result):
            recipe.check_files(entry.files(options))
    return name, options


def _check_same(recipe: Recipe, instance: oasis.Instance, path: Path) -> None:
    """Raise if the instance is not that of the result; note that another version may differ."""
    with located_at(source=path):
        provenance.check_digest(instance, recipe.sha256)
    if recipe.version != oasis.__version__:
        versions = f"version {recipe.version}, this is {oasis.__version__}"
        console.note(f"the result is of {versions}: it may differ")


def _print(run: oasis.Run, utilisation: tables.Utilisation, rows: int) -> None:
    console.print_facts(
        f"{run.policy} on {how_many(len(run.decisions), 'job')}", tables.run_facts(run, utilisation)
    )
    if not run.decisions:
        return
    table = [tables.decision_row(decision) for decision in run.decisions[:rows]]
    console.print_rows(tables.DECISIONS, table, title="\nDecisions in order of arrival")
    if len(run.decisions) > rows:
        console.note(
            f"({len(run.decisions) - rows} more; --all-decisions lists them, --json has them whole)"
        )


def _print_payments(run: oasis.Run) -> None:
    """Print what each admitted job is worth and pays, and the sums."""
    paid = run.payments
    rows = [
        (each.job_id, *map(console.number, (each.utility, each.cost, each.payoff)))
        for each in run.decisions
        if each.job_id in paid
    ]
    surplus = run.total_utility - run.revenue
    rows.append(("total", *map(console.number, (run.total_utility, run.revenue, surplus))))
    columns = console.headings("job", ">worth", ">pays", ">keeps")
    console.print_rows(columns, rows, title="\nPayments at the prices of arrival")


def quote(
    *,
    file: flags.InstanceFile,
    job_file: Annotated[
        Path,
        typer.Argument(
            metavar="JOB.json", help="One entry of an instance's jobs.", show_default=False
        ),
    ],
    policy: Annotated[Literal["oasis", "recourse"], "Who would decide."] = "oasis",
    oasis_options: flags.OasisFlags,
    assignments: flags.Set = None,
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
    (options,) = flags.choose_options([policy], assignments, oasis=oasis_options).values()
    instance = read_instance(file)
    job = read_job(job_file)
    change: Change | None = None
    with located_at(source=job_file):
        if policy == OASIS:
            decision, parameters = _quote(instance, job, options)
        else:
            answer = quote_recourse(instance, job, options)
            decision, change = answer.decision, answer.change
            parameters = POLICIES[policy].resolve(options)
    about = {
        "change": None if change is None else change.to_dict(),
        "policy": policy,
        "parameters": dict(parameters),
        "instance": instance_reference(instance, str(file)),
        "seed": instance.metadata.get("seed"),
        "version": oasis.__version__,
    }

    def show() -> None:
        facts = tables.quote_facts(decision, job.arrival) + (
            [] if change is None else effects(change)
        )
        console.print_facts(f"job {verdict(job.id, decision)}", facts)

    document = {"kind": "quote"} | decision.to_dict() | about
    delivery(document, show, lambda: pages().plot_quote(decision).figure)


def _quote(
    instance: oasis.Instance, job: oasis.Job, options: Mapping[str, Any]
) -> tuple[oasis.Decision, Mapping[str, Any]]:
    scheduler = POLICIES[OASIS].make(instance, options)
    assert isinstance(scheduler, OASiS)
    for earlier in instance.jobs_by_arrival():
        if earlier.arrival <= job.arrival:
            scheduler.submit(earlier)
    return scheduler.quote(job), scheduler.parameters


def verdict(job_id: str, decision: oasis.Decision) -> str:
    """Return a line that says whether a quote admits or rejects the job."""
    return f"{job_id} would be {'admitted' if decision.admitted else 'rejected'}"


def effects(change: Change) -> list[tuple[str, str]]:
    """Return the effects of a job on the other jobs, as names and values for `print_facts`."""
    delays = [f"{d.job_id} (slot {d.before} to {d.after})" for d in change.delayed]
    lists: dict[str, Sequence[str]] = {
        "moved": change.moved,
        "delayed": delays,
        "displaced": change.displaced,
        "given up": change.given_up,
        "promise broken": change.broken,
    }
    facts = [(name, ", ".join(jobs)) for name, jobs in lists.items() if jobs]
    facts = facts or [("others", "nothing changes for them")]
    return [*facts, ("utility of all", f"{change.utility:+.6g}")]
