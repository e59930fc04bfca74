"""What the pages of the SpeCon and the KOD2 paper say in numbers (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable

from baselines import SpeCon
from experiments.figures import kod2
from experiments.figures.figure import Row
from experiments.figures.kod2 import FIG7 as KOD7
from experiments.figures.kod2 import FIG8 as KOD8
from experiments.figures.specon import draws, saving, schedules
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
    PAPERS,
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
    gives(KOD2, "written by them with @ seeds", lambda: data("kod2-7")[0]["seeds"]),
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
        "ask for 1 to 3 cores and 2 to 6 GB, at least 1 or 2 of them, 1 to 4 more asked for, up to "
        "2 more than that at most",
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
        "@ epochs; @, @, @ and @ ms for an image, @ ms for a step beside its images; gradients of "
        "@, @, @ and @ MB; links of @ Gb/s",
        word(kod2.EPOCHS),
        *(f"{1000 * network.image:g}" for network in NETWORKS),
        f"{1000 * kod2.STEP:g}",
        *(f"{network.gradient_mb:g}" for network in NETWORKS),
        f"{kod2.LINK_GBPS:g}",
    ),
    says(KOD2, "joins or leaves costs the job @ s", f"{kod2.RESIZE:g}"),
    holds(KOD2, "held pods for an hour without ever", lambda: kod2.PATIENCE == 3600),
    says(KOD2, "on the @ % of Fig. 7(b)", percent(KOD7["VGG-16", 128])),
    says(KOD2, "The @ % of Fig. 8(b)", percent(KOD8["VGG-16"])),
    gives(KOD2, "*Seeds lower* are those of @ in which", lambda: data("kod2-7")[0]["seeds"]),
    Claim(
        KOD2,
        "quicker for each model and each batch size, in each of the @ draws",
        lambda: [sum(each["seeds"] for each in data("kod2-7"))],
        lambda: all(each["lower"] == each["seeds"] for each in data("kod2-7")),
    ),
    Claim(
        KOD2,
        "at VGG-16 and batch size @, but smaller: @ %, published @.",
        lambda: (
            largest_reduction()["batch"],
            percent(largest_reduction()["reduction"]),
            percent(KOD7["VGG-16", 128]),
        ),
        lambda: largest_reduction()["model"] == "VGG-16",
    ),
    says(KOD2, "in steps of @ images, with workers of two cores", kod2.BATCH4),
    Claim(
        KOD2,
        "up to four workers, which one node holds beside the parameter server, n workers are n "
        "times as quick",
        None,
        lambda: all(
            near(r["speedup"], r["workers"], 1e-9) for r in data("kod2-4") if r["workers"] <= 4
        ),
    ),
    Claim(
        KOD2,
        "over a link of @ Gb/s. VGG-16, whose gradients are the largest, is slower with eight "
        "workers than with one, and ResNet-50 slower with five than with four",
        lambda: [f"{kod2.LINK_GBPS:g}"],
        lambda: (
            row("kod2-4", model="VGG-16", workers=8)["speedup"] < 1
            and row("kod2-4", model="ResNet-50", workers=5)["speedup"]
            < row("kod2-4", model="ResNet-50", workers=4)["speedup"]
            and max(NETWORKS, key=lambda each: each.gradient_mb) == kod2.NETWORKS["VGG-16"]
        ),
    ),
    holds(
        KOD2,
        "deadlocks, in all draws wherever jobs last long enough for pods of several to be half "
        "placed; KOD2 never does",
        lambda: (
            all(r["deadlocked"] == r["seeds"] for r in data("kod2-7") if r["operator"] > 4000)
            and all(each["kod2_terminated"] == 0 for each in data("kod2-7"))
        ),
    ),
    Claim(
        KOD2,
        "more of the CPUs for every model; by @ % for VGG-16, published @",
        lambda: (percent(row("kod2-8", model="VGG-16")["increase"]), percent(KOD8["VGG-16"])),
        lambda: all(each["increase"] > 0 for each in data("kod2-8")),
    ),
]

# --- SpeCon -------------------------------------------------------------------------------------


def run(figure: str, policy: str = "specon") -> Row:
    return row(f"specon-{figure}", policy=policy)


def above(figure: str, column: str, policy: str = "specon") -> float:
    """How far a mean is above the published number, as a share of it."""
    return float(run(figure, policy)[column] / run(figure, policy)[f"{column}_published"] - 1)


def choice(figure: str, crowding: str, name: str) -> Row:
    (found,) = (
        each
        for each in data("specon-sensitivity")
        if (str(each["figure"]), each["crowding"], each["choice"]) == (figure, crowding, name)
    )
    return found


def table3() -> list[Row]:
    """The first reading, a row for each threshold and interval."""
    return rows("specon-table3", policy="specon")


def ends(values: Iterable[float]) -> list[str]:
    """The least and the largest, in per cent."""
    found = list(values)
    return [percent(min(found)), percent(max(found))]


def printed3(name: str) -> list[str]:
    return ends(each[name] for each in TABLE3.values())


def is_ordinary(rows: Iterable[Row], published: str = "overall_published") -> bool:
    """Whether each published mean lies in the middle 95 % of the draws."""
    return all(each["one_draw_low"] < each[published] < each["one_draw_high"] for each in rows)


SCHEDULE = SCHEDULES["5"]
SPECON_CLAIMS = [
    gives(SPECON, "with @ draws where the jobs are drawn", lambda: run("5")["seeds"]),
    says(
        SPECON,
        "workers of @ cores; numbers of jobs and workers; times of arrival; alpha @, interval @ s, "
        "weights @, @, @ | published",
        specon.CORES,
        *(f"{value:g}" for value in (SpeCon().alpha, SpeCon().interval)),
        *(f"{weight:g}" for weight in SpeCon().parameters["weights"]),
    ),
    says(
        SPECON,
        "@ % of the reduction of the evaluation function in the first fifth of the training; @ % "
        "for Bi-RNN, @ % for GRU | published; of RNN and dynamic RNN, @ and @ %: ours",
        *(percent(EARLY_PROGRESS[name]) for name in ("VAE", "Bi-RNN", "GRU")),
        *(percent(specon.EARLY[name]) for name in ("RNN", "Dynamic RNN")),
    ),
    says(
        SPECON,
        'take @ to @ s together, drawn evenly for each draw | read: "less than @ seconds", '
        "standard deviation @ s; such times have @ s",
        *(0, f"{SAVING_AT_MOST:g}", f"{SAVING_AT_MOST:g}", str(SAVING_SPREAD)),
        f"{SAVING_AT_MOST / math.sqrt(12):.2f}",
    ),
    says(
        SPECON,
        "between the @ kinds of jobs (a model on a platform) @ to @, within a kind @ to @ |",
        word(len(specon.MODELS) * draws.PLATFORMS),
        *(0, f"{draws.BETWEEN:g}", 0, f"{draws.WITHIN:g}"),
    ),
    says(SPECON, "of its speed, l from @ to @ |", 0, f"{draws.LOSS:g}"),
    says(
        SPECON,
        "makespan is within @ % of the published one, and the one job whose time under it is "
        "printed is within @ %",
        percent(draws.NEAR),
        percent(draws.NEAR_JOB),
    ),
    says(
        SPECON,
        "(The mean of Fig. 6, @ s, is not printed, but follows: @ jobs gain @ s on average, @ lose "
        "@ s, and that is @ %.",
        *(f"{SCHEDULES['6'].default.mean:.1f}", 15, "165.7", 5, "110.8"),
        percent(SCHEDULES["6"].specon.gain, 1),
    ),
    holds(
        SPECON,
        "counts those, of 100, that gain",
        lambda: {run(figure)["seeds"] for figure in SCHEDULES} == {100},
    ),
    says(
        SPECON,
        "Over the @ points of the VAE its standard deviation is @ s, as published",
        word(len(saving.SHARES)),
        str(SAVING_SPREAD),
    ),
    gives(
        SPECON,
        "mean completion time is within @ % of the published one, its makespan within @ %. The "
        "mean falls by @ %, published @; @ draws in ten gain as much",
        lambda: math.ceil(100 * above("5", "mean")),
        lambda: math.ceil(100 * above("5", "makespan")),
        lambda: percent(run("5")["overall"]),
        lambda: percent(SCHEDULE.specon.gain, 1),
        lambda: word(run("5")["as_much"] / 10),
    ),
    gives(
        SPECON,
        "fewer jobs gain, @ % instead of @.",
        lambda: percent(run("5")["reduced"]),
        lambda: percent(SCHEDULE.specon.reduced),
    ),
    says(
        SPECON,
        "one job every @ s on each worker",
        f"{SCHEDULE.window / SCHEDULE.jobs * SCHEDULE.workers:g}",
    ),
    holds(
        SPECON,
        "SpeCon gains less than 1 %",
        lambda: 0 < run("5", "specon, waits for all")["overall"] < 0.01,
    ),
    says(SPECON, "![Completion times, @ jobs] ![Completion times, @ jobs]", 20, 30),
    says(SPECON, "Completion times, @ jobs on @ workers", SCHEDULES["12"].jobs, "eight"),
    holds(
        SPECON,
        "each published number lies in the middle 95 % of the draws",
        lambda: is_ordinary(run(figure) for figure in SCHEDULES),
    ),
    gives(
        SPECON,
        "In Fig. 6 the mean falls by @ %, published @, in Fig. 7 by @ %, published @, in Fig. 12 "
        "by @ %, published @.",
        lambda: percent(run("6")["overall"]),
        lambda: percent(SCHEDULES["6"].specon.gain, 1),
        lambda: percent(run("7")["overall"], 1),
        lambda: percent(SCHEDULES["7"].specon.gain, 1),
        lambda: percent(run("12")["overall"], 1),
        lambda: percent(SCHEDULES["12"].specon.gain, 1),
    ),
    holds(
        SPECON,
        "The makespans are within 5 % of the published ones",
        lambda: all(near(above(figure, "makespan"), 0, 0.05) for figure in ("6", "7", "12")),
    ),
    gives(
        SPECON,
        "in Fig. 6, @ % of the jobs gain, published @; and in Fig. 12 SpeCon gains more than "
        "published in @ draws of @.",
        lambda: percent(run("6")["reduced"]),
        lambda: percent(SCHEDULES["6"].specon.reduced),
        lambda: run("12")["as_much"],
        lambda: run("12")["seeds"],
    ),
    Claim(
        SPECON,
        "perfect balancing then gains @ and @ %, published @ and @, and only two draws in @ gain "
        "as much as published",
        lambda: (
            *(percent(choice(n, "costs nothing", "specon")["pooled"]) for n in "67"),
            *(percent(SCHEDULES[n].specon.gain, 1) for n in "67"),
            100,
        ),
        lambda: all(choice(n, "costs nothing", "specon")["as_much"] == 2 for n in "67"),
    ),
    gives(
        SPECON,
        "are below @ in Fig. 5, @ in Fig. 7 and @ in Fig. 12",
        *(
            lambda figure=figure: f"{run(figure, 'default')['loss_nine_in_ten']:.2f}"
            for figure in ("5", "7", "12")
        ),
    ),
    gives(
        SPECON,
        "instead of @. **The evaluation function**",
        lambda: percent(run("6")["overall"], 1),
    ),
    gives(
        SPECON,
        "with the exponential, SpeCon's mean there is @ s, @ % above the published one instead of "
        "@ %",
        lambda: f"{run('5', 'specon, exponential')['mean']:.0f}",
        lambda: percent(above("5", "mean", "specon, exponential"), 1),
        lambda: percent(above("5", "mean"), 1),
    ),
    says(
        SPECON,
        "@ VAE jobs that arrive at random within @ s",
        schedules.JOBS,
        f"{schedules.WINDOW:g}",
    ),
    gives(
        SPECON,
        "in each of the @ rows, in most of the jobs (@ to @ %, published @ to @), with a mean that "
        "is lower by @ to @ % (published @ to @) and a makespan lower by @ to @ % (published @ to "
        "@).",
        lambda: word(len(table3())),
        lambda: ends(r["reduced"] for r in table3())[0],
        lambda: ends(r["reduced"] for r in table3())[1],
        lambda: printed3("reduced")[0],
        lambda: printed3("reduced")[1],
        lambda: ends(r["overall"] for r in table3())[0],
        lambda: ends(r["overall"] for r in table3())[1],
        lambda: printed3("overall")[0],
        lambda: printed3("overall")[1],
        lambda: ends(r["makespan_gain"] for r in table3())[0],
        lambda: ends(r["makespan_gain"] for r in table3())[1],
        lambda: printed3("makespan")[0],
        lambda: printed3("makespan")[1],
    ),
    holds(
        SPECON,
        "Each published mean lies in the middle 95 % of the draws",
        lambda: is_ordinary(table3()),
    ),
    holds(
        SPECON,
        "There a threshold of 0.01 gains most, three times what 0.05 does; here it gains least",
        lambda: (
            near(TABLE3[0.01, 30.0]["overall"] / TABLE3[0.05, 30.0]["overall"], 3, 0.1)
            and min(table3(), key=lambda each: each["overall"])["alpha"] == 0.01
        ),
    ),
]


CLAIMS: list[Claim] = [
    *KOD2_CLAIMS,
    *SPECON_CLAIMS,
    says(KOD2, "@ % confidence intervals of the mean", PERCENT),
    says(SPECON, "@ % confidence intervals of the mean", PERCENT),
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
    },
    KOD2: {
        "KTCCS 2022": YEAR,
        '"about 30 minutes to over an hour"': QUOTED,
        "of 1, 1/2 and 1/3 what comes nearest": TRIED,
        "with one to eight workers": "the alternative text of the picture",
        "alone on the three nodes": "the nodes of the table above",
        "The paper draws four models": PAPERS,
        "has finished all ten jobs": "the jobs of the table above",
    },
    SPECON: {
        "Figs. 1 to 3, 5 to 12": NAME,
        "1 / (n (1 + l (n - 1)))": DEFINED,
        "Figs. 5, 6, 7 and 12": NAME,
        "But three choices of form": "the sentence names them",
        "*middle 95 % of the draws* is the range in which one more draw falls with 95 %": DEFINED,
        "it moves Job-1 at 620 s, though jobs come until 600 s and need three looks, 60 s": PAPERS,
        "line 15": NAME,
        "scores that no 30 jobs": "the jobs of Fig. 9",
        "Progress of three trainings": "the alternative text of the picture",
        "there are seldom three on one": "the algorithm asks for three on a worker",
        "(Figs. 6, 7 and 12)": NAME,
        "*value every 60 s* is": DEFINED,
        "in which l is 0": DEFINED,
        "the table three of them": "the cell names them",
        "nine in ten of the draws": DEFINED,
        "with l up to 0.5 only, where it first ended, the mean of Fig. 6 falls by 6.8 %": (
            "test_specon_figures.py: test_with_a_loss_of_up_to_a_half_fig_6_gains_less"
        ),
        "use ends at some 80 %": PAPERS,
    },
}
