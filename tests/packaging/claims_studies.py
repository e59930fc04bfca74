"""Numbers of the pages of the floor, controllers, DRAGON and the autoscaler (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

import inspect
import math
from functools import cache

from baselines import Dragon
from experiments.evaluation.comparison import SLOT_SECONDS
from experiments.figures import controllers
from experiments.figures import controllers as elastic
from experiments.figures import priority_queue as scenarios
from experiments.figures.dragon import models as dragon
from experiments.figures.dragon import study
from experiments.figures.dragon.models import DEFAULT, DRAGON, LOCALITY, measure
from experiments.figures.dragon.models import FIG6_FACTORS as DRAGON6
from experiments.figures.dragon.models import FIG7 as DRAGON7
from experiments.figures.dragon.models import FIG8 as DRAGON8
from experiments.figures.dragon.readings import Released
from experiments.figures.dragon.table1 import ARRIVALS as DRAGON_ARRIVALS
from experiments.figures.dragon.table1 import ASKED, BY_MODEL, table1
from experiments.figures.figure import Row
from experiments.figures.studies import FLOORS
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from tests.packaging.figure_rows import (
    COMMAND,
    PERCENT,
    SCENARIO,
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
from tests.unit.experiments.test_dragon_figures import ahead

QUEUE, DRAGON_PAGE = "docs/figures-priority-queue.md", "docs/figures-dragon.md"
FLOOR, CONTROLLERS = "docs/floor.md", "docs/controllers.md"
PAGES: tuple[str, ...] = (QUEUE, DRAGON_PAGE, FLOOR, CONTROLLERS)
MINUTES = "printed, minutes"

# --- the floor, controllers, priority queue -----------------------------------------------------

TABLES = ("floor-training", "floor")
FEW, SHORT = "T = 300, 50 + 50 servers, 100 jobs", "T = 20, 10 + 10 servers, 20 jobs"


def mean_share(name: str, floor: float) -> float:
    found = rows(name, floor=floor)
    return sum(each["share"] for each in found) / len(found)


def training_seeds() -> list[int]:
    """Numbers of training seeds of the families, largest first."""
    return sorted((each["seeds"] for each in rows("floor-training", floor=0.0)), reverse=True)


def best_floors(name: str) -> list[float]:
    return sorted(FLOORS, key=lambda floor: -mean_share(name, floor))


def lead(name: str) -> float:
    """By how much the best floor is ahead of the second."""
    best, second = best_floors(name)[:2]
    return mean_share(name, best) - mean_share(name, second)


def least_share(low: float, high: float) -> float:
    """Least share of any family in either table."""
    return min(r["share"] for name in TABLES for r in data(name) if low <= r["floor"] <= high)


def turns_jobs_away(family: str) -> bool:
    """Whether the highest floor earns clearly less there than the best one."""
    shares = [[each["share"] for each in rows(name, family=family)] for name in TABLES]
    return all(each[-1] < max(each) - 0.03 for each in shares)


FLOOR_CLAIMS = [
    Claim(
        FLOOR,
        "The default is @. It was chosen on",
        lambda: [f"{DEFAULT_MIN_UTILITY_FRACTION:g}"],
        lambda: best_floors("floor-training")[0] == DEFAULT_MIN_UTILITY_FRACTION,
    ),
    gives(
        FLOOR,
        "on @ floors, @ families of instances",
        lambda: word(len(FLOORS)),
        lambda: word(len({each["family"] for each in data("floor-training")})),
    ),
    holds(
        FLOOR,
        "forty of each small family, ten, five and four of the large ones",
        lambda: training_seeds() == [40, 40, 10, 5, 4],
    ),
    holds(FLOOR, "On other seeds, 0 to 9,", lambda: {r["seeds"] for r in data("floor")} == {10}),
    Claim(
        FLOOR,
        "Between @ and @ the means differ by @ at most",
        holds=lambda low, high, most: all(
            max(shares) - min(shares) <= most
            for shares in (
                [mean_share(name, floor) for floor in FLOORS if low <= floor <= high]
                for name in TABLES
            )
        ),
    ),
    gives(
        FLOOR,
        "on the seeds of the second table @ is the best by @",
        lambda: f"{best_floors('floor')[0]:g}",
        lambda: f"{lead('floor'):.2f}",
    ),
    holds(
        FLOOR,
        "With the paper's prices and no floor about half of the utility is lost",
        lambda: all(near(mean_share(name, 0.0), 0.5, 0.05) for name in TABLES),
    ),
    Claim(
        FLOOR,
        "Anything from @ to @ earns at least @ % of the best floor's utility in every family",
        lambda: ("0.5", "0.8", str(math.floor(100 * least_share(0.5, 0.8)))),
    ),
    holds(
        FLOOR,
        "Where jobs are few (T = 300, 100 jobs), or small and short (T = 20), a high floor turns "
        "jobs away",
        lambda: turns_jobs_away(FEW) and turns_jobs_away(SHORT),
    ),
]

PHILLY = "philly/controllers"


def elastic_row(policy: str, load: float = 2, name: str = "controllers") -> Row:
    return row(name, policy=policy, load=load)


def by_share(load: float, name: str = "controllers") -> list[str]:
    """All policies, that which earns the largest part of the bound first."""
    found = sorted(rows(name, load=load), key=lambda each: -each["of_bound"])
    return [each["policy"] for each in found]


CONTROLLERS_CLAIMS = [
    Claim(
        CONTROLLERS,
        "Drawn jobs have @ seeds. Philly has @ windows,",
        lambda: [elastic_row("fifo")["seeds"], elastic_row("fifo", name=PHILLY)["seeds"]],
    ),
    says(
        CONTROLLERS,
        "@ of @ GPUs; links of @ Gb/s",
        word(elastic.MACHINES),
        word(elastic.GPUS),
        f"{elastic.LINK_GBPS:g}",
    ),
    says(
        CONTROLLERS,
        "@ of @ to @ GPUs, half an hour to four hours long",
        elastic.JOBS,
        elastic.LEAST_GPUS,
        elastic.MOST_GPUS,
    ),
    holds(
        CONTROLLERS,
        "half an hour to four hours long with the GPUs that they ask for",
        lambda: (elastic.SHORTEST, elastic.LONGEST) == (1800, 4 * 3600),
    ),
    says(CONTROLLERS, "or @ consecutive such jobs of the trace", elastic.JOBS),
    holds(CONTROLLERS, "to twice as many as they ask for", lambda: elastic.ELASTICITY == 2),
    says(
        CONTROLLERS,
        "between the first and the last arrival: @, @ and @.",
        *(f"{load:g}" for load in controllers.LOADS),
    ),
    says(CONTROLLERS, "one of the @ models of the", word(len(dragon.MODELS))),
    says(CONTROLLERS, "A restart takes @ s", f"{sum(dragon.RESTART) / 2:g}"),
    holds(
        CONTROLLERS,
        "worth 1 to 100, half of it after one to three times the duration",
        lambda: all(
            text in inspect.getsource(elastic._utility)
            for text in ("uniform(1.0, 3.0)", "uniform(1.0, 100.0)")
        ),
    ),
    says(
        CONTROLLERS,
        "@ % of the jobs are critical, and @ % do not mind waiting",
        percent(elastic.CRITICAL),
        percent(elastic.INSENSITIVE),
    ),
    says(CONTROLLERS, "They plan in slots (@ s)", f"{SLOT_SECONDS:g}"),
    says(CONTROLLERS, "*Unfinished* jobs, of @,", elastic.JOBS),
    gives(
        CONTROLLERS,
        "cannot be below @ s",
        lambda: f"{elastic_row('fifo')['mean_bound']:.0f}",
    ),
    holds(
        CONTROLLERS,
        "| ElasticFlow earns most at half load and at load 1, recourse at load 2 |",
        lambda: [by_share(load)[0] for load in (0.5, 1, 2)] == [*["elasticflow"] * 2, "recourse"],
    ),
    holds(
        CONTROLLERS,
        "| DRAGON is the best of the others at load 2, with the lowest mean completion time |",
        lambda: (
            by_share(2)[2] == "dragon"
            and min(rows("controllers", load=2), key=lambda each: each["mean"])["policy"]
            == "dragon"
        ),
    ),
    holds(
        CONTROLLERS,
        "| `locality-aware` earns more than FIFO, SRTF and LAS at every load |",
        lambda: all(
            by_share(load).index("locality-aware") < by_share(load).index(other)
            for load in controllers.LOADS
            for other in ("fifo", "srtf", "las")
        ),
    ),
    holds(
        CONTROLLERS,
        "| OASiS earns less than recourse at load 2 |",
        lambda: by_share(2).index("recourse") < by_share(2).index("oasis"),
    ),
    gives(
        CONTROLLERS,
        "it decides once, and turns @ jobs away",
        lambda: f"{elastic_row('oasis')['unfinished']:.1f}",
    ),
    holds(
        CONTROLLERS,
        "and ahead of only FIFO, LAS and `kubernetes-default` at load 2 |",
        lambda: (
            set(by_share(2)[by_share(2).index("kod2") + 1 :])
            == {"fifo", "las", "kubernetes-default"}
        ),
    ),
    Claim(
        CONTROLLERS,
        "| DRF and Optimus earn less than SRTF at load 2 | they resize a job @ and @ times",
        lambda: [f"{elastic_row(name)['restarts']:.1f}" for name in ("drf", "optimus")],
        lambda: (
            by_share(2).index("srtf") < min(by_share(2).index(name) for name in ("drf", "optimus"))
        ),
    ),
    gives(
        CONTROLLERS,
        "meet (@ seeds)?",
        lambda: word(row("deadlines", policy="fifo", load=2)["seeds"]),
    ),
    holds(
        CONTROLLERS,
        "Recourse and ElasticFlow earn most at loads 1 and 2. OASiS is among the last two",
        lambda: all(
            set(by_share(load, PHILLY)[:2]) == {"recourse", "elasticflow"}
            and "oasis" in by_share(load, PHILLY)[-2:]
            for load in (1, 2)
        ),
    ),
    Claim(
        CONTROLLERS,
        "it turns @ and @ of @ jobs away",
        lambda: [
            *(f"{elastic_row('oasis', load, PHILLY)['unfinished']:.1f}" for load in (1, 2)),
            elastic.JOBS,
        ],
    ),
]

# --- DRAGON -------------------------------------------------------------------------------------


def dragon7(policy: str, column: str) -> float:
    return float(row("dragon-7", arrivals=MINUTES, policy=policy)[column])


def factors() -> list[float]:
    """By how much longer the default scheduler runs each job."""
    return [each[f"{DEFAULT}, {MINUTES}"] for each in data("dragon-6")]


@cache
def split(batch: int, exposed: float) -> Row:
    """Shares of the elapsed time, and use, with other values of what is calibrated."""
    found, _ = measure(table1(batch=batch, rigid=True, exposed=exposed), DEFAULT)
    shares = {name: found[name] / found["elapsed"] for name in ("running", "waiting")}
    return {**shares, "use": found["use"]}


def gives_both(each: Row) -> bool:
    """Whether a choice comes near the published use and the published split."""
    return near(each["use"], DRAGON8[DEFAULT], 0.05) and near(
        each["running"], float(DRAGON7[DEFAULT]["running"] or 0), 0.05
    )


def last_end(by_model: bool = False) -> float:
    """Minutes until the default scheduler has done all jobs."""
    calibrated = table1(batch=dragon.BATCH_BY_MODEL, exposed=dragon.EXPOSED_BY_MODEL, rigid=True)
    _, outcome = measure(calibrated if by_model else table1(rigid=True), DEFAULT)
    return max(job.end or math.inf for job in outcome.jobs) / 60


def gain_over_locality(job: int) -> float:
    return float(row("dragon-6", job=job)[f"{LOCALITY}, {MINUTES}"])


def study_rows(figure: str, share: float = study.AS_READ) -> list[Row]:
    """Rows of one mean running time."""
    return [each for each in data(figure) if each["share"] == share]


def running_saved(share: float) -> dict[float, float]:
    """Running time that DRAGON saves over the locality-aware scheduler, by intensity."""
    return {each["intensity"]: each["running"] for each in study_rows("dragon-9", share)}


def by_model(policy: str, column: str) -> float:
    return float(row("dragon-7", arrivals=BY_MODEL, policy=policy)[column])


def drawn_below(policy: str) -> int:
    return int(row("dragon-7", arrivals="drawn, minutes", policy=policy)["below_locality"])


def beside(published: float, here: float) -> list[str]:
    return [f"{published:.2f}", f"{here:.2f}"]


DRAGON_CLAIMS = [
    gives(DRAGON_PAGE, "Runs have @ seeds", lambda: data("dragon-9")[0]["seeds"]),
    says(
        DRAGON_PAGE,
        "throughput with @ to @ workers; Ethernet of @ Gb/s; restarts of @ to @ s",
        *(1, len(dragon.MODELS["I"].throughput)),
        *(f"{value:g}" for value in (dragon.LINK_GBPS, *dragon.RESTART)),
    ),
    says(
        DRAGON_PAGE,
        "gradients of @, @ and @ MB",
        *(f"{dragon.MODELS[letter].gradient_mb:g}" for letter in "IRA"),
    ),
    says(
        DRAGON_PAGE,
        "@ workers for @ GPUs within @ s could not",
        sum(ASKED),
        dragon.TESTBED.machines * dragon.TESTBED.gpus,
        f"{DRAGON_ARRIVALS[-1]:.0f}",
    ),
    says(DRAGON_PAGE, "@ images in a step", dragon.BATCH),
    Claim(
        DRAGON_PAGE,
        "*batch by model*: AlexNet @ images, half of the network's time felt",
        lambda: [dragon.BATCH_BY_MODEL["A"]],
        lambda: (
            dragon.BATCH_BY_MODEL["I"] == dragon.BATCH_BY_MODEL["R"] == dragon.BATCH
            and dragon.EXPOSED_BY_MODEL == 1 / 2
        ),
    ),
    says(DRAGON_PAGE, "| @ of the running time (Fig. 9)", f"{study.CALIBRATED:g}"),
    says(
        DRAGON_PAGE,
        "the published utilisation of `locality-aware`, @ %",
        percent(DRAGON8[LOCALITY]),
    ),
    holds(
        DRAGON_PAGE, "a third of the time on the network is felt", lambda: dragon.EXPOSED == 1 / 3
    ),
    says(
        DRAGON_PAGE,
        "the default's published split, @ running and @ waiting",
        str(DRAGON7[DEFAULT]["running"]),
        str(DRAGON7[DEFAULT]["waiting"]),
    ),
    gives(
        DRAGON_PAGE,
        "theta @ minutes, lambda @ minute; in the release @ seconds and @ minute",
        lambda: f"{Dragon().urgent_after / 60:g}",
        lambda: f"{Dragon().idle_after / 60:g}",
        lambda: f"{Released().urgent_after:g}",
        lambda: f"{Released().idle_after / 60:g}",
    ),
    *(
        Claim(
            DRAGON_PAGE,
            f"| {part}, `{name}` | @ | @ | {verdict} |",
            lambda name=name, part=part: beside(
                float(DRAGON7[name][part] or 0), dragon7(name, part)
            ),
            lambda name=name, part=part, within=within: near(
                float(DRAGON7[name][part] or 0), dragon7(name, part), within
            ),
        )
        for part, name, verdict, within in (
            ("elapsed", LOCALITY, "near", 0.05),
            ("elapsed", DRAGON, "reproduced", 0.01),
            ("waiting", LOCALITY, "reproduced", 0.005),
        )
    ),
    *(
        gives(
            DRAGON_PAGE,
            f"| GPUs in use, {shown} | @ % | @ % | {verdict} |",
            lambda name=name: percent(DRAGON8[name]),
            lambda name=name: percent(dragon7(name, "use")),
        )
        for shown, name, verdict in (
            ("`dragon`", DRAGON, "reproduced"),
            ("default", DEFAULT, "**not**"),
        )
    ),
    gives(
        DRAGON_PAGE,
        "here all end within @ minutes. With *batch by model* one lasts @ minutes, and the use is "
        "@ %",
        lambda: math.ceil(last_end()),
        lambda: f"{last_end(by_model=True):.0f}",
        lambda: percent(by_model(DEFAULT, "use")),
    ),
    holds(
        DRAGON_PAGE,
        "No pair of the first two calibrated values gives both numbers",
        lambda: (
            not any(
                gives_both(split(batch, 1 / parts))
                for batch in (16, 32, 64, 128, 256)
                for parts in (1, 2, 3, 4)
            )
        ),
    ),
    gives(
        DRAGON_PAGE,
        "less elapsed time than `locality-aware` in @ of @ draws, the code in @, the release in @.",
        lambda: drawn_below("dragon"),
        lambda: row("dragon-7", arrivals="drawn, minutes", policy="dragon")["seeds"],
        lambda: drawn_below("dragon (code)"),
        lambda: drawn_below("dragon (release)"),
    ),
    gives(
        DRAGON_PAGE,
        "With theta at 10 minutes `dragon` is ahead in @:",
        lambda: ahead(lambda: Dragon(urgent_after=600.0)),
    ),
    holds(
        DRAGON_PAGE,
        "**Arrivals in seconds:** all jobs wait, and the published order is lost",
        lambda: (
            row("dragon-7", arrivals="printed, seconds", policy=DRAGON)["elapsed"]
            > row("dragon-7", arrivals="printed, seconds", policy=LOCALITY)["elapsed"]
        ),
    ),
    gives(
        DRAGON_PAGE,
        "| default over DRAGON | @ to @ | @ to @ | reproduced |",
        lambda: str(DRAGON6[0]),
        lambda: str(DRAGON6[1]),
        lambda: f"{min(factors()):.1f}",
        lambda: f"{max(factors()):.1f}",
    ),
    holds(
        DRAGON_PAGE,
        "| gain over `locality-aware` | later jobs | later jobs | reproduced |",
        lambda: (
            all(gain_over_locality(job) > 1.5 for job in range(7, 13))
            and all(gain_over_locality(job) <= 1.1 for job in range(1, 7))
        ),
    ),
    says(
        DRAGON_PAGE,
        "@ jobs on @ machines of @ GPUs",
        study.JOBS,
        dragon.SIMULATED.machines,
        dragon.SIMULATED.gpus,
    ),
    says(
        DRAGON_PAGE,
        "@ at the shortest gap of @ s, @ at the longest of @ s. Jobs run for @ s on average, or "
        "@ s. Their fewest, asked-for and most workers are draws from @ to @.",
        f"{study.INTENSITIES[-1]:g}",
        f"{study.SHORTEST_GAP:g}",
        f"{study.INTENSITIES[-1] * study.SHORTEST_GAP / study.LONGEST_GAP:.2f}",
        f"{study.LONGEST_GAP:g}",
        f"{study.mean_run():.0f}",
        f"{study.mean_run() * study.CALIBRATED:.0f}",
        study.LEAST,
        study.MOST,
    ),
    Claim(
        DRAGON_PAGE,
        "| on average; in all but one of @ runs at the full running time | reproduced |",
        lambda: [sum(each["seeds"] for each in study_rows("dragon-9"))],
        lambda: (
            sum(each["seeds"] - each["better"] for each in study_rows("dragon-9")) == 1
            and all(each["seeds"] == each["better"] for each in data("dragon-10"))
            and all(r["elapsed_low"] > 0 for name in ("dragon-9", "dragon-10") for r in data(name))
        ),
    ),
    holds(
        DRAGON_PAGE,
        "savings in waiting shrink with load | so | reproduced",
        lambda: study_rows("dragon-9")[0]["waiting"] > 2 * study_rows("dragon-9")[-1]["waiting"],
    ),
    holds(
        DRAGON_PAGE,
        "| from between 0.5 and 1; with 0.3 of the running time from between 2.5 and 3 |",
        lambda: (
            running_saved(study.AS_READ)[0.5] > 0 > running_saved(study.AS_READ)[1.0]
            and min(saved for at, saved in running_saved(0.3).items() if at <= 2.5)
            > 0
            > max(saved for at, saved in running_saved(0.3).items() if at >= 3)
        ),
    ),
]

QUEUE_CLAIMS = [
    says(QUEUE, "what its @ procedures do;", word(len(scenarios.SCENARIOS))),
    says(QUEUE, "Two machines have @ GPUs each", word(scenarios.GPUS)),
    holds(QUEUE, "Two machines have four GPUs each", lambda: scenarios.MACHINES == 2),
    says(QUEUE, "Timelines of @ scenarios", word(len(scenarios.SCENARIOS))),
]


CLAIMS: list[Claim] = [
    *FLOOR_CLAIMS,
    *CONTROLLERS_CLAIMS,
    *DRAGON_CLAIMS,
    *QUEUE_CLAIMS,
    says(DRAGON_PAGE, "@ % confidence intervals of the mean", PERCENT),
    says(CONTROLLERS, "@ % confidence intervals of the mean", PERCENT),
]

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    QUEUE: {
        "of two jobs worth 3,": SCENARIO,
        "a job worth 5 takes three of the four workers of the job worth 1": SCENARIO,
        "the job worth 2 keeps all": SCENARIO,
    },
    DRAGON_PAGE: {
        "CLOSER 2019": YEAR,
        "of 1, 1/2, 1/3, 1/4 the nearest": TRIED,
        "of 1, 0.5 and 0.3 the one that fits": TRIED,
        "of 108 combinations the nearest to six published numbers": TRIED,
        "| jobs run longer above an intensity of 3 |": "section 4.3",
    },
    FLOOR: {
        "and seeds from 100 on": COMMAND,
        "has forty of every family": COMMAND,
    },
    CONTROLLERS: {
        "KOD2's four states": "tests/unit/baselines: JobState",
        "At load 2:": "the cell below it",
    },
}
