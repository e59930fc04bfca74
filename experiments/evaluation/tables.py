"""Results as rows of text, for commands and reports.

Each column is a heading, and whether it holds numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.evaluation.comparison import MARKED, OVER_SEEDS, SHARES, Comparison
from oasis.certify.certificate import Certificate, WeakDuality
from oasis.model.decision import Decision
from oasis.model.groups import TaskGroup
from oasis.model.schedule import Schedule
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from experiments.evaluation.competitive_ratio import CompetitiveRatio
    from offline.result import OfflineResult


ROUNDING = 1e-8  # bounds are rounded outward by less than that
MANY = 1e7  # from which numbers are written with powers of ten


def number(value: float | None) -> str:
    """Format a number with six significant digits; a dash for None and infinity."""
    return "-" if value is None or math.isinf(value) else f"{value:.6g}"


def interval(figure: Mapping[str, Any]) -> str:
    """Format a mean with its interval: ± half of it, or both ends if it is not symmetrical."""
    mean, low, high = figure["mean"], figure["low"], figure["high"]
    if mean is None:
        return "-"
    if low is None:
        return number(mean)
    if low == high:
        return f"{number(mean)} ± 0"
    if not math.isclose(high - mean, mean - low, rel_tol=1e-6):
        return f"{brief(mean)} ({brief(low, 3)} to {brief(high, 3)})"
    half = (high - low) / 2
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:.{places}f} ± {half:.{places}f}"


def brief(value: float, digits: int = 4) -> str:
    """Format a number with `digits` significant digits; below ten million with all whole digits."""
    is_long = 10**digits <= abs(value) < MANY
    return f"{value:.0f}" if is_long else f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """Format a fraction as a percentage; a dash for None and absurdly large ones."""
    if value is None or value > MANY:  # a gap to an objective of 0 is none, too
        return "-"
    return "0%" if abs(value) < ROUNDING else f"{brief(100 * value, 3)}%"


def seconds(value: float) -> str:
    """Format a duration in milliseconds or seconds."""
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
SPACE = "\N{NO-BREAK SPACE}"  # a time is not wrapped


def duration_text(seconds: float | None) -> str:
    """Format a duration in its two largest units, such as ``2 h 5 min``; a dash for None."""
    if seconds is None:
        return "-"
    if 0 < abs(seconds) < 9.95:
        return f"{seconds:.2g}{SPACE}s"
    sign = "-" if seconds < 0 else ""
    magnitude = abs(seconds)
    for (length, unit), (small, smaller) in pairwise(UNITS):
        whole = round(magnitude / small)  # rounded once, in the smaller unit
        if whole * small >= length:
            many, few = divmod(whole, round(length / small))
            tail = f"{SPACE}{few}{SPACE}{smaller}" if few else ""
            return f"{sign}{many}{SPACE}{unit}{tail}"
    return f"{sign}{magnitude:.0f}{SPACE}s"


Facts = list[tuple[str, str]]
Utilisation = Mapping[str, Mapping[str, float | None]]


def run_facts(run: Run, utilisation: Utilisation) -> Facts:
    """Lines (name, text) of ``oasis run`` on a run; `utilisation`: used shares by group."""
    facts = [
        ("total utility", number(run.total_utility)),
        ("admitted", f"{run.admitted} of {len(run.decisions)}"),
        ("decision time", ", ".join(f"{name} {seconds(run.latency[name])}" for name in LATENCY)),
    ]
    for name, value in run.report.items():
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            facts.append((name.replace("_", " "), text))
    facts += _unfinished(run)
    if run.outcome is not None and run.outcome.given_up_after_start:
        jobs, share = run.outcome.given_up_after_start, percent(run.outcome.wasted_share)
        facts.append(("work wasted", f"{share}; {jobs} jobs ran and never finished"))
    for group, shares in utilisation.items():
        parts = [f"{name} {percent(s)}" for name, s in shares.items() if s is not None]
        if parts:  # no machine hosts parameter servers where no job has any
            facts.append((f"{group} servers used", ", ".join(parts)))
    return facts


LATENCY = ("median", "p99", "max")


def solve_facts(result: OfflineResult) -> Facts:
    """Lines (name, text) of ``oasis solve`` on an offline result."""
    return [
        ("status", str(result.status)),
        ("objective", number(result.objective)),
        ("upper bound", number(result.upper_bound)),
        ("gap", percent(result.gap)),
        ("admitted", str(len(result.schedules))),
        ("best schedule by", result.objective_by or "-"),
        ("upper bound by", result.bound_by or "-"),
        ("method", result.method),
        ("time", seconds(result.seconds)),
    ]


def _unfinished(run: Run) -> Facts:
    """A line on how many admitted jobs did not finish; empty if all did."""
    text = f"{run.admitted_unfinished} of {run.admitted} admitted jobs, which earn nothing"
    if run.outcome is not None and all(job.start is None for job in run.outcome.jobs):
        text += ": no job ever ran"
    return [("did not finish", text)] if run.admitted_unfinished else []


def ratio_facts(who: str, result: CompetitiveRatio, jobs: int) -> Facts:
    """Lines of ``oasis ratio`` on the ratio of the policy named `who`, for `jobs` jobs."""
    run, offline, latency = result.run, result.offline, result.run.latency
    low, high = number(result.offline_objective), number(result.offline_upper_bound)
    optimum = (
        f"{low} (proven)" if result.proven else f"{low} to {high} (gap {percent(offline.gap)})"
    )
    meaning = f"{high}, and {who} earned nothing"
    if result.upper is not None:
        meaning = f"{number(result.upper)} times what {who} earned"
    facts = [
        ("competitive ratio", _ratio(who, result)),
        ("which means", f"no schedule earns more than {meaning}"),
        (who, f"{number(result.online_utility)}, admitted {run.admitted} of {jobs} jobs"),
        *(_unfinished(run) if result.is_complete else ()),
        ("offline optimum", optimum),
        ("proof", proof_of(offline.bound_by)),
        ("best schedule by", offline.objective_by or "-"),
        ("upper bound by", offline.bound_by or "-"),
        ("solved by", f"{offline.method} in {seconds(offline.seconds)}"),
    ]
    if result.is_complete:
        times = f"median {seconds(latency['median'])}, max {seconds(latency['max'])}"
        return [*facts, ("decision time", times)]
    return [*facts, (f"{who}'s run", f"stopped after {len(run.decisions)} of {jobs} decisions")]


def theory_facts(who: str, result: CompetitiveRatio) -> Facts:
    """Lines on Theorem 4 for the policy named `who`, or one on why the theorem does not apply."""
    if result.certificate is not None:
        return certificate_facts(who, result.certificate)
    why = "has no prices" if result.is_complete else "did not come to its end"
    return [("nothing", f"{who}'s run {why}")]


def certificate_facts(who: str, certificate: Certificate | WeakDuality) -> Facts:
    """Lines on the constants of Theorem 4, printed and corrected; or on weak duality's bound."""
    ratio = f"{number(certificate.ratio_bound)}, corrected bound / utility of {who}"
    bound = f"{number(certificate.upper_bound)}, which no schedule of these jobs exceeds"
    if isinstance(certificate, WeakDuality):
        nothing = "says nothing: these are not the paper's prices"
        return [("Theorem 4", nothing), ("weak duality", bound)]
    return [
        ("2 alpha", f"{number(2 * certificate.alpha)}, the ratio bound as printed"),
        ("corrected ratio bound", ratio),
        ("corrected bound", bound),
        ("ln alpha_x", number(certificate.log_alpha_x)),
        ("payoff gap G", number(certificate.payoff_gap)),
        ("initial dual D_0", number(certificate.initial_dual)),
    ]


TRIVIAL = "every job at its best"  # `offline.Phase.TRIVIAL`, whose room needs an extra
CHECKED = "the best schedule found was checked"


def proof_of(bound_by: str) -> str:
    """A sentence on who vouches for the best schedule and, by its method, for the upper bound."""
    source = "counts every job at its best" if bound_by == TRIVIAL else "comes from the solver"
    return f"{CHECKED}; the upper bound {source}"


def _ratio(who: str, result: CompetitiveRatio) -> str:
    if result.online_utility == 0:
        return f"undefined: {who} earned nothing"
    if result.proven:
        return f"{number(result.ratio)} (proven)"
    interval = f"{number(result.lower)} and {number(result.upper)}"
    return f"between {interval} (not proven: {result.offline.status})"


def quote_facts(decision: Decision, arrival: int | None = None) -> Facts:
    """Lines on a quoted job's schedule and cost, or why it is rejected and what would help."""
    schedule = decision.schedule
    if schedule is not None:
        slots, _, counts = schedule.workers.T
        peak = int(np.bincount(slots, weights=counts).max())
        came = "" if arrival is None else f"; arrives in slot {arrival}"
        return [
            ("runs", f"in {slots_of(schedule)}{came}"),
            ("workers", f"{schedule.worker_slots} worker-slots, at most {peak} at once"),
            ("utility", number(decision.utility)),
            ("cost", number(decision.cost)),
            ("payoff", number(decision.payoff)),
        ]
    facts = [("reason", decision.reason or "")]
    rejection = decision.rejection
    if rejection is None:
        return [*facts, ("to change it", "no utility would: there is no schedule at any price")]
    slot = rejection.smallest_utility_completion
    utility = f"more than {number(rejection.smallest_utility)} (completing by slot {slot})"
    facts.append(("needs to be worth", utility))
    if rejection.utility_factor is not None:
        factor = number(rejection.utility_factor)
        facts.append(("or its utility", f"multiplied by more than {factor}"))
    if (spot := rejection.bottleneck) is not None:
        facts += [
            ("pays most for", f"{spot.resource} of the {TaskGroup(spot.group).hosts}"),
            ("", f"{percent(spot.share)} of the cost"),
            ("in slots", ", ".join(map(str, spot.slots))),
            ("on servers", ", ".join(spot.servers)),
        ]
    return facts


def slots_of(schedule: Schedule) -> str:
    """Text of the slots with workers, ``slots 2 to 4, 7``: consecutive ones by first and last."""
    slots = np.unique(schedule.workers[:, 0])
    stretches = np.split(slots, np.flatnonzero(np.diff(slots) > 1) + 1)
    named = (f"{s[0]}" if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in stretches)
    return f"{'slot' if len(slots) == 1 else 'slots'} {', '.join(named)}"


Columns = tuple[tuple[str, bool], ...]
TableColumn = tuple[str, str, Callable[[Any], str]]
NUMBERS = ("finishes", "utility", "cost")
DECISIONS: Columns = (("job", False), *((name, True) for name in NUMBERS), ("", False))


def decision_row(decision: Decision) -> tuple[str, ...]:
    """Row of a job in the table of decisions: job, completion, utility, cost, outcome."""
    if not decision.admitted:
        return (decision.job_id, "-", "-", "-", f"rejected: {decision.reason}")
    if decision.completion is None:
        return (decision.job_id, "-", "0", "0", decision.reason or "")
    numbers = map(number, (decision.utility, decision.cost))
    return (decision.job_id, f"slot {decision.completion}", *numbers, "admitted")


EASY_PLACES = (
    "easy promises the first in line GPUs, which are one pool in a pooled replay; on an import of "
    "several machines it promises places on certain ones, so that its numbers differ there."
)
MARK = "*"  # of a figure that may look good because jobs did not finish


def comparison_table(comparison: Comparison) -> tuple[Columns, list[tuple[str, ...]]]:
    """Columns and rows of a comparison, for instances, elastic jobs or traces by its kind."""
    on_jobs = ELASTIC if "format" in comparison.about else COMPARED
    shown, unfinished = REPLAYED if comparison.kind == "replay" else on_jobs, comparison.unfinished
    if any(SHARES[0] in row for row in comparison.policies.values()):
        shown = *shown[:1], ("of optimum", "", _certified), *shown[1:]
    columns = ("policy", False), *((heading, heading != "busiest") for heading, _, _ in shown)
    rows = [
        (name, *(_cell(row, column, left_jobs=bool(unfinished[name])) for column in shown))
        for name, row in comparison.policies.items()
    ]
    return columns, rows


def _cell(row: Mapping[str, Any], column: TableColumn, *, left_jobs: bool) -> str:
    """Text of a policy in a column, marked if unfinished jobs (`left_jobs`) may flatter it."""
    _, figure, text = column
    cell = text(row[figure] if figure else row)
    return cell + MARK if left_jobs and figure in MARKED and cell != "-" else cell


def _certified(figures: Mapping[str, Any]) -> str:
    """Share of the optimum that a policy earned, or both ends of the interval that contains it."""
    low, high = (percent(figures[share]) for share in SHARES)
    return low if low == high else f"{low.removesuffix('%')}-{high}"


def optimum_facts(comparison: Comparison) -> Facts:
    """Lines on the optimum that a comparison is measured against; empty without one."""
    optimum = comparison.about.get("optimum")
    if optimum is None:
        return []
    proof = ("proof", proof_of(optimum["bound_by"]))
    lowest, highest = number(optimum["objective"]), number(optimum["upper_bound"])
    if optimum["proven"]:
        none = "" if optimum["objective"] else ": no job can earn anything in these slots"
        return [("optimum", f"{lowest} (proven){none}"), proof]
    why = optimum["status"].replace("_", " ")
    return [("optimum", f"between {lowest} and {highest} (not proven: {why})"), proof]


def unfinished_notes(comparison: Comparison) -> list[str]:
    """Notes for a table of policies that did not finish all jobs; empty if all did."""
    each = [f"{name} {brief(count)}" for name, count in comparison.unfinished.items() if count]
    of_all = f"of {comparison.about.get('jobs')} jobs: {', '.join(each)}"
    notes = [f"{MARK}: of the finished jobs only. Not finished, {of_all}"] if each else []
    if notes and any("mean_waiting" in row for row in comparison.policies.values()):
        wait = "waits until it is rejected, or to the end of the run"
        notes.append(f"Waiting{MARK}: a job that did not finish {wait}")
        notes.append(f"Use{MARK}: what such a job holds counts as used")
    return notes


def comparison_notes(comparison: Comparison) -> list[str]:
    """Notes below a comparison: on the optimum, on unfinished jobs, and on `easy` if shown."""
    optimum = [f"{name}: {value}" for name, value in optimum_facts(comparison)]
    in_places = comparison.kind == "replay" and comparison.about.get("placement") != "whole"
    easy = [EASY_PLACES] if in_places and "easy" in comparison.policies else []
    return [*optimum, *unfinished_notes(comparison), *easy]


def _utility(figures: Mapping[str, Any]) -> str:
    """Text of the total utility, with its interval if it is a mean over seeds."""
    figure = figures.get(OVER_SEEDS, {}).get("figures", {}).get("total_utility")
    return number(figures["total_utility"]) if figure is None else interval(figure)


def _busiest(utilisation: Mapping[str, Mapping[str, float | None]]) -> str:
    of = [(s, f"{group} {r}") for group, shares in utilisation.items() for r, s in shares.items()]
    share, busiest = max((one for one in of if one[0] is not None), default=(None, ""))
    return f"{_whole(share)} {busiest}".rstrip()


def _most_used(use: Mapping[str, float | None]) -> str:
    return percent(max((share for share in use.values() if share is not None), default=None))


def _or_dash(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "-" if value is None else text(value)


_whole = _or_dash("{:.0%}".format)  # a share as a whole percentage, to fit 80 columns
_median = _or_dash(lambda taken: seconds(taken["median"]))
_slots, _seconds = _or_dash(lambda time: brief(time, 3)), _or_dash("{:.0f}".format)


# Heading, figure and its text; without a figure, the text is of the whole row.
COMPARED: tuple[TableColumn, ...] = (
    ("utility", "", _utility),
    ("admitted", "admitted", brief),
    ("done", "finished", brief),
    ("waste", "wasted_share", _whole),
    ("mean", "mean_completion", _slots),
    ("p95", "p95_completion", _slots),
    ("busiest", "utilisation", _busiest),
    # What really happened on a cluster has no time of a decision.
    ("decision", "", lambda row: _median(row.get("decision_seconds"))),
)
ELASTIC: tuple[TableColumn, ...] = (
    ("utility", "", _utility),
    ("of bound", "of_bound", percent),
    ("done", "finished", str),
    ("mean", "mean_completion", _seconds),
    ("p95", "p95_completion", _seconds),
    ("waiting", "mean_waiting", _seconds),
    ("restarts", "restarts", str),
    ("use", "use", _most_used),
)
REPLAYED: tuple[TableColumn, ...] = (
    ("finished", "finished", str),
    ("mean", "mean_completion", duration_text),
    ("median", "median_completion", duration_text),
    ("p95", "p95_completion", duration_text),
    ("waiting", "mean_waiting", duration_text),
    ("GPU use", "gpu_utilisation", percent),
)
