"""What the pages of the floor, controllers, DRAGON and the autoscaler say (page_numbers).

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
from experiments.figures.dragon.table1 import ARRIVALS as DRAGON_ARRIVALS
from experiments.figures.dragon.table1 import ASKED, BY_MODEL, EARLY, table1
from experiments.figures.figure import Row
from experiments.figures.studies import FLOORS
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.simulator import elastic_from_dict
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
    """How many each family has."""
    return sorted((each["seeds"] for each in rows("floor-training", floor=0.0)), reverse=True)


def best_floors(name: str) -> list[float]:
    return sorted(FLOORS, key=lambda floor: -mean_share(name, floor))


def lead(name: str) -> float:
    """By how much the best floor is ahead of the second."""
    best, second = best_floors(name)[:2]
    return mean_share(name, best) - mean_share(name, second)


def least_share(low: float, high: float) -> float:
    """Of any family in either table."""
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

CONTROLLERS_CLAIMS = [
    says(CONTROLLERS, "does that, at @ loads", word(len(controllers.LOADS))),
    says(
        CONTROLLERS,
        "@ of @ GPUs; links of @ Gb/s",
        word(elastic.MACHINES),
        word(elastic.GPUS),
        f"{elastic.LINK_GBPS:g}",
    ),
    says(
        CONTROLLERS,
        "@ of @ to @ GPUs that run for half an hour to four hours",
        elastic.JOBS,
        elastic.LEAST_GPUS,
        elastic.MOST_GPUS,
    ),
    holds(
        CONTROLLERS,
        "run for half an hour to four hours with the GPUs that they ask for",
        lambda: (elastic.SHORTEST, elastic.LONGEST) == (1800, 4 * 3600),
    ),
    says(CONTROLLERS, "or @ consecutive such jobs of the trace", elastic.JOBS),
    holds(CONTROLLERS, "up to twice as many as they ask for", lambda: elastic.ELASTICITY == 2),
    says(
        CONTROLLERS,
        "between the first and the last arrival, @, @ and @.",
        *(f"{load:g}" for load in controllers.LOADS),
    ),
    says(CONTROLLERS, "one of the @ models of the DRAGON paper", word(len(dragon.MODELS))),
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
]

# --- DRAGON -------------------------------------------------------------------------------------


def dragon7(policy: str, column: str) -> float:
    return float(row("dragon-7", arrivals=MINUTES, policy=policy)[column])


def factors() -> list[float]:
    """By how much longer the default scheduler runs each job."""
    return [each[f"{DEFAULT}, {MINUTES}"] for each in data("dragon-6")]


def all_felt() -> Row:
    """Of the default scheduler, if all time on the network is felt."""
    return split(dragon.BATCH, 1.0)


@cache
def split(batch: int, exposed: float) -> Row:
    """Shares of the elapsed time, and use, with other values of what is calibrated."""
    plain = table1(batch=batch, rigid=True).document
    machine = plain["machines"][0] | {"link_gbps": dragon.LINK_GBPS / exposed}
    found, _ = measure(elastic_from_dict({**plain, "machines": [machine]}), DEFAULT)
    shares = {name: found[name] / found["elapsed"] for name in ("running", "waiting")}
    return {**shares, "use": found["use"]}


def gives_both(each: Row) -> bool:
    """Whether a choice comes near the published use and the published split."""
    return near(each["use"], DRAGON8[DEFAULT], 0.05) and near(
        each["running"], float(DRAGON7[DEFAULT]["running"] or 0), 0.05
    )


def last_end(by_model: bool = False) -> float:
    """When the default scheduler has done all jobs, in minutes."""
    calibrated = table1(batch=dragon.BATCH_BY_MODEL, exposed=dragon.EXPOSED_BY_MODEL, rigid=True)
    _, outcome = measure(calibrated if by_model else table1(rigid=True), DEFAULT)
    return max(job.end or math.inf for job in outcome.jobs) / 60


def mean_running() -> list[float]:
    """Of a job with the locality-aware scheduler and with DRAGON, in minutes."""
    return [
        measure(table1(rigid=rigid), policy)[0]["running"] / 60
        for rigid, policy in ((True, LOCALITY), (False, DRAGON))
    ]


def gain_over_locality(job: int) -> float:
    return float(row("dragon-6", job=job)[f"{LOCALITY}, {MINUTES}"])


def study_rows(figure: str, share: float = study.AS_READ) -> list[Row]:
    """Of one mean running time."""
    return [each for each in data(figure) if each["share"] == share]


def running_saved(share: float) -> dict[float, float]:
    """What DRAGON saves of the running time over the locality-aware scheduler, by intensity."""
    return {each["intensity"]: each["running"] for each in study_rows("dragon-9", share)}


def by_model(policy: str, column: str) -> float:
    return float(row("dragon-7", arrivals=BY_MODEL, policy=policy)[column])


def drawn_below(policy: str) -> int:
    return int(row("dragon-7", arrivals="drawn, minutes", policy=policy)["below_locality"])


DRAGON_CLAIMS = [
    gives(DRAGON_PAGE, "by these commands with @ seeds", lambda: data("dragon-9")[0]["seeds"]),
    says(
        DRAGON_PAGE,
        "throughput with @ to @ workers; machines; Ethernet of @ Gb/s; a restart takes @ to @ s",
        *(1, len(dragon.MODELS["I"].throughput)),
        *(f"{value:g}" for value in (dragon.LINK_GBPS, *dragon.RESTART)),
    ),
    says(
        DRAGON_PAGE,
        "@, @ and @ MB of gradients (Inception-v3, ResNet-50, AlexNet)",
        *(f"{dragon.MODELS[letter].gradient_mb:g}" for letter in "IRA"),
    ),
    says(
        DRAGON_PAGE,
        "with @ workers for @ GPUs within @ s hardly any job",
        sum(ASKED),
        dragon.TESTBED.machines * dragon.TESTBED.gpus,
        f"{DRAGON_ARRIVALS[-1]:.0f}",
    ),
    says(DRAGON_PAGE, "@ images in a step, the same for all models", dragon.BATCH),
    Claim(
        DRAGON_PAGE,
        "*batch by model*: @ images in a step, for AlexNet @, and half of the time",
        lambda: (dragon.BATCH_BY_MODEL["I"], dragon.BATCH_BY_MODEL["A"]),
        lambda: (
            dragon.BATCH_BY_MODEL["I"] == dragon.BATCH_BY_MODEL["R"]
            and dragon.EXPOSED_BY_MODEL == 1 / 2
        ),
    ),
    says(
        DRAGON_PAGE,
        "as read from the intensity, or @ of that",
        f"{study.CALIBRATED:g}",
    ),
    says(DRAGON_PAGE, "its published utilisation of @ %", percent(DRAGON8[LOCALITY])),
    holds(
        DRAGON_PAGE, "a third of the time on the network is felt", lambda: dragon.EXPOSED == 1 / 3
    ),
    says(
        DRAGON_PAGE,
        "its published split, @ running and @ waiting",
        str(DRAGON7[DEFAULT]["running"]),
        str(DRAGON7[DEFAULT]["waiting"]),
    ),
    gives(
        DRAGON_PAGE,
        "theta @ minutes, lambda @ minute; in the release @ seconds and @ minute",
        lambda: f"{Dragon().urgent_after / 60:g}",
        lambda: f"{Dragon().idle_after / 60:g}",
        lambda: f"{Dragon(reading='release').urgent_after:g}",
        lambda: f"{Dragon(reading='release').idle_after / 60:g}",
    ),
    says(
        DRAGON_PAGE,
        "an elapsed time of @ for locality, @ running and @ waiting, and of @ for DRAGON, @ "
        "running",
        *(f"{DRAGON7[LOCALITY][part]:.2f}" for part in ("elapsed", "running", "waiting")),
        *(f"{DRAGON7[DRAGON][part]:.2f}" for part in ("elapsed", "running")),
    ),
    gives(
        DRAGON_PAGE,
        "Locality's waiting is @, as published",
        lambda: f"{dragon7(LOCALITY, 'waiting'):.2f}",
    ),
    gives(
        DRAGON_PAGE,
        "runs on to @ minutes, the use is @ %, and the split @ running and @ waiting. Locality's "
        "elapsed time is then @ and DRAGON's @.",
        lambda: f"{last_end(by_model=True):.0f}",
        lambda: percent(by_model(DEFAULT, "use")),
        lambda: f"{by_model(DEFAULT, 'running'):.2f}",
        lambda: f"{by_model(DEFAULT, 'waiting'):.2f}",
        lambda: f"{by_model(LOCALITY, 'elapsed'):.2f}",
        lambda: f"{by_model(DRAGON, 'elapsed'):.2f}",
    ),
    says(
        DRAGON_PAGE,
        "they draw the restart from @ to @ s",
        *(f"{seconds:g}" for seconds in dragon.RESTART),
    ),
    says(DRAGON_PAGE, "short for the first @ jobs", word(EARLY)),
    gives(
        DRAGON_PAGE,
        "elapsed @ for locality and @ for DRAGON, published @ and @; DRAGON's utilisation @ %, "
        "published @;",
        lambda: f"{dragon7(LOCALITY, 'elapsed'):.2f}",
        lambda: f"{dragon7(DRAGON, 'elapsed'):.2f}",
        lambda: f"{DRAGON7[LOCALITY]['elapsed']:.2f}",
        lambda: f"{DRAGON7[DRAGON]['elapsed']:.2f}",
        lambda: percent(dragon7(DRAGON, "use")),
        lambda: percent(DRAGON8[DRAGON]),
    ),
    holds(
        DRAGON_PAGE,
        "more than half of the jobs are launched at once by the locality-aware scheduler, and half "
        "by DRAGON",
        lambda: dragon7(LOCALITY, "at_once") > 0.5 == dragon7(DRAGON, "at_once"),
    ),
    gives(
        DRAGON_PAGE,
        "the default scheduler uses @ % of the GPUs, published @",
        lambda: percent(dragon7(DEFAULT, "use")),
        lambda: percent(DRAGON8[DEFAULT]),
    ),
    gives(DRAGON_PAGE, "its last jobs end within @ minutes", lambda: math.ceil(last_end())),
    gives(
        DRAGON_PAGE,
        "with all of the network felt, @ running and @ waiting",
        lambda: f"{all_felt()['running']:.2f}",
        lambda: f"{all_felt()['waiting']:.2f}",
    ),
    Claim(
        DRAGON_PAGE,
        "no pair of the values from which the two calibrated numbers were chosen gives both @ % "
        "and the split",
        lambda: [percent(DRAGON8[DEFAULT])],
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
        "than the locality-aware scheduler in @ of @ draws, DRAGON as in the code in @, and as in "
        "the release in @:",
        lambda: drawn_below("dragon"),
        lambda: row("dragon-7", arrivals="drawn, minutes", policy="dragon")["seeds"],
        lambda: drawn_below("dragon (code)"),
        lambda: drawn_below("dragon (release)"),
    ),
    gives(
        DRAGON_PAGE,
        "with theta at 10 minutes instead of 2 it is ahead in @ draws, with theta at 20 minutes in "
        "all @, and with lambda at 5 minutes in @.",
        lambda: ahead(lambda: Dragon(urgent_after=600.0)),
        lambda: ahead(lambda: Dragon(urgent_after=1200.0)),
        lambda: ahead(lambda: Dragon(idle_after=300.0)),
    ),
    holds(
        DRAGON_PAGE,
        "The jobs run for about a quarter of an hour",
        lambda: all(near(minutes, 15, 5) for minutes in mean_running()),
    ),
    holds(
        DRAGON_PAGE,
        "With arrivals in seconds all jobs wait, DRAGON and the locality-aware scheduler are alike",
        lambda: near(
            *(
                row("dragon-7", arrivals="printed, seconds", policy=policy)["elapsed"]
                for policy in (DRAGON, LOCALITY)
            ),
            0.02,
        ),
    ),
    gives(
        DRAGON_PAGE,
        "the default runs a job @ to @ times as long as DRAGON; here, with arrivals as printed, @ "
        "to @.",
        lambda: str(DRAGON6[0]),
        lambda: str(DRAGON6[1]),
        lambda: f"{min(factors()):.1f}",
        lambda: f"{max(factors()):.1f}",
    ),
    holds(
        DRAGON_PAGE,
        "DRAGON's gain over locality is in the later jobs",
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
        "an intensity of @ at the shortest gap of @ s makes @ at the longest of @ s, and a job "
        "runs for @ s on average with the workers that it asks for; the first of the two figures "
        "is run with @ of that, @ s, too.",
        f"{study.INTENSITIES[-1]:g}",
        f"{study.SHORTEST_GAP:g}",
        f"{study.INTENSITIES[-1] * study.SHORTEST_GAP / study.LONGEST_GAP:.2f}",
        f"{study.LONGEST_GAP:g}",
        f"{study.mean_run():.0f}",
        f"{study.CALIBRATED:g}",
        f"{study.mean_run() * study.CALIBRATED:.0f}",
    ),
    says(DRAGON_PAGE, "are @ draws from @ to @,", "three", study.LEAST, study.MOST),
    Claim(
        DRAGON_PAGE,
        "over both rivals; with the running time as read over the locality-aware scheduler in all "
        "but one of @ runs",
        lambda: [sum(each["seeds"] for each in study_rows("dragon-9"))],
        lambda: (
            sum(each["seeds"] - each["better"] for each in study_rows("dragon-9")) == 1
            and all(r["elapsed_low"] > 0 for name in ("dragon-9", "dragon-10") for r in data(name))
        ),
    ),
    holds(
        DRAGON_PAGE,
        "what it saves in waiting becomes less as everybody waits longer; at high intensity jobs "
        "run longer under DRAGON than under the locality-aware scheduler",
        lambda: (
            study_rows("dragon-9")[0]["waiting"] > 2 * study_rows("dragon-9")[-1]["waiting"]
            and all(each["running_high"] < 0 for each in study_rows("dragon-9")[1:])
        ),
    ),
    holds(
        DRAGON_PAGE,
        "begins above an intensity of 3. With 0.3 of the running time it begins between 2.5 and 3.",
        lambda: (
            min(saved for at, saved in running_saved(0.3).items() if at <= 2.5)
            > 0
            > max(saved for at, saved in running_saved(0.3).items() if at >= 3)
        ),
    ),
    holds(
        DRAGON_PAGE,
        "with the running time as read it begins between 0.5 and 1",
        lambda: running_saved(study.AS_READ)[0.5] > 0 > running_saved(study.AS_READ)[1.0],
    ),
    Claim(
        DRAGON_PAGE,
        "saved over the default scheduler is more than on the testbed (@ published, @ here)",
        lambda: (
            f"{1 - float(DRAGON7[DRAGON]['elapsed'] or 0):.2f}",
            f"{1 - dragon7(DRAGON, 'elapsed'):.2f}",
        ),
        lambda: (
            min(each["elapsed"] for each in study_rows("dragon-10")) / 100
            > 1 - dragon7(DRAGON, "elapsed")
        ),
    ),
    says(DRAGON_PAGE, "a job of up to @ spread workers", word(study.MOST)),
]

QUEUE_CLAIMS = [
    says(
        QUEUE,
        "what its @ procedures do instead, on a scenario each, with two machines of @ GPUs",
        word(len(scenarios.SCENARIOS)),
        word(scenarios.GPUS),
    ),
    holds(QUEUE, "with two machines of four GPUs", lambda: scenarios.MACHINES == 2),
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
        "mean running time of the 100 jobs": "those of the study below",
        "of 1, 1/2, 1/3, 1/4 the one that": TRIED,
        "than the four of Table 1": "the largest of Table 1",
        "of 1, 0.5 and 0.3 of it, the one with which": TRIED,
        "of 108 combinations the one nearest to six published numbers": TRIED,
        "which of 0.02 and 0.03 is its waiting": "labels of Fig. 7",
        "under DRAGON above an intensity of 3, as printed": "section 4.3",
    },
    FLOOR: {
        "and seeds from 100 on": COMMAND,
        "has forty of every family": COMMAND,
    },
    CONTROLLERS: {
        "KOD2's four states": "tests/unit/baselines: JobState",
        "all three controllers": "the pages of figures name them",
    },
}
