"""Claims of the OASiS paper about its figures, tested on the data of the figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.evaluation.policies import OASIS
from experiments.figures.figure import Row, groups, read_csv
from experiments.figures.oasis import (
    FIG3,
    FIG4,
    FIG5,
    FIG6,
    FIG8,
    FIG9,
    PUBLISHED_JOBS,
    paper_name,
)
from experiments.figures.settings import PAPER

LEVEL = 1 / 3  # numbers agree if they differ by no more than this part of the published one
AT_TARGET = 1.0  # slots between a median and the target that it is said to be at


@dataclass(frozen=True, slots=True)
class Judgement:
    """One statement of the paper about one policy of a figure."""

    figure: str
    says: str
    policy: str
    agrees: bool
    found: str


Found = Iterator[tuple[str, str, bool, str]]  # what the paper says, of whom, whether, and what here


def judge(figure: str, rows: Sequence[Row]) -> list[Judgement]:
    """Compare the data of a figure with what the paper says of it."""
    return [Judgement(figure, *found) for found in JUDGES[figure](rows)]


def verdicts_of(directory: Path) -> list[Judgement]:
    """Compare the data of all figures in a directory with what the paper says."""
    return [
        verdict for name in JUDGES for verdict in judge(name, read_csv(directory / f"{name}.csv"))
    ]


def _fig3(rows: Sequence[Row]) -> Found:
    """Judge Fig. 3, total utility by number of jobs: first policy, trend, and levels."""
    counts = list(dict.fromkeys(row["jobs"] for row in rows))
    for form in _forms(rows):
        own = [_row(rows, policy=form, jobs=count) for count in counts]
        ahead = [row["jobs"] for row in own if _leads(rows, row)]
        seeds = f"{sum(row['first'] for row in own)} of {sum(row['seeds'] for row in own)}"
        text = f"first at {_list(ahead) or 'no number of'} jobs, on {seeds} instances"
        yield "OASiS earns most", form, ahead == counts, text
        earned = [row["utility"] for row in own]
        rises = earned == sorted(earned)
        yield "OASiS earns more the more jobs there are", form, rises, _list(earned)
    for policy in dict.fromkeys(row["policy"] for row in rows):
        published = FIG3.get(paper_name(policy), {})
        own = [_row(rows, policy=policy, jobs=count) for count in counts]
        if published:
            printed = [published[count] for count in counts]
            yield _level(policy, printed, [row["utility"] for row in own])


def _fig4(rows: Sequence[Row]) -> Found:
    """Completion minus target of both kinds of jobs: reach, spread and medians."""
    measures: Mapping[str, Callable[[Row], float]] = {
        "90 % of OASiS's completions within the fewest slots of the target": (
            lambda row: max(abs(row["p5"]), abs(row["p95"]))
        ),
        "OASiS's completions spread least (5th to 95th percentile)": (
            lambda row: row["p95"] - row["p5"]
        ),
        "OASiS's median nearest the target": lambda row: abs(row["median"]),
    }
    for says, measure in measures.items():
        for form in _forms(rows):
            agrees, parts = True, []
            for (kind,), part in groups(rows, "kind").items():
                rivals = [row for row in part if _is_rival(row["policy"]) and row["finished"]]
                own = measure(_row(part, policy=form))
                best = min(rivals, key=measure)
                agrees &= own <= measure(best)
                values = f"{abs(own):.3g}, {best['policy']} {abs(measure(best)):.3g}"
                parts.append(f"{kind} {values}")
            yield says, form, agrees, "; ".join(parts)
    for policy, (low, high) in FIG4.items():
        medians = [row["median"] for row in rows if row["policy"] == policy]
        agrees = all(low <= value <= high for value in medians)
        says = f"median {low:g} to {high:g} slots late"
        yield says, policy, agrees, _list(medians, " and ")


def _fig5(rows: Sequence[Row]) -> Found:
    """Competitive ratio: geometric means by number of servers, and their trend."""
    low, high = FIG5
    for form in _forms(rows):
        own = [row for row in rows if row["policy"] == form and row["ratios"]]
        means = [
            _geometric_mean(part) for part in groups(own, "worker_servers", "ps_servers").values()
        ]
        text = (
            f"{_list(means, digits=2)}, largest of an instance {max(r['largest'] for r in own):.3g}"
        )
        says = f"ratios from {low:g} to {high:g} on average"
        yield says, form, all(low <= m <= high for m in means), text
        falls = means == sorted(means, reverse=True)
        text = "they fall" if falls else "they do not only fall"
        trend = falls or means == sorted(means)
        yield "no trend with the number of servers", form, not trend, text


def _fig6(rows: Sequence[Row]) -> Found:
    """Misjudged U/L at the largest number of jobs."""
    printed = 1 - FIG6[10.0] / FIG6[1.0]
    for form in _forms(rows):
        own = {
            row["scale"]: row
            for row in rows
            if (row["policy"], row["jobs"]) == (form, PUBLISHED_JOBS)
        }
        relative = {scale: row["relative"] for scale, row in own.items()}
        too_low = [share for scale, share in relative.items() if scale < 1]
        too_high = [share for scale, share in relative.items() if scale > 1]
        text = f"too low {_list(too_low, digits=2)}; too high {_list(too_high, digits=2)}"
        yield "U/L too low is better than too high", form, min(too_low) > max(too_high), text
        best = max(relative, key=relative.__getitem__)
        text = f"at {best:g} times its true value"
        yield "most utility with half of U/L", form, best == 0.5, text
        lost = 1 - relative[10.0]
        says = f"ten times U/L loses {printed:.0%}".replace("%", " %")
        text = f"{lost:.1%}".replace("%", " %")
        yield says, form, abs(lost - printed) <= LEVEL * printed, text


def _fig8(rows: Sequence[Row]) -> Found:
    """Judge Fig. 8, total utility on the testbed: first policy, order, and levels."""
    printed = sorted(FIG8, key=FIG8.__getitem__, reverse=True)
    for form in _forms(rows):
        shown = [row for row in rows if row["policy"] == form or row["policy"] in PAPER[1:]]
        order = sorted(shown, key=lambda row: -row["utility"])
        names = [paper_name(row["policy"]) for row in order]
        text = f"order {', '.join(names)}"
        yield "OASiS earns most of the paper's policies", form, names[0] == OASIS, text
        among = [name for name in names if name in (OASIS, "dorm", "fifo")]
        text = f"order {', '.join(among)}"
        yield "OASiS before Dorm before FIFO", form, among == printed[:3], text
    for row in rows:
        if paper_name(row["policy"]) in FIG8:
            level = [FIG8[paper_name(row["policy"])]]
            yield _level(row["policy"], level, [row["utility"]])


def _fig9(rows: Sequence[Row]) -> Found:
    """Completion minus target on the testbed: medians."""
    for row in rows:
        policy, median = row["policy"], row["median"]
        if paper_name(policy) in FIG9:
            published = FIG9[paper_name(policy)]
            says = f"median {published:g} slots late" if published else "median at the target"
            agrees = abs(median - published) <= AT_TARGET
            text = f"{median:.1f}, {row['finished']} of {row['jobs']} finish"
            yield says, policy, agrees, text


JUDGES: Mapping[str, Callable[[Sequence[Row]], Found]] = {
    "fig3": _fig3,
    "fig4": _fig4,
    "fig5": _fig5,
    "fig6": _fig6,
    "fig8": _fig8,
    "fig9": _fig9,
}


def _level(
    policy: str, printed: Sequence[float], here: Sequence[float]
) -> tuple[str, str, bool, str]:
    agrees = all(abs(a - b) <= LEVEL * b for a, b in zip(here, printed, strict=True))
    return f"total utility {_list(printed)}", policy, agrees, _list(here)


def _row(rows: Iterable[Row], **where: object) -> Row:
    (found,) = (row for row in rows if all(row[key] == value for key, value in where.items()))
    return found


def _forms(rows: Iterable[Row]) -> list[str]:
    return [name for name in dict.fromkeys(row["policy"] for row in rows) if not _is_rival(name)]


def _is_rival(policy: str) -> bool:
    return paper_name(policy) != OASIS


def _leads(rows: Iterable[Row], own: Row) -> bool:
    """Return whether no rival earns more on average on the same instances."""
    return all(
        row["utility"] <= own["utility"]
        for row in rows
        if row["jobs"] == own["jobs"] and _is_rival(row["policy"])
    )


def _geometric_mean(rows: Sequence[Row]) -> float:
    """Geometric mean of all ratios, from rows that have one each."""
    logarithms = sum(row["ratios"] * math.log(row["ratio"]) for row in rows)
    return math.exp(logarithms / sum(row["ratios"] for row in rows))


def _list(values: Iterable[float], between: str = ", ", digits: int = 0) -> str:
    return between.join(f"{value:.{digits}f}" for value in values)
