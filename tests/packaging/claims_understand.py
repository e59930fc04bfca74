"""Numbers of the pages on theory, recourse, Kubernetes and the code (page_numbers).

Most are constants and defaults: a page cannot name another one than the code uses. The pages of
figures have files of their own (claims_figures and its neighbours).
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

import oasis
from baselines.specon import WEIGHTS
from experiments.evaluation.intervals import CONFIDENCE
from experiments.figures.figure import read_csv
from experiments.figures.oasis import SERVERS
from oasis import Instance, OASiS, PriceBounds, PriceFunction, Run
from oasis.driver.driver import LONGEST_WAIT
from oasis.kubernetes.control.controller import STUCK
from oasis.kubernetes.objects.manifests import own
from oasis.model.rounding import TOLERANCE, ULPS, floor
from oasis.online.dp.lagrangian import MOST_TIED
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.recourse import RecourseParams, futures
from oasis.solvers import PROOF, TRUST
from oasis.solvers.highs import FEASIBILITY, ROW_SCALE, WIDE, WIDE_SCALE
from oasis.workloads.presets import DECAY, PRESETS
from offline import BendersParams, configuration_bound, solve
from offline.state import OUTWARD
from tests.packaging.page_numbers import ROOT, Claim, spelled, text_of

PAGES: tuple[str, ...] = (
    "CONTRIBUTING.md",
    *(
        f"docs/{name}.md"
        for name in (
            *("problem", "theory", "theory-search", "errata", "notation", "recourse", "commitment"),
            *("kubernetes", "kubernetes-install", "kubernetes-submit", "kubernetes-observe"),
            *(
                "kubernetes-operate",
                "kubernetes-tenants",
                "kubernetes-reference",
                "training",
                "architecture",
            ),
        )
    ),
)

PARAMS = BendersParams()
PROBLEM, THEORY = "docs/problem.md", "docs/theory.md"
SEARCH, ERRATA = "docs/theory-search.md", "docs/errata.md"
RECOURSE, KUBERNETES = "docs/recourse.md", "docs/kubernetes.md"
INSTALL, OPERATE = "docs/kubernetes-install.md", "docs/kubernetes-operate.md"
SUBMIT = "docs/kubernetes-submit.md"
OBSERVE = "docs/kubernetes-observe.md"
SIMULATION, TESTBED = PRESETS["paper"], PRESETS["testbed"]


def number(value: float) -> str:
    """A number as a page prints it."""
    return f"{value:g}"


def metrics_port() -> list[str]:
    """The port that the Deployment gives the controller."""
    (container,) = own()[-1]["spec"]["template"]["spec"]["containers"]
    return [number(port["containerPort"]) for port in container["ports"]]


def power(value: float) -> str:
    """The exponent of a negative power of ten."""
    exponent = round(-math.log10(value))
    assert value == float(f"1e-{exponent}")
    return str(exponent)


def word(value: float) -> str:
    """A whole number as a word."""
    assert value == int(value)
    return spelled(int(value))


def says(page: str, sentence: str, *values: str | int) -> Claim:
    """A sentence whose numbers are known when this file is read."""
    return Claim(page, sentence, lambda: values)


def holds(page: str, sentence: str, condition: Callable[[], bool]) -> Claim:
    """A sentence without numbers that is true if the condition is."""
    return Claim(page, sentence, holds=condition)


def parts(whole: float, share: float) -> bool:
    """Return whether `share` is one of this many parts of a whole."""
    return math.isclose(share, 1 / whole)


def least_log_utility() -> int:
    """How small a utility of the simulation can be at the end of the horizon, as a power of e."""
    steepest, nearest = max(high for _, high in DECAY), SIMULATION.target[0]
    utility = oasis.Sigmoid(1.0, steepest, nearest)
    return round(float(utility.log_value(SIMULATION.horizon - 1)))


def benchmark(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs/benchmarks" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def largest(name: str, column: str) -> str:
    return f"{max(int(row[column]) for row in benchmark(name)):,}"


def twins(columns: Sequence[str], *figures: str) -> bool:
    """Return whether the cluster agrees with the simulator in these columns."""
    for figure in figures:
        rows = read_csv(ROOT / "docs/figures/kubernetes" / f"{figure}.csv")
        found: dict[str, list[list[float]]] = {}
        for row in rows:
            found.setdefault(row["policy"], []).append([row[name] for name in columns])
        for live, simulated in found.values():
            pairs = zip(live, simulated, strict=True)
            if not all(a == b or math.isclose(a, b, rel_tol=1e-9) for a, b in pairs):
                return False
    return True


def promises_decide() -> bool:
    """Whether the default promise is among the best of the table, where all are together."""
    shares = {row["promised"]: float(row["all"]) for row in benchmark("promises")}
    chosen = shares[f"{futures.DEFAULT_PROMISE_SHARE:g} of what is planned"]
    return chosen > max(shares.values()) - 0.002


@cache
def worked_example() -> tuple[Instance, Run, list[list[float]], float]:
    """What the problem's page decides by hand: instance, run, prices over time, optimum."""
    instance = oasis.read(ROOT / "docs/examples/problem.json")
    gpu = PriceFunction(np.array([0.0, -np.inf]), np.log([16.0, 1.0]), 1.0)
    free = PriceFunction(np.full(2, -np.inf), np.zeros(2), 1.0)
    bounds = PriceBounds(gpu, free, normalize=True, min_utility_fraction=0.7)
    scheduler = OASiS(instance.cluster, instance.horizon, bounds)
    prices = []
    for job in instance.jobs:
        prices.append(scheduler.ledger.worker_prices[:, 0, 0].tolist())
        scheduler.submit(job)
    prices.append(scheduler.ledger.worker_prices[:, 0, 0].tolist())
    run = oasis.simulate(instance, OASiS(instance.cluster, instance.horizon, bounds))
    assert run.decisions == tuple(scheduler.decisions)
    return instance, run, prices, solve(instance, method="bruteforce").objective


def decided(name: str) -> oasis.Decision:
    return next(each for each in worked_example()[1].decisions if each.job_id == name)


def row_of_b(first: int, second: int) -> list[str]:
    """Prices of two GPUs in two slots when job B arrives, and what that comes to."""
    instance, _, prices, _ = worked_example()
    job, (one, other) = instance.jobs[1], (prices[1][first], prices[1][second])
    worth, cost = float(job.utility(second)), 2 * one + 2 * other
    return [number(value) for value in (one, other, cost, worth, worth - cost)]


def drawing_is_the_run() -> bool:
    """Whether the picture has the jobs of each slot, on the machine and on the host, and prices."""
    _, run, prices, _ = worked_example()
    shown = re.findall(r'class="(?:name|what)"[^>]*>([^<]+)<', text_of("docs/_static/problem.svg"))
    drawn = []
    for slot, price in enumerate(prices[-1]):
        workers, hosted = (
            [
                name
                for name, of_job in run.schedules.items()
                for t, _, n in rows(of_job)
                if t == slot
                for _ in range(n)
            ]
            for rows in (lambda one: one.workers, lambda one: one.ps)
        )
        drawn += [f"slot {slot}", *workers, *["free"] * (4 - len(workers)), *hosted, number(price)]
    return shown == drawn


def unused_gpu() -> float:
    """What the first slot of a GPU costs at prices that are computed from the jobs."""
    return float(OASiS.from_instance(worked_example()[0]).ledger.worker_prices[0, 0, 0])


def computed_prices() -> Run:
    instance = worked_example()[0]
    return oasis.simulate(instance, OASiS.from_instance(instance))


PROBLEM_CLAIMS = [
    holds(PROBLEM, "Jobs A, B and D on four GPUs and on a host", drawing_is_the_run),
    holds(
        PROBLEM,
        "Each job needs four worker-slots and has at most two workers at once",
        lambda: {(job.work(3600.0), job.chunks) for job in worked_example()[0].jobs} == {(4, 2)},
    ),
    *(
        Claim(
            PROBLEM,
            f"| {job.id} | @ | @",
            partial(lambda j: (j.arrival, number(j.utility(0))), job),
        )
        for job in worked_example()[0].jobs
    ),
    Claim(
        PROBLEM,
        "20 if complete in slot 1, @ in slot @, @ in slot @",
        lambda: ("17", "2", "15", "3"),
        lambda: worked_example()[0].jobs[1].utility([1, 2, 3]).tolist() == [20, 17, 15],
    ),
    Claim(
        PROBLEM,
        "with each of the four GPUs that is taken: @, @, @, @, @.",
        lambda: [
            number(price)
            for price in worked_example()[1].bounds.worker(
                np.arange(5.0)[:, None] * [1, 0], np.array([4.0, 10.0])
            )[:, 0]
        ],
    ),
    Claim(
        PROBLEM,
        "A finds every price at @. Its four worker-slots cost @. It is worth @, and gets two GPUs "
        "in slots 0 and 1, where a GPU now costs @.",
        lambda: [
            number(value)
            for value in (
                *set(worked_example()[2][0]),
                decided("A").cost,
                decided("A").utility,
                worked_example()[2][1][0],
            )
        ],
    ),
    Claim(
        PROBLEM,
        "| 0 and 1 | 4×@ = @ | @ | @ |",
        lambda: ["4", *row_of_b(0, 1)[2:]],
        lambda: row_of_b(0, 1)[:2] == ["4", "4"],
    ),
    Claim(
        PROBLEM,
        "| 1 and 2 | 2×@ + 2×@ = @ | @ | @ |",
        lambda: row_of_b(1, 2),
    ),
    Claim(
        PROBLEM,
        "| 2 and 3 | 4×@ = @ | @ | **@** |",
        lambda: ["1", *row_of_b(2, 3)[2:]],
        lambda: row_of_b(2, 3)[4] == number(decided("B").payoff),
    ),
    Claim(
        PROBLEM,
        "Now a GPU costs @ everywhere. C would cost @ and is worth @",
        lambda: [
            *map(number, set(worked_example()[2][2])),
            number(decided("C").rejection.smallest_utility),
            number(worked_example()[0].jobs[2].utility(0)),
        ],
    ),
    Claim(
        PROBLEM,
        "D costs @, is worth @, and runs in slots 2 and 3",
        lambda: [number(decided("D").cost), number(decided("D").utility)],
    ),
    Claim(
        PROBLEM,
        "earned @ + @ + @ = @.",
        lambda: [
            number(value)
            for value in (
                *(decided(name).utility for name in ("A", "B", "D")),
                worked_example()[1].total_utility,
            )
        ],
    ),
    Claim(
        PROBLEM,
        "@ + @ + @ + @ = @, the **optimum**",
        lambda: ["30", "20", "9", "50", number(worked_example()[3])],
        lambda: worked_example()[3] == 30 + 20 + 9 + 50,
    ),
    Claim(
        PROBLEM,
        "here @ / @ = @.",
        lambda: [
            number(worked_example()[3]),
            number(worked_example()[1].total_utility),
            f"{worked_example()[3] / worked_example()[1].total_utility:.3f}",
        ],
    ),
    Claim(
        PROBLEM,
        "computes lower prices, @ for an unused GPU: C is admitted, D finds no room, and the ratio "
        "is @",
        lambda: [
            f"{unused_gpu():.2f}",
            f"{worked_example()[3] / computed_prices().total_utility:.3f}",
        ],
        lambda: [made.admitted for made in computed_prices().decisions] == [True] * 3 + [False],
    ),
]


def sharing() -> Instance:
    """Two jobs that need three GPUs of the only server, which has four, in the only slot."""
    server = oasis.Server("w", {"gpu": 4})
    cluster = oasis.Cluster(("gpu",), (server,), (oasis.Server("p", {}),), slot_seconds=3600.0)
    worth = oasis.Constant(9.0)
    jobs = (oasis.Job(name, 0, 1, 1, 1, 1.0, 0.0, {"gpu": 3}, {}, worth) for name in "ab")
    return Instance(1, cluster, tuple(jobs))


THEORY_CLAIMS = [
    Claim(THEORY, "a job can be worth as little as $e^{-@}$", lambda: (-least_log_utility(),)),
    says(
        THEORY,
        "$\\varphi$ is `min_utility_fraction`, by default @;",
        number(DEFAULT_MIN_UTILITY_FRACTION),
    ),
    Claim(
        THEORY,
        "$(c-g)/w$ may be $@$ where @ workers fit",
        lambda: (repr(0.3 / 0.1), word(floor(0.3 / 0.1))),
    ),
    says(THEORY, r"forgives $10^{-@}\max(1,|x|)$", power(TOLERANCE)),
    says(THEORY, "each row may exceed its limit by $10^{-@}$", power(FEASIBILITY)),
    says(THEORY, "so rows of capacities are multiplied by @,", number(ROW_SCALE)),
    says(
        THEORY,
        "Over more than @ slots, the horizon is cut into periods of about @ slots",
        PARAMS.span,
        PARAMS.period,
    ),
    Claim(
        THEORY,
        "of two jobs worth @ that need @ GPUs each, a server with @ runs only one. The LP runs two "
        "thirds of both, which is worth @; the next section's cuts forbid that",
        lambda: ("9", "three", "four", number(round(configuration_bound(sharing()).bound, 6))),
        lambda: math.isclose(solve(sharing(), method="colgen").upper_bound, 9, rel_tol=1e-6),
    ),
    says(THEORY, "schedule and bound agree to $10^{-@}$ of", power(PROOF)),
    says(THEORY, "below a checked schedule by up to $10^{-@}$", power(TRUST)),
    says(THEORY, r"rounded outward by $@\cdot10^{-@}$", number(OUTWARD * 1e10), 10),
    holds(
        THEORY,
        "up to two billionths of the largest coefficient",
        lambda: max(WIDE / WIDE_SCALE, FEASIBILITY) <= 2e-9,
    ),
    says(
        SEARCH,
        "differ by less than $10^{-@}$ of the job's best utility and $10^{-@}$ of the cost",
        *(power(ULPS), power(TOLERANCE)),
    ),
    says(SEARCH, "costs of moves count as equal at a relative $10^{-@}$", power(TOLERANCE)),
    says(SEARCH, "looks at @ slots of a run", word(MOST_TIED)),
    says(SEARCH, "more only if @ are not enough", word(MOST_TIED)),
    says(THEORY, "differ by a relative $10^{-@}$", power(TOLERANCE)),
]

RECOURSE_CLAIMS = [
    says(RECOURSE, "@ rules decide on admission", "Three"),
    says(RECOURSE, "over `samples` futures, @ unless you say otherwise", futures.DEFAULT_SAMPLES),
    says(RECOURSE, "where the first @ agree", word(futures.EARLIEST)),
    says(
        RECOURSE,
        "worth at least @ of its planned utility",
        number(futures.DEFAULT_PROMISE_SHARE),
    ),
    holds(RECOURSE, "The share was chosen on the instances of this table", promises_decide),
    says(
        RECOURSE,
        "A future ends after @ jobs, so a decision takes @ insertions",
        futures.MOST_JOBS,
        2 * futures.DEFAULT_SAMPLES * futures.MOST_JOBS,
    ),
    says(RECOURSE, "While fewer than @ jobs are known", word(futures.ENOUGH)),
    says("docs/commitment.md", "intervals are @ % over five seeds", number(100 * CONFIDENCE)),
    Claim(
        "docs/commitment.md",
        "intervals are 95 % over @ seeds",
        lambda: [word(read_csv(ROOT / "docs/figures/commitment.csv")[0]["seeds"])],
    ),
    holds(
        "docs/commitment.md",
        "because a plan for later counts a little less than one for now (`discount`",
        lambda: 0.9 < RecourseParams().discount < 1,
    ),
    Claim(
        "docs/commitment.md",
        "RRH and SRTF waste too, because they pause jobs for better ones",
        holds=lambda: (
            {
                row["policy"]
                for row in read_csv(ROOT / "docs/figures/commitment.csv")
                if row["wasted"] > 0 and not row["policy"].startswith("recourse")
            }
            == {"rrh", "srtf"}
        ),
    ),
]


def gpu_workers_that_fit() -> list[str | int]:
    instance = oasis.generate("paper", seed=0, machines="as_printed")
    room = instance.cluster.worker_capacity[:, 0].max()
    return [sum(job.worker["gpu"] <= room for job in instance.jobs), len(instance.jobs)]


def shares_of_durations(preset: str) -> list[str]:
    """Percent of a thousand jobs that take longer than the horizon, and that can meet a target."""
    instance = oasis.generate(preset, jobs=1000, seed=0)
    shortest = np.array([job.shortest_duration(instance.slot_seconds) for job in instance.jobs])
    target = max(job.utility.target for job in instance.jobs)
    shares = (shortest > instance.horizon).mean(), (shortest <= target).mean()
    return [f"{100 * share:.1f}" for share in shares]


ERRATA_CLAIMS = [
    Claim(ERRATA, "with seed 0, @ of the @ jobs fit", gpu_workers_that_fit),
    Claim(
        ERRATA,
        "Of 1000 jobs with seed 0, @ % take longer than the horizon, and @ % can complete within",
        lambda: shares_of_durations("paper"),
    ),
    holds(
        ERRATA,
        "In the latter, all jobs can",
        lambda: shares_of_durations("calibrated") == ["0.0", "100.0"],
    ),
    Claim(
        ERRATA,
        "With the printed weights @, @ and @, a container adds at most @, so all scores together "
        "are at most @",
        lambda: [
            *(number(weight) for weight in WEIGHTS.values()),
            number(max(WEIGHTS.values())),
            number(30 * max(WEIGHTS.values())),
        ],
        lambda: 30 * max(WEIGHTS.values()) < 63 + 88 + 92 + 72,
    ),
    says(
        ERRATA,
        "Fig. 5's @ to @ servers are split into",
        sum(SERVERS[0]),
        sum(SERVERS[-1]),
    ),
    says(
        ERRATA,
        r"@ times as much, where $\alpha=\ln4=@$",
        "three",
        f"{math.log(4):.2f}",
    ),
]

KUBERNETES_CLAIMS = [
    Claim(
        INSTALL,
        "in slots of @ seconds, of which pods may take @ to start",
        lambda: [
            word(float(text_of(INSTALL).partition(f"--argument=--{flag}-seconds=")[2].split()[0]))
            for flag in ("slot", "startup")
        ],
    ),
    holds(
        INSTALL,
        "longer than its slots of two seconds allow",
        lambda: '"--slot-seconds", type=float, default=2.0' in text_of("tests/kubernetes/demo.py"),
    ),
    says(
        KUBERNETES,
        "schedulers of @ Kubernetes servers",
        word(TESTBED.worker_servers + TESTBED.ps_servers),
    ),
    says(
        KUBERNETES,
        "each policy has @ nodes of its own, @ for workers and two for parameter servers, and "
        "@ jobs",
        word(TESTBED.worker_servers + TESTBED.ps_servers),
        word(TESTBED.worker_servers),
        word(TESTBED.jobs),
    ),
    Claim(
        KUBERNETES,
        "On the cluster every policy that is shown finished as many jobs, and earned as much, as "
        "in the simulator",
        holds=lambda: (
            twins(("finished", "utility"), "fig8")
            and {row["seeds"] for row in read_csv(ROOT / "docs/figures/kubernetes/fig8.csv")} == {2}
        ),
    ),
    Claim(
        KUBERNETES,
        "at up to @ nodes and @ pods",
        lambda: (largest("kubernetes", "nodes"), largest("kubernetes", "pods")),
    ),
    Claim(OBSERVE, "serves metrics at port @", metrics_port),
    Claim(
        INSTALL,
        "You need Kubernetes @ or later",
        lambda: re.findall(
            r"^kubeVersion: '>=([\d.]+)\.0-0'$", text_of("oasis/kubernetes/chart/Chart.yaml"), re.M
        ),
    ),
    Claim(
        SUBMIT,
        "worth @ at once and @ after an hour",
        lambda: [
            number(round(float(oasis.Sigmoid(50.0, 0.001, 3600.0)(at)), 1)) for at in (0, 3600)
        ],
    ),
    Claim(
        OBSERVE,
        "the loop of the controller has not turned for @ minutes",
        lambda: [word(STUCK / 60.0)],
    ),
    Claim(
        OPERATE,
        "at the next boundary, then after @, @, @ and at most @ slots",
        lambda: (2, 4, 8, LONGEST_WAIT),
    ),
]

CLAIMS: list[Claim] = [
    *PROBLEM_CLAIMS,
    *THEORY_CLAIMS,
    *RECOURSE_CLAIMS,
    *ERRATA_CLAIMS,
    *KUBERNETES_CLAIMS,
    Claim(
        "CONTRIBUTING.md",
        "@ packages, `experiments` on `offline` and `baselines`",
        lambda: [
            word(
                len(
                    tomllib.loads(text_of("pyproject.toml"))["tool"]["setuptools"]["packages"][
                        "find"
                    ]["include"]
                )
            ).capitalize()
        ],
    ),
]

DEFINED = "the sentence makes it so"
CELL = "the cell beside it runs on these"
PAPER = "the paper's number"
REFERENCE = "year of a publication"

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {
        "mostly 150 to 600 lines; no function body over 60 lines": "a rule",
        "in its first three lines": "a rule",
    },
    PROBLEM: {
        "two workers do four in two slots": DEFINED,
        "in slots 0 and 1, where": "the picture, which is compared with the run",
        "runs in slots 2 and 3": "the picture, which is compared with the run",
        "B waits for slots 2 and 3": "the picture, which is compared with the run",
        "with each of the four GPUs": "the claim beside it",
        "20 if complete in slot 1": "the claim of the same row",
        "It is 1 at best": DEFINED,
    },
    THEORY: {
        "ours are numbered from 5 on": DEFINED,
        "`min_workers`, 1 in the paper": PAPER,
        "0.7; 0 is the printed form": DEFINED,
        "six worker-slots in two equally dear slots, with at most four workers in a slot, become "
        "4 + 2 and never 3 + 3": "tests/oracle/test_equal_is_equal.py",
        "a reference of 50 digits": "of tests/oracle/decimal_oasis.py",
        "among these schedules and 0": DEFINED,
        "is rejected and gets 0": DEFINED,
        "and $G$ to 0": DEFINED,
        "against four other searches": "their tests are in the file that is named",
        "ITOR, 1997": REFERENCE,
        "J. Computing, 2018": REFERENCE,
        "Math. Programming, 2003": REFERENCE,
        "programming.*](https://doi.org/10.1007/BFb0120690) 1974": REFERENCE,
    },
    SEARCH: {
        "(0 where that is impossible": DEFINED,
        "No cost is below 0": DEFINED,
        "Raising each count between 0 and $m_i$": DEFINED,
        "the second term is 0 outside the window": DEFINED,
        "a reference of 50 digits": "of tests/oracle/decimal_oasis.py",
    },
    ERRATA: {
        "With demands of a thousandth, ratio $10^6$": CELL,
        r"worth 1 and 7: ratio 7 against $2\ln28$.": "the test named below",
        "on a server with three": CELL,
        "it ends below $10^6$": "asserted by the cell",
        "three slots of one worker": "two chunks of one and a half worker-slots",
        "with slots 1 to $T$": PAPER,
        "with seed 0": "the claim beside it",
        "Of 1000 jobs": "the claim beside it",
        "with 30 jobs on four workers:": PAPER,
        '"the scores of Worker-1,-2,-3,-4 were 63, 88, 92, 72"': PAPER,
        "for slots 0 to $T-1$": DEFINED,
        "A deadline before the end makes it 0": DEFINED,
    },
    "docs/notation.md": {
        "counts slots 1 to $T$, the code 0 to $T-1$": DEFINED,
        "| 1 |the loop over arrivals": PAPER,
        "| 1 |best schedule; admit if the payoff is positive (l. 5–7)": PAPER,
        "| 1 |commit, reprice (l. 8–12)": PAPER,
        "| 2 |loop over completion slots": PAPER,
        "| 2, DP_COST |": PAPER,
        "| 2, COST_t |": PAPER,
    },
    RECOURSE: {"its slot 0": DEFINED, "Optimization*, 2006": REFERENCE},
    "docs/commitment.md": {
        "(`discount`, 1 to avoid that)": "the test named on the page",
        "one needs slots 0 to 2 of a GPU, the other slot 1": "tests/paper/test_recourse_loses.py",
        "by 1 + c": DEFINED,
        "With three jobs it loses": CELL,
        "Computing* 24, 1995": REFERENCE,
    },
    SUBMIT: {
        "is worth 20 whenever it ends, would take one worker 1600 seconds": "the object below",
        "can use all eight GPUs": "the object below, on two nodes of four GPUs",
    },
    OBSERVE: {
        "alert if 1": "what a metric of two values means",
    },
    INSTALL: {"in about ten minutes": "what `make help` says of it"},
    "docs/training.md": {
        "more than 40 characters": "tests/unit/kubernetes/test_frameworks.py",
        "from 0, anew": DEFINED,
        "when worker 0, where the others meet": DEFINED,
        "three workers prints its line, such as `rank 2 of 3`. Worker 2": "its variables are below",
        "Worker 2 of three prints `process 2 of 3`": "its variables are below",
        "worker 0 is the chief": DEFINED,
        "Worker 2 of three finds": "tests/packaging/test_deploy.py",
        "at most 256 KiB": "a limit of Kubernetes",
    },
}
