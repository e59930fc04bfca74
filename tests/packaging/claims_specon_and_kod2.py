"""Numbers of the pages of the SpeCon and the KOD2 paper (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable

from baselines import SpeCon
from baselines.specon import WEIGHTS
from experiments.figures import kod2
from experiments.figures.figure import Row
from experiments.figures.kod2 import FIG7 as KOD7
from experiments.figures.kod2 import FIG8 as KOD8
from experiments.figures.specon import draws, schedules
from experiments.figures.specon import models as specon
from experiments.figures.specon.models import (
    EARLY_PROGRESS,
    SAVING_AT_MOST,
    SAVING_SPREAD,
    SCHEDULES,
    TABLE3,
)
from tests.packaging.figure_rows import (
    DEFINED,
    NAME,
    PERCENT,
    QUOTED,
    TRIED,
    YEAR,
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

SPECON, KOD2 = "docs/figures-specon.md", "docs/figures-kod2.md"
LITERATURE = "docs/literature.md"
PAGES: tuple[str, ...] = (SPECON, KOD2, LITERATURE)

# --- KOD2 ---------------------------------------------------------------------------------------


def largest_reduction() -> Row:
    return max(data("kod2-7"), key=lambda each: each["reduction"])


NETWORKS = tuple(kod2.NETWORKS.values())
KOD2_CLAIMS = [
    gives(KOD2, "Runs have @ seeds", lambda: data("kod2-7")[0]["seeds"]),
    says(
        KOD2,
        "@ nodes of @ cores and @ GB; @ jobs, one every @ s,",
        word(kod2.NODES),
        *(kod2.CORES, f"{kod2.MEMORY:g}", word(kod2.JOBS), f"{kod2.GAP:g}"),
    ),
    says(
        KOD2,
        "@ images; batch sizes @ to @ |",
        f"{kod2.IMAGES:,}",
        kod2.BATCHES[0],
        kod2.BATCHES[-1],
    ),
    holds(
        KOD2,
        "workers ask for 1 to 3 cores and 2 to 6 GB; at least 1 or 2, 1 to 4 more asked for, up to "
        "2 more at most",
        lambda: (
            [
                tuple(map(int, pair))
                for pair in re.findall(r"integers\((\d), (\d)\)", inspect.getsource(kod2._job))
            ]
            == [(1, 3), (1, 5), (0, 3), (1, 4), (2, 7)]
        ),
    ),
    says(
        KOD2,
        "@ epochs; @, @, @ and @ ms for an image, @ ms for a step; gradients of @, @, @ and @ MB; "
        "links of @ Gb/s; @ s per joining or leaving worker",
        word(kod2.EPOCHS),
        *(f"{1000 * network.image:g}" for network in NETWORKS),
        f"{1000 * kod2.STEP:g}",
        *(f"{network.gradient_mb:g}" for network in NETWORKS),
        f"{kod2.LINK_GBPS:g}",
        f"{kod2.RESIZE:g}",
    ),
    holds(KOD2, "that holds pods for an hour without ever", lambda: kod2.PATIENCE == 3600),
    says(KOD2, "on the @ % of Fig. 7(b)", percent(KOD7["VGG-16", 128])),
    Claim(
        KOD2,
        "| yes | in each of the @ draws | reproduced |",
        lambda: [sum(each["seeds"] for each in data("kod2-7"))],
        lambda: all(each["lower"] == each["seeds"] for each in data("kod2-7")),
    ),
    Claim(
        KOD2,
        "| largest reduction: VGG-16, batch size @ | @ % | @ % | smaller |",
        lambda: (
            largest_reduction()["batch"],
            percent(KOD7["VGG-16", 128]),
            percent(largest_reduction()["reduction"]),
        ),
        lambda: largest_reduction()["model"] == "VGG-16",
    ),
    says(KOD2, "in steps of @ images", kod2.BATCH4),
    holds(
        KOD2,
        "(Fig. 4) | yes | up to four workers | reproduced |",
        lambda: all(
            near(r["speedup"], r["workers"], 1e-9) for r in data("kod2-4") if r["workers"] <= 4
        ),
    ),
    holds(
        KOD2,
        "VGG-16 is slower with eight workers than with one",
        lambda: (
            row("kod2-4", model="VGG-16", workers=8)["speedup"] < 1
            and max(NETWORKS, key=lambda each: each.gradient_mb) == kod2.NETWORKS["VGG-16"]
        ),
    ),
    holds(
        KOD2,
        "| only the operator deadlocks | yes | where jobs are long | reproduced |",
        lambda: (
            all(r["deadlocked"] == r["seeds"] for r in data("kod2-7") if r["operator"] > 4000)
            and all(each["kod2_terminated"] == 0 for each in data("kod2-7"))
        ),
    ),
    gives(
        KOD2,
        "| more CPU use, VGG-16 (Fig. 8) | @ % | @ % | smaller |",
        lambda: percent(KOD8["VGG-16"]),
        lambda: percent(row("kod2-8", model="VGG-16")["increase"]),
    ),
]

# --- SpeCon -------------------------------------------------------------------------------------


def run(figure: str) -> Row:
    return row(f"specon-{figure}", policy="specon")


def above(figure: str, column: str) -> float:
    """Distance of a mean above the published number, as a share of it."""
    return float(run(figure)[column] / run(figure)[f"{column}_published"] - 1)


def choice(figure: str, crowding: str, name: str) -> Row:
    (found,) = (
        each
        for each in data("specon-sensitivity")
        if (str(each["figure"]), each["crowding"], each["choice"]) == (figure, crowding, name)
    )
    return found


def table3() -> list[Row]:
    """A row for each threshold and interval."""
    return rows("specon-table3", policy="specon")


def ends(values: Iterable[float]) -> list[str]:
    """The least and the largest, in per cent."""
    found = list(values)
    return [percent(min(found)), percent(max(found))]


def printed3(name: str) -> list[str]:
    return ends(each[name] for each in TABLE3.values())


def is_ordinary(rows: Iterable[Row], published: str = "overall_published") -> bool:
    """Return whether each published mean lies in the middle 95 % of the draws."""
    return all(each["one_draw_low"] < each[published] < each["one_draw_high"] for each in rows)


SCHEDULE = SCHEDULES["5"]


def gains(figure: str) -> Claim:
    """A row of the table of means: published, here, and the draws that gain as much."""
    return gives(
        SPECON,
        f"| {figure} | @ % | @ % | @ |",
        lambda: percent(SCHEDULES[figure].specon.gain, 1),
        lambda: percent(run(figure)["overall"], 1),
        lambda: run(figure)["as_much"],
    )


SPECON_CLAIMS = [
    gives(SPECON, "Random jobs have @ draws", lambda: run("5")["seeds"]),
    says(
        SPECON,
        "workers of @ cores; numbers of jobs and workers; times of arrival; alpha @, interval @ s, "
        "weights @, @, @ | published",
        specon.CORES,
        *(f"{value:g}" for value in (SpeCon().alpha, SpeCon().interval)),
        *(f"{weight:g}" for weight in WEIGHTS.values()),
    ),
    says(
        SPECON,
        "@ % of the evaluation function's reduction in the first fifth of the training; Bi-RNN "
        "@ %, GRU @ % | published; RNN @ %, dynamic RNN @ %: ours",
        *(percent(EARLY_PROGRESS[name]) for name in ("VAE", "Bi-RNN", "GRU")),
        *(percent(specon.EARLY[name]) for name in ("RNN", "Dynamic RNN")),
    ),
    says(
        SPECON,
        'take @ to @ s together | read: "less than @ seconds", standard deviation @ s',
        *(0, f"{SAVING_AT_MOST:g}", f"{SAVING_AT_MOST:g}", str(SAVING_SPREAD)),
    ),
    holds(
        SPECON,
        "saving and resuming take 0 to 5 s together",
        lambda: near(SAVING_AT_MOST / math.sqrt(12), SAVING_SPREAD, 0.02),
    ),
    says(
        SPECON,
        "@ to @ between @ kinds of jobs, @ to @ within one",
        *(0, f"{draws.BETWEEN:g}", word(len(specon.MODELS) * draws.PLATFORMS)),
        *(0, f"{draws.WITHIN:g}"),
    ),
    says(SPECON, "of its speed, l from @ to @ |", 0, f"{draws.LOSS:g}"),
    says(
        SPECON,
        "makespan within @ % of the published one, the printed job within @ %",
        percent(draws.NEAR),
        percent(draws.NEAR_JOB),
    ),
    says(SPECON, "(of Fig. 6 it follows: @ s)", f"{SCHEDULES['6'].default.mean:.1f}"),
    *(gains(figure) for figure in ("5", "6", "7", "12")),
    holds(
        SPECON,
        "| draws that gain as much |",
        lambda: {run(figure)["seeds"] for figure in SCHEDULES} == {100},
    ),
    holds(
        SPECON,
        "| each published mean lies in the middle 95 % of the draws | reproduced | | makespans",
        lambda: is_ordinary(run(figure) for figure in SCHEDULES),
    ),
    holds(
        SPECON,
        "makespans within 5 % of the published ones",
        lambda: all(near(above(figure, "makespan"), 0, 0.05) for figure in SCHEDULES),
    ),
    *(
        gives(
            SPECON,
            f"jobs that gain in Fig. {figure}: @ % published, @ % here",
            lambda figure=figure: percent(SCHEDULES[figure].specon.reduced),
            lambda figure=figure: percent(run(figure)["reduced"]),
        )
        for figure in ("5", "6")
    ),
    says(SPECON, "![@ jobs] ![@ jobs] ![@ jobs]", *(SCHEDULES[n].jobs for n in ("6", "7", "12"))),
    holds(
        SPECON,
        "| in Fig. 5 SpeCon gains less than 1 % |",
        lambda: 0 < choice("5", "drawn", "waits for all")["overall"] < 0.01,
    ),
    holds(
        SPECON,
        "| in Fig. 5 SpeCon gains nothing |",
        lambda: choice("5", "drawn", "cluster")["overall"] <= 0,
    ),
    Claim(
        SPECON,
        "even perfect balancing gains @ and @ % in Figs. 6 and 7, published @ and @ |",
        lambda: (
            *(percent(choice(n, "costs nothing", "specon")["pooled"]) for n in "67"),
            *(percent(SCHEDULES[n].specon.gain, 1) for n in "67"),
        ),
    ),
    gives(SPECON, "instead of @ | | `waits", lambda: percent(run("6")["overall"], 1)),
    gives(
        SPECON,
        "in Fig. 5 the mean is @ % above the published one instead of @ %",
        lambda: percent(
            choice("5", "drawn", "exponential")["mean"] / run("5")["mean_published"] - 1, 1
        ),
        lambda: percent(above("5", "mean"), 1),
    ),
    says(
        SPECON,
        "@ VAE jobs arrive within @ s",
        schedules.JOBS,
        f"{schedules.WINDOW:g}",
    ),
    gives(
        SPECON,
        "| makespan lower by @ to @ % | more: @ to @ % |",
        lambda: printed3("makespan")[0],
        lambda: printed3("makespan")[1],
        lambda: ends(r["makespan_gain"] for r in table3())[0],
        lambda: ends(r["makespan_gain"] for r in table3())[1],
    ),
    holds(
        SPECON,
        "| each published mean lies in the middle 95 % of the draws | reproduced | | makespan "
        "lower",
        lambda: is_ordinary(table3()),
    ),
    holds(
        SPECON,
        "| a threshold of 0.01 gains most | **not**: it gains least",
        lambda: (
            max(TABLE3, key=lambda key: TABLE3[key]["overall"])[0] == 0.01
            and min(table3(), key=lambda each: each["overall"])["alpha"] == 0.01
        ),
    ),
    says(SPECON, "the overhead of saving the published deviation, @ s", str(SAVING_SPREAD)),
]


CLAIMS: list[Claim] = [
    *KOD2_CLAIMS,
    *SPECON_CLAIMS,
    says(KOD2, "@ % confidence intervals of the mean", PERCENT),
    says(SPECON, "has @ % confidence intervals of the mean", PERCENT),
]

# page -> words of the page with a number that cannot be wrong -> why it cannot
VENUES = (
    *(("INFOCOM", 2018), ("INFOCOM", 2022), ("TPDS", 2021), ("IPDPS", 2024), ("OSDI", 2020)),
    *(("OSDI", 2021), ("SOSP", 2023), ("NSDI", 2019), ("NSDI", 2020), ("NSDI", 2021)),
    *(("NSDI", 2023), ("EuroSys", 2018), ("EuroSys", 2023), ("ASPLOS", 2023), ("HPDC", 2004)),
)
ALLOWED: dict[str, dict[str, str]] = {
    LITERATURE: {
        **{f"{place} {year}": YEAR for place, year in VENUES},
        "four of its objectives": "gavel.OBJECTIVES",
    },
    KOD2: {
        "KTCCS 2022": YEAR,
        '"about 30 minutes to over an hour"': QUOTED,
        "of 1, 1/2 and 1/3 the nearest": TRIED,
        "Beyond four, workers reach": "what one node holds: the cores of the table above",
    },
    SPECON: {
        "Figs. 1 to 3, 5 to 12": NAME,
        "1 / (n (1 + l (n - 1)))": DEFINED,
        "## Figs. 5, 6, 7 and 12": NAME,
        "*middle 95 % of the draws*": DEFINED,
        "line 15": NAME,
        "Three choices were made": "the sentence names them",
        "with fewer than three on a worker": "the algorithm asks for three on a worker",
        "(l = 0)": DEFINED,
        "| l up to 0.5 | the mean of Fig. 6 falls by 6.8 %": (
            "test_specon_figures.py: test_with_a_loss_of_up_to_a_half_fig_6_gains_less"
        ),
    },
}
