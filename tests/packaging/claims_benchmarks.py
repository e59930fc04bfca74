"""Numbers of the benchmark pages, computed from the tables of the runs (page_numbers)."""

from __future__ import annotations

import csv
from statistics import median

import numpy as np

import oasis
from offline.params import BendersParams
from offline.solve import METHOD_BY_NAME
from tests.benchmarks import dorm, simulator_speed, sizes, whole_numbers
from tests.benchmarks.streams import calibrated
from tests.kubernetes.benchmarks import processor, scale
from tests.packaging.claims_use import has
from tests.packaging.page_numbers import Claim, fixed, spelled, text_of

FOLDER = "docs/benchmarks"
INDEX, SEARCH, OFFLINE = (f"{FOLDER}/{name}.md" for name in ("index", "search", "offline"))
SIMULATOR, KUBERNETES = (f"{FOLDER}/{name}.md" for name in ("simulator", "kubernetes"))
LONG = "docs/how-long.md"
PAGES: tuple[str, ...] = (INDEX, SEARCH, OFFLINE, SIMULATOR, KUBERNETES, LONG)


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


# sentences on how the runs were made, their numbers, and where the programs have them
SETTINGS = (
    ("numba at T = @, H = K = @.", ("300", "50"), "search", r"\(300, 50, jobs, seed\)"),
    ("p99 at T = @ and H = K = @;", ("300", "50"), "search", r"for seed in \(0, 1\)"),
    ("| T = @, H = K = @: median", ("1000", "1000"), "search", r"\(1000, 1000, jobs, 0\)"),
    ("T = @ and H = K = @, 100 slots", ("1000", "1000"), "search", r"\(1000, 1000, jobs, 0\)"),
    ("| @ slots, @ servers: p99", ("100", "80"), "search", r"\(100, 40, jobs, s\)"),
    ("@ slots and @ servers, and", ("100", "80"), "search", r"\(100, 40, jobs, s\)"),
    ("| with @ distinct slots", ("300",), "search", r"for _ in range\(300\)"),
    (
        "alone with @ distinct slots and N = @:",
        ("300", "50"),
        "search",
        r"stepped_row\(\s+rng, 50,",
    ),
    ("and @ servers at T = @:", ("10,000", "100"), "search", r"worker_servers=5.*horizon=100"),
    ("$10^{-@}$ of what the job is worth (HiGHS", ("9",), "replay", r"noise = 1e-9"),
    ("(HiGHS: $10^{-@}$)", ("5",), "search", r"noise = 1e-5"),
)


def setting(sentence: str, numbers: tuple[str, ...], program: str, pattern: str) -> Claim:
    """A sentence on how runs are made: the program does so."""
    path = f"tests/benchmarks/{program}.py"
    return Claim(SEARCH, sentence, lambda: numbers, lambda: has(path, pattern))


DECISIONS = [
    Claim(SEARCH, "| @ % of a pass (`calibrated`), @ % (long jobs)", passes),
    Claim(
        SEARCH,
        "p99 below @ ms, with the commit | @ ms |",
        lambda: ("10", fixed(slowest_small(), 1)),
        lambda: slowest_small() < 10,
    ),
    Claim(SEARCH, "MILP, medians | @ to @ |", milp_ratios),
    Claim(
        SEARCH,
        "NumPy calls take @ ms.",
        lambda: same(
            column("times", "without explanation", 0, stream=CALIBRATED, jobs="admitted"), 1
        ),
    ),
    Claim(
        SEARCH,
        "needs @ ms for `calibrated` jobs",
        lambda: same(column("times", "tuned textbook", 0, stream=CALIBRATED, jobs="admitted"), 1),
    ),
    Claim(SEARCH, "its p99 is @ to @ times slower", lambda: span(tails(), 1)),
    Claim(
        SEARCH,
        "the search takes @ ms of the @ to @ ms",
        lambda: (
            *same(column("times", "without explanation", 0, stream=CALIBRATED, jobs="rej"), 1),
            *span(column("times", "quote", 0, stream=CALIBRATED, jobs="rejected"), 1),
        ),
    ),
    Claim(
        SEARCH,
        "is @ to @ times faster than the tuned DP",
        lambda: span([float(row["median ratio"]) for row in rows("search/split")], 0),
    ),
    Claim(
        SEARCH,
        "small jobs take up to @ times as long",
        lambda: (fixed(1 / min(float(row["worst ratio"]) for row in rows("search/split")), 1),),
    ),
    Claim(
        SEARCH,
        "their p99 is @ to @ ms",
        lambda: span(column("times", "quote", 1, stream=LASTING, jobs="admitted"), 0),
    ),
    *(setting(*each) for each in SETTINGS),
]

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


TIMES = [
    Claim(
        LONG,
        "so @ thousand machines of @ kinds cost [little more than",
        lambda: ("ten", "ten"),
        lambda: halves(rows("search/groups")[0]["quote"])[0] < 2 * column("small", "quote", 0)[0],
    ),
    Claim(LONG, "and was measured up to @ jobs", lambda: (most_replanned(),)),
    Claim(
        LONG,
        "of @ jobs take tens of seconds",
        lambda: ("100",),
        lambda: 10 <= median(dorm_seconds(100)) < 100,
    ),
    Claim(LONG, "or after @ units of work", lambda: (f"{sizes.WORK:g}",)),
    Claim(
        LONG,
        "A dozen jobs that compete are proven in seconds",
        holds=lambda: (
            len(oasis.generate("testbed", seed=0).jobs) == 12
            and all(float(row["seconds"]) < 10 for row in solves("testbed", "decomposition"))
        ),
    ),
    Claim(LONG, "fifty often not in minutes", holds=lambda: open_of_fifty() > 0.5),
    Claim(
        LONG,
        "rigid jobs on @ servers with @ GPUs",
        lambda: ("16", "8"),
        lambda: has("tests/benchmarks/sizes.py", "trace, servers=16, gpus_per_server=8"),
    ),
    Claim(
        LONG,
        "has ten thousand jobs of a real trace",
        holds=lambda: {row["jobs"] for row in rows("simulator")} >= {"10000"},
    ),
    Claim(
        LONG,
        "The time of one decision of OASiS",
        holds=lambda: median_grows() > 0,
    ),
]


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


METHODS = [
    Claim(
        OFFLINE,
        "You will know which method of `oasis solve`",
        holds=lambda: all(f"| `{name}` |" in text_of(OFFLINE) for name in METHOD_BY_NAME),
    ),
    Claim(
        OFFLINE,
        "all jobs together have at most @ slots",
        lambda: (BendersParams().whole_size,),
    ),
    Claim(
        OFFLINE,
        """At @ slots and @ jobs the decomposition has the smaller median gap after @ s; at @ jobs
        column generation has.""",
        lambda: ("300", "100", "60", "400"),
        lambda: is_first("300x50x100", "Benders") and is_first("300x50x400", "column"),
    ),
    Claim(
        OFFLINE,
        """At @ slots the best schedules of the compact model and of CP-SAT after @ s are worth less
        than those of column generation on every seed of the table: about what OASiS's are worth""",
        lambda: ("300", "60"),
        lambda: behind_column_generation() and beside_oasis() < 1.01,
    ),
    Claim(OFFLINE, "are multiplied by 2<sup>@</sup>", lambda: (whole_numbers.BITS,)),
]


# --- the simulator, Kubernetes ------------------------------------------------------------------

RUNS = [
    Claim(
        SIMULATOR,
        "slices of @ jobs of the Philly trace (at most @ GPUs each,",
        lambda: ("10,000", "8"),
        lambda: (
            max(int(row["jobs"]) for row in rows("simulator") if "from" in row["jobs of"]) == 10000
        ),
    ),
    Claim(
        SIMULATOR,
        "on @ GPUs as @ x @,",
        lambda: ("64", "8", "8"),
        lambda: simulator_speed.SERVERS == {"pooled": [64], "whole": [8] * 8},
    ),
    Claim(
        SIMULATOR,
        "with @ + @ servers and @ slots",
        lambda: (dorm.SERVERS, dorm.SERVERS, dorm.SLOTS),
    ),
    Claim(
        SIMULATOR,
        "Most of these MILPs decide on some of the jobs only",
        holds=lambda: (
            2 * sum(int(row["saw some of the jobs"]) for row in rows("dorm"))
            > sum(int(row["MILPs"]) for row in rows("dorm"))
        ),
    ),
    Claim(KUBERNETES, "Gangs of @ workers", lambda: (spelled(scale.GANG),)),
    Claim(KUBERNETES, "run with nice @", lambda: (processor.LAST,)),
    Claim(KUBERNETES, "sends @ requests per second", lambda: (scale.TIMING.scheduler_requests,)),
    Claim(KUBERNETES, "each pod on all @ nodes", lambda: (f"{most('nodes'):,}",)),
    Claim(
        INDEX,
        "at @ nodes and @ pods",
        lambda: (f"{most('nodes'):,}", f"{most('pods'):,}"),
    ),
]


def most(name: str) -> int:
    return max(int(row[name]) for row in rows("kubernetes"))


CLAIMS: list[Claim] = [*DECISIONS, *TIMES, *METHODS, *RUNS]

HISTORY = "how the runs were made: no run can show it"
# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    SEARCH: {
        "A ratio of 2 means": "what a ratio is",
        "last 1 .. T/2 slots or more": "the definition in streams.long_jobs",
        "targets of 1 .. 2 times": "the definition in streams.long_jobs",
        "Python 3.11.7, NumPy 2.4.6, HiGHS 1.15.1, two shared x86-64": HISTORY,
    },
    OFFLINE: {
        "up to about a hundred jobs and a hundred slots": "advice",
        "hundreds of jobs, hundreds of slots": "advice",
        "its row at 20x50x50": "a name",
        "a version with five more searches": "whose code is gone",
    },
}
