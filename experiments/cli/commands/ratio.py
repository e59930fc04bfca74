"""``oasis ratio`` and ``solve``: the offline optimum, alone or beside what a policy earned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.interrupt import CtrlC
from experiments.cli.progress import solver_progress
from experiments.cli.results import Delivery, again, deliver, pages, read_instance
from experiments.evaluation.comparison import JobComparison, compare_jobs, totals
from experiments.evaluation.policies import OASIS, entry_of
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import ratio_facts, solve_facts, theory_facts
from oasis.model.summary import how_many
from oasis.solvers import Status
from oasis.traces.table import notes_of

COLUMNS = ("job", ">arrives", ">{who} finishes", ">utility", ">offline finishes", ">utility")


def print_jobs(
    rows: list[JobComparison], sums: Mapping[str, Any], who: str, *, is_proven: bool
) -> None:
    """Print the jobs that only one of the two solutions takes, and those that both take."""
    best = "the optimum" if is_proven else "the best schedule found"
    titles = {
        "offline": f"Jobs that {best} takes and {who} does not",
        "online": f"Jobs that {who} takes and {best} does not",
        "both": "Jobs that both take",
    }
    columns = console.headings(*(heading.format(who=who) for heading in COLUMNS))
    for name, title in titles.items():
        table = [_row(row) for row in rows if row.taken_by == name]
        console.print_text(f"\n{title}: {len(table) or 'none'}")
        if table:
            online, offline = (sums[name][f"{side}_utility"] for side in ("online", "offline"))
            total = ("total", "", "", console.number(online), "", console.number(offline))
            console.print_rows(columns, [*table, total])
    console.print_text(f"\nJobs that neither takes: {int(sums['neither']['jobs']) or 'none'}")
    if not is_proven:
        console.print_text("The offline schedule is not proven optimal: another may be better.")


def _row(row: JobComparison) -> tuple[str, ...]:
    cells = [
        (f"slot {side.completion}", console.number(side.utility)) if side else ("-", "-")
        for side in (row.online, row.offline)
    ]
    return (row.job_id, str(row.arrival), *cells[0], *cells[1])


def ratio(
    *,
    file: flags.InstanceFile,
    policy: flags.APolicy = OASIS,
    how: flags.Solving,
    oasis_options: flags.OasisFlags,
    assignments: flags.Set = None,
    theory: Annotated[
        bool, "Also print what Theorem 4 promises, as printed and corrected."
    ] = False,
    per_job: Annotated[
        bool, "List each job's completion and utility, online and in the best schedule."
    ] = False,
    delivery: Delivery,
) -> int:
    """Divide the offline optimum by what OASiS, or another policy, earned online.

    A number when the optimum is proven; otherwise an interval that contains the ratio, and exit
    code 3. Ctrl-C and SIGTERM stop at any moment with the interval so far. For OASiS, --theory adds
    what theory guarantees: 2 alpha, the ratio of the paper's Theorem 4, and the corrected bounds,
    which hold on every instance but are mostly very loose (docs: theory). --json always has them.

    Example: oasis ratio instance.json --time-limit 60
    """
    from experiments.evaluation.competitive_ratio import measure  # noqa: PLC0415 (needs an extra)
    from offline import METHODS  # noqa: PLC0415
    from offline import solve as solve_with  # noqa: PLC0415

    method, limits = how.method, how.given()
    own = [text for text in assignments or () if text.partition(".")[0].strip() in METHODS]
    policy_assignments = [text for text in assignments or () if text not in own]
    params = flags.method_params(method, own)
    (options,) = flags.choose_options([policy], policy_assignments, oasis=oasis_options).values()
    instance = read_instance(file)
    for sentence in notes_of(instance):  # such as models of GPUs that are not respected
        console.note(sentence)
    entry = entry_of(policy)
    make = partial(entry.make, instance, options)
    who = "OASiS" if policy == OASIS else policy
    solve_offline = partial(
        solve_with, method=method, seed=how.solver_seed, params=params, **limits
    )
    with CtrlC() as ctrl_c:
        with solver_progress(ctrl_c.check) as on_progress:
            result = measure(instance, make, solve_offline, method, on_progress, ctrl_c.raising)
        flags.note_unused(params, result.offline.method)
        # Still inside: Ctrl-C must not cut a result in half while it is written.
        rows = compare_jobs(instance, result)
        sums = totals(rows)
        document = result.to_dict() | {"instance": instance_reference(instance, str(file))}
        document |= {"policy": policy} | entry.recorded(options, result.run.parameters)
        if per_job:
            document["per_job"] = {"jobs": [row.to_dict() for row in rows], "totals": sums}

        def show() -> None:
            title = f"{who} on {how_many(len(instance.jobs), 'job')}"
            console.print_facts(title, ratio_facts(who, result, len(instance.jobs)))
            if theory:
                console.print_facts("\nTheorem 4", theory_facts(who, result))
            if per_job:
                print_jobs(rows, sums, who, is_proven=result.proven)

        delivery(document, show, lambda: pages().ratio_page({file.stem: result}, rows))
    return DONE if result.proven else LIMIT


def solve(
    *,
    context: typer.Context,
    file: flags.InstanceFile,
    how: flags.Solving,
    assignments: flags.SetMethod = None,
    output: flags.ResultFile = None,
    as_json: flags.AsJson = False,
) -> int:
    """Solve the instance knowing all its jobs: the optimum, or an interval that contains it.

    Starts from OASiS's own schedule and never returns a worse one. The first limit reached ends the
    solve and is its status; the result is then an interval, and the exit code is 3. Ctrl-C and
    SIGTERM stop at any moment and print what is proven so far.

    Example: oasis solve instance.json --time-limit 300 --gap 0.01
    """
    from offline import solve as solve_offline  # noqa: PLC0415 (needs an extra)

    limits, params = how.given(), flags.method_params(how.method, assignments)
    instance = read_instance(file)
    with CtrlC() as ctrl_c:
        with solver_progress(ctrl_c.check) as on_progress, ctrl_c.raising():
            result = solve_offline(
                instance,
                how.method,
                on_progress=on_progress,
                seed=how.solver_seed,
                params=params,
                **limits,
            )
        flags.note_unused(params, result.method)
        # Outside of `raising`: Ctrl-C must not cut a
        # result in half while it is written.
        document = result.to_dict() | {"instance": instance_reference(instance, str(file))}
        document |= {"command": again(context)}
        title = f"offline optimum of {how_many(len(instance.jobs), 'job')}"
        shown = partial(console.print_facts, title, solve_facts(result))
        deliver(document, shown, as_json=as_json, output=output)
    return DONE if result.status is Status.OPTIMAL else LIMIT
