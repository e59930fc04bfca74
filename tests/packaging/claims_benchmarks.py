"""Numbers of the benchmark pages, computed from the tables of the runs (page_numbers)."""

from __future__ import annotations

import csv
from statistics import median

import numpy as np

import oasis
from tests.benchmarks.streams import calibrated
from tests.packaging.page_numbers import fixed, text_of

FOLDER = "docs/benchmarks"


def rows(name: str) -> list[dict[str, str]]:
    """A table of runs."""
    return list(csv.DictReader(text_of(f"{FOLDER}/{name}.csv").splitlines()))


def halves(cell: str) -> tuple[float, float]:
    """Median and 99th percentile."""
    middle, tail = cell.split(" / ")
    return float(middle), float(tail)


def column(name: str, key: str, number: int, **where: str) -> list[float]:
    """Medians (0) or 99th percentiles (1) of the rows of a table that begin so."""
    chosen = (
        row for row in rows(f"search/{name}") if all(row[k].startswith(v) for k, v in where.items())
    )
    return [halves(row[key])[number] for row in chosen]


# --- decisions ----------------------------------------------------------------------------------


def passes() -> tuple[str, ...]:
    """Percent of a pass over the residual tensors that a median decision takes."""
    shares = [
        100 * halves(row["quote"])[0] / float(row["one pass"]) for row in rows("search/large")
    ]
    return fixed(shares[0], 1), fixed(shares[1], 0)


def slowest_small() -> float:
    return max(column("small", "submit", 1))


def milp_ratios() -> tuple[str, str]:
    found = [halves(row["MILP"])[0] / halves(row["quote"])[0] for row in rows("search/solver")]
    return fixed(min(found), 0), fixed(max(found), 0)


def span(values: list[float], digits: int) -> tuple[str, ...]:
    """Least and most."""
    return tuple(fixed(value, digits) for value in (min(values), max(values)))


CALIBRATED, LASTING = "`calibrated`", "jobs that last"


def tails() -> list[float]:
    """Ratios of the 99th percentiles, the tuned textbook against OASiS, of the preset."""
    found = [row for row in rows("search/ratios") if row["stream"].startswith(CALIBRATED)]
    return [float(row["tuned textbook: p99"]) for row in found]


def same(values: list[float], digits: int) -> tuple[str]:
    """The number that all are, rounded."""
    (one,) = {fixed(value, digits) for value in values}
    return (one,)


def median_grows() -> float:
    """The smallest exponent of OASiS's medians."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in rows("search/growth"):
        pair = (float(row["value"]), halves(row["quote"])[0])
        groups.setdefault(row["varied"], []).append(pair)
    fits = (np.polyfit(*np.log(np.array(pairs)).T, 1)[0] for pairs in groups.values())
    return float(min(fits))


# --- how long things take -----------------------------------------------------------------------


def solves(size: str, method: str = "") -> list[dict[str, str]]:
    known = rows("solves")
    return [row for row in known if row["size"] == size and row["method"].startswith(method)]


def most_replanned() -> int:
    """The largest instance that recourse was measured on."""
    measured = rows("sizes")
    return max(int(r["jobs"]) for r in measured if (r["what"], r["who"]) == ("run", "recourse"))


def dorm_seconds(jobs: int) -> list[float]:
    return [float(row["processor (s)"]) for row in rows("dorm") if row["jobs"] == str(jobs)]


def open_of_fifty() -> float:
    """Share of the instances of fifty jobs that are not proven within minutes."""
    found = [row for row in solves("20x50x50", "Benders") if float(row["seconds each"]) >= 300]
    return sum(row["status"] != "optimal" for row in found) / len(found)


# --- offline methods ----------------------------------------------------------------------------


def gap(size: str, method: str) -> float:
    """Median gap after a minute."""
    return median(
        float(row["gap %"]) for row in solves(size, method) if row["seconds each"] == "60"
    )


def is_first(size: str, method: str) -> bool:
    others = {"Benders", "column"} - {method}
    return all(gap(size, method) < gap(size, other) for other in others)


def objectives(size: str, method: str) -> dict[str, float]:
    """Value of the best schedule after a minute, by seed."""
    found = (row for row in solves(size, method) if row["seconds each"] == "60")
    return {row["seed"]: float(row["objective"]) for row in found}


def behind_column_generation() -> bool:
    """Whether both are so at 300 slots, on every seed that all three have solved."""
    return all(
        theirs[seed] < best
        for size in ("300x50x100", "300x50x400")
        for theirs in (objectives(size, "compact"), objectives(size, "CP-SAT"))
        for seed, best in objectives(size, "column").items()
    )


def beside_oasis() -> float:
    """What these are worth as a multiple of OASiS's schedules, at most, on the first seeds."""
    found = []
    for jobs in (100, 400):
        instance = calibrated(300, 50, jobs, 51)
        run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        for method in ("compact", "CP-SAT"):
            found.append(objectives(f"300x50x{jobs}", method)["51"] / run.total_utility)
    return max(found)


# --- the simulator, Kubernetes ------------------------------------------------------------------


def most(name: str) -> int:
    return max(int(row[name]) for row in rows("kubernetes"))
