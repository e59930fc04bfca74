"""``oasis ratio``: the competitive ratio of OASiS, or of another policy, on one instance."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.flags import with_options
from experiments.cli.interrupt import CtrlC
from experiments.cli.job_table import print_jobs
from experiments.cli.options import (
    AsJson,
    InstanceFile,
    Method,
    Picture,
    ResultFile,
    Seed,
    Style,
    TimeLimit,
    WorkLimit,
    limits_of,
    style_needs_plot,
)
from experiments.cli.policy_options import Set, choose_options, known_policy
from experiments.cli.progress import solver_progress
from experiments.cli.reading import read_instance
from experiments.cli.results import deliver
from experiments.evaluation.job_comparison import compare_jobs, to_dict
from experiments.evaluation.policies import OASIS, POLICIES, OasisOptions, entry_of
from experiments.evaluation.provenance import instance_reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    import oasis
    from experiments.evaluation.measure import CompetitiveRatio


@with_options(OasisOptions, "oasis_options", only_given=True)
def command(
    file: InstanceFile,
    policy: Annotated[str, typer.Option(help=f"One of: {', '.join(POLICIES)}.")] = OASIS,
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = None,
    seed: Seed = 0,
    method: Method = "auto",
    oasis_options: Any = None,
    assignments: Set = None,
    theory: Annotated[
        bool,
        typer.Option(
            "--theory", help="Also print what Theorem 4 promises, as printed and corrected."
        ),
    ] = False,
    per_job: Annotated[
        bool, typer.Option("--per-job", help="List who takes which job, and what it earns there.")
    ] = False,
    output: ResultFile = None,
    plot: Picture = None,
    style: Style = None,
    as_json: AsJson = False,
) -> int:
    """Divide the offline optimum by what OASiS, or another policy, earned online.

    A number when the optimum is proven; otherwise an interval that contains the ratio, and exit
    code 3. Ctrl-C stops at any moment with the interval so far. For OASiS, --theory adds what was
    known before the run: 2 alpha, the ratio that the paper's Theorem 4 prints, and the corrected
    bounds that hold on every instance but are mostly far away (docs: theory). --json always has
    them.

    Example: oasis ratio instance.json --time-limit 60
    """
    style_needs_plot(style, plot)
    from experiments.evaluation.measure import measure  # noqa: PLC0415 (needs an extra)
    from offline import solve  # noqa: PLC0415

    limits = limits_of(time_limit, work_limit)
    known_policy(policy, "--policy")
    (options,) = choose_options([policy], assignments, oasis=oasis_options).values()
    instance = read_instance(file)
    make = partial(entry_of(policy).make, instance, options)
    who = "OASiS" if policy == OASIS else policy
    solve_offline = partial(solve, method=method, seed=seed, **limits)
    with CtrlC() as ctrl_c:
        with solver_progress(ctrl_c.check) as on_progress:
            result = measure(instance, make, solve_offline, method, on_progress, ctrl_c.raising)
        rows = compare_jobs(instance, result)
        document = result.to_dict() | {"instance": instance_reference(instance, str(file))}
        document |= {"per_job": to_dict(rows)} if per_job else {}

        def show() -> None:
            title = f"{who} on {len(instance.jobs)} jobs"
            console.print_facts(title, _facts(who, instance, result))
            if theory:
                console.print_facts("\nTheorem 4", theory_facts(who, result))
            if per_job:
                print_jobs(rows, who, is_proven=result.proven)

        def draw() -> Figure:
            from experiments.plotting import ratio_page  # noqa: PLC0415 (needs an extra)

            return ratio_page({file.stem: result}, rows)

        deliver(
            document,
            show,
            as_json=as_json,
            output=output,
            plot=plot,
            draw=draw,
            style=style,
        )
    return DONE if result.proven else LIMIT


def _facts(who: str, instance: oasis.Instance, result: CompetitiveRatio) -> list[tuple[str, str]]:
    run, offline, latency = result.run, result.offline, result.run.latency
    facts = [
        ("competitive ratio", _ratio(who, result)),
        ("which means", _meaning(who, result)),
        (
            who,
            f"{console.number(result.online_utility)}, admitted {run.admitted} "
            f"of {len(instance.jobs)} jobs",
        ),
        ("offline optimum", _optimum(result)),
        ("certificate", _certificate(result)),
        ("best schedule by", offline.objective_by or "-"),
        ("upper bound by", offline.bound_by or "-"),
        ("solved by", f"{offline.method} in {console.seconds(offline.seconds)}"),
    ]
    if not result.is_complete:
        reason = f"stopped after {len(run.decisions)} of {len(instance.jobs)} decisions"
        return [*facts, (f"{who}'s run", reason)]
    times = f"median {console.seconds(latency['median'])}, max {console.seconds(latency['max'])}"
    return [*facts, ("decision time", times)]


def theory_facts(who: str, result: CompetitiveRatio) -> list[tuple[str, str]]:
    """What Theorem 4 says of the run; the names are those of the JSON document, in words."""
    certificate = result.certificate
    if certificate is None:
        why = "has no prices" if result.is_complete else "did not come to its end"
        return [("nothing", f"{who}'s run {why}")]
    return [
        ("2 alpha", f"{console.number(2 * certificate.alpha)}, the ratio bound as printed"),
        (
            "corrected ratio bound",
            f"{console.number(certificate.ratio_bound)}, corrected bound / utility of {who}",
        ),
        (
            "corrected bound",
            f"{console.number(certificate.upper_bound)}, which no schedule of these jobs exceeds",
        ),
        ("ln alpha_x", console.number(certificate.log_alpha_x)),
        ("payoff gap G", console.number(certificate.payoff_gap)),
        ("initial dual D_0", console.number(certificate.initial_dual)),
    ]


def _meaning(who: str, result: CompetitiveRatio) -> str:
    if result.upper is None:
        bound = console.number(result.offline_upper_bound)
        return f"no schedule earns more than {bound}, and {who} earned nothing"
    return f"no schedule earns more than {console.number(result.upper)} times what {who} earned"


def _certificate(result: CompetitiveRatio) -> str:
    if result.proven:
        return "a schedule that earns it and a bound that none exceeds agree"
    return "a schedule that earns the one, a bound that none exceeds for the other"


def _ratio(who: str, result: CompetitiveRatio) -> str:
    if result.online_utility == 0:
        return f"undefined: {who} earned nothing"
    if result.proven:
        return f"{console.number(result.ratio)} (proven)"
    interval = f"{console.number(result.lower)} and {console.number(result.upper)}"
    return f"between {interval} (not proven: {result.offline.status})"


def _optimum(result: CompetitiveRatio) -> str:
    if result.proven:
        return f"{console.number(result.offline_objective)} (proven)"
    interval = f"{console.number(result.offline_objective)} to "
    gap = console.percent(result.offline.gap)
    return f"{interval}{console.number(result.offline_upper_bound)} (gap {gap})"
