"""What results say, as pairs of a name and a text: the commands print them, reports show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.evaluation import texts
from oasis.certify.certificate import Certificate
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from experiments.evaluation.competitive_ratio import CompetitiveRatio
    from offline import OfflineResult

Facts = list[tuple[str, str]]
Utilisation = Mapping[str, Mapping[str, float | None]]


def run_facts(run: Run, utilisation: Utilisation) -> Facts:
    """What ``oasis run`` says of a run, and the shares of the servers that were in use."""
    latency = run.latency
    facts = [
        ("total utility", texts.number(run.total_utility)),
        ("admitted", f"{run.admitted} of {len(run.decisions)}"),
        (
            "decision time",
            f"median {texts.seconds(latency['median'])}, p99 {texts.seconds(latency['p99'])}, "
            f"max {texts.seconds(latency['max'])}",
        ),
    ]
    facts += [(name.replace("_", " "), f"{value}") for name, value in run.report.items() if value]
    if run.admitted_unfinished:
        left = f"{run.admitted_unfinished} of {run.admitted} admitted jobs, which earn nothing"
        facts.append(("did not finish", left))
    if run.outcome is not None and run.outcome.given_up_after_start:
        jobs, share = run.outcome.given_up_after_start, texts.percent(run.outcome.wasted_share)
        facts.append(("work wasted", f"{share}; {jobs} jobs ran and never finished"))
    for group, shares in utilisation.items():
        parts = [f"{name} {texts.percent(s)}" for name, s in shares.items() if s is not None]
        facts.append((f"{group} servers used", ", ".join(parts)))
    return facts


def solve_facts(result: OfflineResult) -> Facts:
    """What ``oasis solve`` says of an offline result."""
    return [
        ("status", str(result.status)),
        ("objective", texts.number(result.objective)),
        ("upper bound", texts.number(result.upper_bound)),
        ("gap", texts.percent(result.gap)),
        ("admitted", str(len(result.schedules))),
        ("best schedule by", result.objective_by or "-"),
        ("upper bound by", result.bound_by or "-"),
        ("method", result.method),
        ("time", texts.seconds(result.seconds)),
    ]


def ratio_facts(who: str, result: CompetitiveRatio, jobs: int) -> Facts:
    """What ``oasis ratio`` says of a ratio of the policy that is called `who`, on so many jobs."""
    run, offline, latency = result.run, result.offline, result.run.latency
    facts = [
        ("competitive ratio", _ratio(who, result)),
        ("which means", _meaning(who, result)),
        (
            who,
            f"{texts.number(result.online_utility)}, admitted {run.admitted} of {jobs} jobs",
        ),
        ("offline optimum", _optimum(result)),
        ("certificate", _certificate(result)),
        ("best schedule by", offline.objective_by or "-"),
        ("upper bound by", offline.bound_by or "-"),
        ("solved by", f"{offline.method} in {texts.seconds(offline.seconds)}"),
    ]
    if not result.is_complete:
        reason = f"stopped after {len(run.decisions)} of {jobs} decisions"
        return [*facts, (f"{who}'s run", reason)]
    times = f"median {texts.seconds(latency['median'])}, max {texts.seconds(latency['max'])}"
    return [*facts, ("decision time", times)]


def theory_facts(who: str, result: CompetitiveRatio) -> Facts:
    """What Theorem 4 says of the run; the names are those of the JSON document, in words."""
    certificate = result.certificate
    if certificate is None:
        why = "has no prices" if result.is_complete else "did not come to its end"
        return [("nothing", f"{who}'s run {why}")]
    return certificate_facts(who, certificate)


def certificate_facts(who: str, certificate: Certificate) -> Facts:
    """The constants of Theorem 4, as printed and corrected."""
    return [
        ("2 alpha", f"{texts.number(2 * certificate.alpha)}, the ratio bound as printed"),
        (
            "corrected ratio bound",
            f"{texts.number(certificate.ratio_bound)}, corrected bound / utility of {who}",
        ),
        (
            "corrected bound",
            f"{texts.number(certificate.upper_bound)}, which no schedule of these jobs exceeds",
        ),
        ("ln alpha_x", texts.number(certificate.log_alpha_x)),
        ("payoff gap G", texts.number(certificate.payoff_gap)),
        ("initial dual D_0", texts.number(certificate.initial_dual)),
    ]


def _meaning(who: str, result: CompetitiveRatio) -> str:
    if result.upper is None:
        bound = texts.number(result.offline_upper_bound)
        return f"no schedule earns more than {bound}, and {who} earned nothing"
    return f"no schedule earns more than {texts.number(result.upper)} times what {who} earned"


def _certificate(result: CompetitiveRatio) -> str:
    if result.proven:
        return "a schedule that earns it and a bound that none exceeds agree"
    return "a schedule that earns the one, a bound that none exceeds for the other"


def _ratio(who: str, result: CompetitiveRatio) -> str:
    if result.online_utility == 0:
        return f"undefined: {who} earned nothing"
    if result.proven:
        return f"{texts.number(result.ratio)} (proven)"
    interval = f"{texts.number(result.lower)} and {texts.number(result.upper)}"
    return f"between {interval} (not proven: {result.offline.status})"


def _optimum(result: CompetitiveRatio) -> str:
    if result.proven:
        return f"{texts.number(result.offline_objective)} (proven)"
    interval = f"{texts.number(result.offline_objective)} to "
    gap = texts.percent(result.offline.gap)
    return f"{interval}{texts.number(result.offline_upper_bound)} (gap {gap})"
