"""What the page of the OASiS paper's figures says in numbers (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from experiments.evaluation.policies import PAPER_FLOOR
from experiments.figures.figure import Row
from experiments.figures.oasis import FIG3, FIG4, FIG5, FIG6, FIG8, FIG9
from oasis.workloads.presets import PRESETS, PRIORITY
from tests.packaging.figure_rows import (
    COMMAND,
    DEFINED,
    NAME,
    PERCENT,
    data,
    gives,
    holds,
    near,
    percent,
    row,
    rows,
    says,
    word,
)
from tests.packaging.page_numbers import Claim

PAPER = "docs/figures.md"
PAGES: tuple[str, ...] = (PAPER,)
TESTBED = PRESETS["testbed"]

# --- Fig. 3 -------------------------------------------------------------------------------------

JOBS = (100, 200, 300, 400)


def utility(policy: str, jobs: int, name: str = "fig3") -> float:
    return float(row(name, policy=policy, jobs=jobs)["utility"])


def first(jobs: int, name: str = "fig3") -> str:
    """Who earns most on average."""
    return str(max(rows(name, jobs=jobs), key=lambda each: each["utility"])["policy"])


def always_first(policy: str, jobs: Iterable[int], name: str) -> bool:
    """Whether it earns most on every seed."""
    found = [row(name, policy=policy, jobs=count) for count in jobs]
    return all(each["first"] == each["seeds"] for each in found)


def overlaps(one: Row, other: Row) -> bool:
    """Whether most of each interval lies in the other."""
    low = max(one["utility_low"], other["utility_low"])
    high = min(one["utility_high"], other["utility_high"])
    return all(high - low > 0.9 * (r["utility_high"] - r["utility_low"]) for r in (one, other))


def best_otherwise(jobs: int) -> float:
    """What the best of the first table earns."""
    return max(each["utility"] for each in rows("fig3", jobs=jobs))


FIG3_CLAIMS = [
    holds(
        PAPER,
        "| OASiS first at 100 to 400 jobs |",
        lambda: all(max(FIG3, key=lambda name: FIG3[name][n]) == "oasis" for n in JOBS),
    ),
    holds(
        PAPER,
        "| first at 100 and 200 jobs; **RRH is first at 300 and 400**",
        lambda: [first(jobs) for jobs in JOBS] == ["oasis", "oasis", "rrh", "rrh"],
    ),
    holds(
        PAPER,
        "First throughout with twice the machines (Dorm run at 100 and 200 jobs only)",
        lambda: (
            all(first(jobs, "servers-100/fig3") == "oasis" for jobs in JOBS)
            and all(first(jobs, "servers-100-dorm/fig3") == "oasis" for jobs in (100, 200))
            and {each["jobs"] for each in data("servers-100-dorm/fig3")} == {100, 200}
        ),
    ),
    holds(
        PAPER,
        "OASiS is first at 100 and 200 jobs, DRF is close behind at 100 and falls as jobs become "
        "more, FIFO is far behind",
        lambda: (
            [first(jobs) for jobs in JOBS[:2]] == ["oasis", "oasis"]
            and 0.8 < utility("drf", 100) / utility("oasis", 100) < 1
            and all(utility("drf", n) > utility("drf", n + 100) for n in JOBS[:3])
            and all(utility("fifo", n) < utility("oasis", n) / 10 for n in JOBS)
        ),
    ),
    holds(
        PAPER,
        "from 300 jobs RRH, which the paper has at a fourth of OASiS, earns more than OASiS on "
        "every seed",
        lambda: (
            always_first("rrh", (300, 400), "fig3")
            and all(near(FIG3["rrh"][n] / FIG3["oasis"][n], 0.25, 0.03) for n in (300, 400))
        ),
    ),
    holds(
        PAPER,
        "OASiS earns hardly more at 400 jobs than at 200 (the intervals all but coincide)",
        lambda: (
            1 < utility("oasis", 400) / utility("oasis", 200) < 1.05
            and overlaps(*(row("fig3", policy="oasis", jobs=n) for n in (200, 400)))
        ),
    ),
    holds(
        PAPER,
        "SRTF, which the paper does not compare, is a sixth behind OASiS there",
        lambda: all(
            near(1 - utility("srtf", n) / utility("oasis", n), 1 / 6, 0.03) for n in (300, 400)
        ),
    ),
    holds(
        PAPER,
        "Dorm is close to OASiS at 100 jobs, as printed, but then falls like DRF, which the "
        "paper's does not",
        lambda: (
            0.9 < utility("dorm", 100) / utility("oasis", 100) < 1
            and 0.9 < FIG3["dorm"][100] / FIG3["oasis"][100] < 1
            and all(utility("dorm", n) > utility("dorm", n + 100) for n in JOBS[:3])
            and FIG3["dorm"][400] > FIG3["dorm"][100]
        ),
    ),
    holds(
        PAPER,
        "With 100 + 100 servers OASiS earns within a quarter of what the paper prints for 50 + 50, "
        "and is first of these policies at every number of jobs",
        lambda: all(
            near(utility("oasis", n, "servers-100/fig3") / FIG3["oasis"][n], 1, 0.25)
            and first(n, "servers-100/fig3") == "oasis"
            for n in JOBS
        ),
    ),
    holds(
        PAPER,
        "was run apart, at 100 and 200 jobs. It is behind OASiS there, well within the intervals",
        lambda: all(
            row("servers-100-dorm/fig3", policy="oasis", jobs=n)["utility_low"]
            < utility("dorm", n, "servers-100-dorm/fig3")
            < utility("oasis", n, "servers-100-dorm/fig3")
            for n in (100, 200)
        ),
    ),
    holds(
        PAPER,
        r"($\ln U/L$ is about 33 here",
        lambda: all(near(each["alpha"], 33, 1) for each in rows("fig6", scale=1.0)),
    ),
    holds(
        PAPER,
        "OASiS is then ahead of RRH and SRTF on every seed at every number of jobs, on the same "
        "50 + 50 servers, and its means above all others in the first table",
        lambda: (
            always_first("oasis", JOBS, "floor/fig3")
            and all(utility("oasis", n, "floor/fig3") > best_otherwise(n) for n in JOBS)
        ),
    ),
    holds(
        PAPER,
        "is first on every seed at every number of jobs, with the paper's OASiS beside it",
        lambda: always_first("recourse", JOBS, "recourse/fig3"),
    ),
    says(PAPER, "The floor of the figure itself is @", f"{PAPER_FLOOR:g}"),
]

# --- Figs. 4 and 9 ------------------------------------------------------------------------------

SENSITIVE, CRITICAL, ALL = "time-sensitive", "time-critical", "all jobs"


def late(policy: str, kind: str) -> Row:
    return row("fig4", policy=policy, kind=kind)


def spread(each: Row) -> float:
    return float(each["p95"] - each["p5"])


def has_smallest_spread(kind: str) -> bool:
    """OASiS does."""
    return min(rows("fig4", kind=kind), key=spread)["policy"] == "oasis"


def finished(policy: str, kind: str) -> int:
    return int(late(policy, kind)["finished"])


FIG4_CLAIMS = [
    holds(
        PAPER,
        "smallest spread from the 5th to the 95th percentile; but RRH and SRTF have the **medians "
        "nearer 0** for time-sensitive jobs, over little more than half as many",
        lambda: (
            has_smallest_spread(SENSITIVE)
            and all(
                abs(late(name, SENSITIVE)["median"]) < abs(late("oasis", SENSITIVE)["median"])
                and 0.5 < finished(name, SENSITIVE) / finished("oasis", SENSITIVE) < 0.6
                for name in ("rrh", "srtf")
            )
        ),
    ),
    gives(
        PAPER,
        "those of @ jobs of each kind (@ seeds)",
        lambda: late("oasis", SENSITIVE)["jobs"],
        lambda: word(late("oasis", SENSITIVE)["seeds"]),
    ),
    holds(
        PAPER,
        "time-critical jobs of OASiS end within a few slots of their target, mostly just before it",
        lambda: -4 < late("oasis", CRITICAL)["q1"] < late("oasis", CRITICAL)["q3"] < 0,
    ),
    holds(
        PAPER,
        "From the 5th to the 95th percentile its spread is the smallest for both kinds of jobs; "
        "FIFO is late by tens of slots",
        lambda: (
            has_smallest_spread(SENSITIVE)
            and has_smallest_spread(CRITICAL)
            and all(late("fifo", kind)["median"] > 20 for kind in (SENSITIVE, CRITICAL))
        ),
    ),
    holds(
        PAPER,
        "time-sensitive jobs of OASiS are late by several slots in the median, while those of RRH "
        "and SRTF end at their target",
        lambda: (
            late("oasis", SENSITIVE)["median"] > 4
            and all(abs(late(name, SENSITIVE)["median"]) < 0.5 for name in ("rrh", "srtf"))
        ),
    ),
    holds(
        PAPER,
        "OASiS finishes nearly twice as many of them",
        lambda: all(
            1.7 < finished("oasis", SENSITIVE) / finished(name, SENSITIVE) < 2
            for name in ("rrh", "srtf")
        ),
    ),
    holds(
        PAPER,
        "Of the time-critical jobs it finishes fewer than RRH, SRTF, DRF and Dorm do, and SRTF's "
        "median is nearer the target there too, at a wider spread",
        lambda: (
            all(
                finished("oasis", CRITICAL) < finished(name, CRITICAL)
                for name in ("rrh", "srtf", "drf", "dorm")
            )
            and abs(late("srtf", CRITICAL)["median"]) < abs(late("oasis", CRITICAL)["median"])
            and spread(late("srtf", CRITICAL)) > spread(late("oasis", CRITICAL))
        ),
    ),
    Claim(
        PAPER,
        "DRF's and Dorm's medians are @ to @ slots, not the printed @ to @: they finish a fourth "
        "of the jobs within the @ slots",
        lambda: ("10", "20", *map(str, FIG4["drf"]), "100"),
        lambda: all(
            10 < late(name, kind)["median"] < 20
            and near(finished(name, kind) / late(name, kind)["jobs"], 0.25, 0.03)
            for name in ("drf", "dorm")
            for kind in (SENSITIVE, CRITICAL)
        ),
    ),
    holds(
        PAPER,
        "| OASiS's median at the target | the same, within two slots; the rivals finish too few",
        lambda: abs(row("fig9", policy="oasis")["median"]) < 2 and FIG9["oasis"] == 0,
    ),
    holds(
        PAPER,
        "the median of OASiS is within two slots of the target",
        lambda: abs(row("fig9", policy="oasis")["median"]) < 2,
    ),
    Claim(
        PAPER,
        "the rivals' medians, printed at @ to @ slots, are within half a slot of @ or before it",
        lambda: (min(RIVALS9), max(RIVALS9), 0),
        lambda: all(each["median"] < 0.5 for each in data("fig9") if each["policy"] != "oasis"),
    ),
    says(PAPER, "so few jobs within the @ slots", word(TESTBED.horizon)),
]
RIVALS9 = [value for name, value in FIG9.items() if name != "oasis"]

# --- Figs. 5, 6, 8 ------------------------------------------------------------------------------


def earns(policy: str) -> float:
    return float(row("fig8", policy=policy)["utility"])


def outside(*names: str) -> list[Row]:
    """Rows of Fig. 6 whose interval leaves 1 out."""
    found = [each for name in names for each in data(name) if each["scale"] != 1.0]
    return [r for r in found if not r["relative_low"] <= 1 <= r["relative_high"]]


def alone_on_testbed() -> tuple[int, int]:
    return TESTBED.duration


def order8() -> list[str]:
    """Policies by what they earn, the best first."""
    found = sorted(data("fig8"), key=lambda each: -each["utility"])
    return [str(each["policy"]) for each in found]


FIG5_TO_8_CLAIMS = [
    says(PAPER, "| ratios @ to @, no trend |", *map(str, FIG5)),
    holds(
        PAPER,
        "every ratio proven; geometric means from 1 to 2, medians 1, **single instances far "
        "above**",
        lambda: (
            all(
                each["proven"] == each["seeds"] and 1 <= each["ratio"] <= 2 and each["median"] == 1
                for each in data("fig5")
            )
            and max(each["largest"] for each in data("fig5")) > 10 * FIG5[1]
        ),
    ),
    holds(
        PAPER,
        "where anything can be earned, OASiS earned something on every seed",
        lambda: all(r["ratios"] + r["nothing_to_earn"] == r["seeds"] for r in data("fig5")),
    ),
    holds(
        PAPER,
        "with few machines most instances of `calibrated` have nothing to earn at all",
        lambda: all(
            r["nothing_to_earn"] > r["seeds"] / 2 for r in data("fig5") if r["worker_servers"] < 5
        ),
    ),
    holds(
        PAPER,
        "half of them or more exactly 1; there is no trend with servers or priorities that the "
        "intervals would support",
        lambda: all(r["median"] == 1 and r["ratio_low"] == 1 for r in data("fig5")),
    ),
    says(PAPER, "single instances lie far above @:", str(FIG5[1])),
    holds(
        PAPER,
        "an effect of a few per cent, mostly within the intervals",
        lambda: (
            all(near(each["relative"], 1, 0.05) for each in data("fig6"))
            and len(outside("fig6")) < len(data("fig6")) / 4
        ),
    ),
    holds(
        PAPER,
        "in the one place where the interval excludes 1, too low is better.",
        lambda: [each["scale"] < 1 < each["relative"] for each in outside("fig6")] == [True],
    ),
    Claim(
        PAPER,
        "the printed fall by @ % at ten times U/L, and the peak at half of it",
        lambda: [percent(1 - FIG6[10.0] / FIG6[1.0])],
        lambda: max(FIG6, key=FIG6.__getitem__) == 0.5,
    ),
    holds(
        PAPER,
        "which is about 33 here (`alpha` in the table)",
        lambda: all(near(each["alpha"], 33, 1) for each in rows("fig6", scale=1.0)),
    ),
    says(PAPER, "ten times U/L adds @ to it", f"{math.log(10):.1f}"),
    Claim(
        PAPER,
        "only where jobs are many, as the paper says: at @ and @ jobs too high costs up to @ %",
        lambda: [
            *(300, 400),
            percent(1 - min(r["relative"] for r in data("floor/fig6") if r["jobs"] >= 300)),
        ],
        lambda: (
            all(
                r["relative"] < 1 for r in data("floor/fig6") if r["jobs"] >= 300 and r["scale"] > 1
            )
            and all(near(r["relative"], 1, 0.02) for r in data("floor/fig6") if r["jobs"] == 100)
        ),
    ),
    holds(
        PAPER,
        "of the paper's policies **RRH first**, OASiS second; recourse, which the paper does not "
        "have, before both",
        lambda: order8()[:3] == ["recourse", "rrh", "oasis"],
    ),
    holds(
        PAPER,
        "| OASiS first on the testbed, RRH last |",
        lambda: (
            max(FIG8, key=FIG8.__getitem__) == "oasis" and min(FIG8, key=FIG8.__getitem__) == "rrh"
        ),
    ),
    holds(
        PAPER,
        "OASiS earns more than FIFO, DRF and Dorm, by a factor of two and more",
        lambda: all(earns("oasis") > 2 * earns(name) for name in ("fifo", "drf", "dorm")),
    ),
    holds(
        PAPER,
        "all but RRH earn half or less of what is printed",
        lambda: all(earns(n) <= FIG8[n] / 2 for n in FIG8 if n != "rrh") and order8()[1] == "rrh",
    ),
    gives(
        PAPER,
        "@ jobs of which each takes @ to @ of the @ slots even alone",
        lambda: word(row("fig8", policy="oasis")["jobs"]),
        lambda: alone_on_testbed()[0],
        lambda: alone_on_testbed()[1],
        lambda: TESTBED.horizon,
    ),
    holds(
        PAPER,
        "no policy of the paper finishes four of them on average",
        lambda: max(row("fig8", policy=name)["finished"] for name in FIG8) < 4,
    ),
    holds(
        PAPER,
        "is what five or six jobs of mean priority are worth in full",
        lambda: 5 < FIG8["oasis"] / (sum(PRIORITY) / 2) < 6,
    ),
    gives(PAPER, "the published @ is what five or six", lambda: FIG8["oasis"]),
    gives(
        PAPER,
        "It earns @ to @ times what is printed of the paper's in Fig. 3, and @ times here: "
        "this rival is ours",
        lambda: f"{min(utility('rrh', jobs) / FIG3['rrh'][jobs] for jobs in JOBS):.1f}",
        lambda: f"{max(utility('rrh', jobs) / FIG3['rrh'][jobs] for jobs in JOBS):.1f}",
        lambda: f"{earns('rrh') / FIG8['rrh']:.1f}",
    ),
    gives(
        PAPER,
        "earns most on @ of the @ seeds and @ times what RRH earns",
        lambda: row("fig8", policy="recourse")["first"],
        lambda: row("fig8", policy="recourse")["seeds"],
        lambda: f"{earns('recourse') / earns('rrh'):.1f}",
    ),
]


CLAIMS: list[Claim] = [
    *FIG3_CLAIMS,
    *FIG4_CLAIMS,
    *FIG5_TO_8_CLAIMS,
    says(PAPER, "@ % confidence intervals of the mean", PERCENT),
]

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    PAPER: {
        "Figs. 3, 4, 5, 6, 8 and 9": NAME,
        "HPDC 2004": NAME,
        **{f"| {figure} | ": NAME for figure in (3, 4, 5, 6, 8, 9)},
        "Three things, each shown": "they follow",
        "worth less than 30 % of the job's best": COMMAND,
        "![The same with a utility floor of 0.3]": COMMAND,
        "*Over 100 %* is the mean": DEFINED,
        "With the utility floor at 0.3": COMMAND,
    },
}
