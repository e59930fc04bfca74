"""Numbers of the pages of the floor, controllers, DRAGON and the autoscaler (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

import math
from functools import cache

from experiments.figures import dragon
from experiments.figures.dragon import BY_MODEL, DEFAULT, LOCALITY, measure, table1
from experiments.figures.dragon import FIG7 as DRAGON7
from experiments.figures.dragon import FIG8 as DRAGON8
from experiments.figures.figure import Row
from experiments.figures.studies import FLOORS
from tests.packaging.figure_rows import data, near, row, rows

MINUTES = "printed, minutes"

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


PHILLY = "philly/controllers"


def elastic_row(policy: str, load: float = 2, name: str = "controllers") -> Row:
    return row(name, policy=policy, load=load)


def by_share(load: float, name: str = "controllers") -> list[str]:
    """All policies, that which earns the largest part of the bound first."""
    found = sorted(rows(name, load=load), key=lambda each: -each["of_bound"])
    return [each["policy"] for each in found]


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


def study_rows(figure: str, share: float = dragon.AS_READ) -> list[Row]:
    """Rows of one mean running time."""
    return [each for each in data(figure) if each["share"] == share]


def running_saved(share: float) -> dict[float, float]:
    """Running time that DRAGON saves over the locality-aware scheduler, by intensity."""
    return {each["intensity"]: each["running"] for each in study_rows("dragon-9", share)}


def by_model(policy: str, column: str) -> float:
    return float(row("dragon-7", arrivals=BY_MODEL, policy=policy)[column])


def drawn_below(policy: str) -> int:
    return int(row("dragon-7", arrivals="drawn, minutes", policy=policy)["below_locality"])


def beside(policy: str, part: str, within: float) -> list[str]:
    """A part of the elapsed time as published and here, which are as near as this."""
    both = float(DRAGON7[policy][part] or 0), dragon7(policy, part)
    assert near(*both, within)
    return [f"{value:.2f}" for value in both]
