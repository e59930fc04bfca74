"""What the pages on theory, recourse, Kubernetes and the code say in numbers (page_numbers).

Most are constants and defaults: a page cannot name another one than the code uses. The pages of
figures have files of their own (claims_figures and its neighbours).
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Callable, Sequence

import oasis
from experiments.evaluation.intervals import CONFIDENCE
from experiments.figures.figure import read_csv
from experiments.figures.oasis import SERVERS
from oasis.driver.driver import LONGEST_WAIT
from oasis.kubernetes.control.budgets import TOGETHER
from oasis.kubernetes.control.controller import STUCK
from oasis.model.rounding import TOLERANCE, floor
from oasis.online.dp.worker_slots import ULPS
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.recourse import RecourseParams, futures
from oasis.solvers import PROOF, TRUST
from oasis.solvers.highs import FEASIBILITY, ROW_SCALE, WIDE, WIDE_SCALE
from oasis.workloads.presets import DECAY, PRESETS, STORAGE_GB
from offline import BendersParams, ConfigurationParams, patterns
from offline.benders import decomposition, replanning
from offline.state import OUTWARD
from tests.packaging.page_numbers import ROOT, Claim, spelled, text_of

PAGES: tuple[str, ...] = (
    "CONTRIBUTING.md",
    *(
        f"docs/{name}.md"
        for name in (
            *("theory", "theory-search", "errata", "notation", "recourse", "commitment"),
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
REPLANNING, MASTER = PARAMS.replanning, PARAMS.master
THEORY, SEARCH, ERRATA = "docs/theory.md", "docs/theory-search.md", "docs/errata.md"
RECOURSE, KUBERNETES = "docs/recourse.md", "docs/kubernetes.md"
INSTALL, OPERATE = "docs/kubernetes-install.md", "docs/kubernetes-operate.md"
TENANTS = "docs/kubernetes-tenants.md"
SIMULATION, TESTBED = PRESETS["paper"], PRESETS["testbed"]


def number(value: float) -> str:
    """As a page prints it."""
    return f"{value:g}"


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
    """Whether `share` is one of so many parts of a whole."""
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
    """Whether what the cluster gave agrees with the simulator in these columns."""
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


THEORY_CLAIMS = [
    says(THEORY, "two payoffs that differ by $10^{-@}$ of the job's utility", power(ULPS)),
    Claim(THEORY, "can be worth as little as $e^{-@}$", lambda: (-least_log_utility(),)),
    says(
        THEORY,
        "`min_utility_fraction`, by default @, as a [study] chose",
        number(DEFAULT_MIN_UTILITY_FRACTION),
    ),
    Claim(
        THEORY,
        "$(c - g)/w$ may be $@$ where @ workers fit",
        lambda: (repr(0.3 / 0.1), word(floor(0.3 / 0.1))),
    ),
    says(THEORY, r"forgives $10^{-@} \max(1, |x|)$", power(TOLERANCE)),
    says(THEORY, "lets every row exceed its limit by $10^{-@}$", power(FEASIBILITY)),
    says(THEORY, "Rows of capacities are therefore multiplied by @ for", number(ROW_SCALE)),
    says(
        THEORY,
        "It has @ seconds for that",
        word(ConfigurationParams().mix_limit),
    ),
    says(THEORY, "(together @ thousandths of what", word(1000 * patterns.LIFTING_TRACE)),
    holds(THEORY, "taken if it is at least half as deep", lambda: parts(2, PARAMS.cuts.deep)),
    says(
        THEORY,
        "with a tolerance of $10^{-@}$, HiGHS's own for mixed-integer models",
        power(WIDE),
    ),
    says(THEORY, "With $10^{-@}$, which the compact model needs", power(FEASIBILITY)),
    says(THEORY, "so the objective is multiplied by @.", number(WIDE_SCALE)),
    says(
        THEORY,
        "stops when @ tenths of the open interval are left to it",
        word(10 * decomposition.FIRST_GAP),
    ),
    Claim(THEORY, "each up to two slots later", holds=lambda: MASTER.window == 2),
    holds(THEORY, "grows by half in each round", lambda: PARAMS.shortfall.growth == 1.5),
    holds(THEORY, "After every third round", lambda: PARAMS.shortfall.patience == 3),
    says(
        THEORY,
        "costs at most @ tenths of what the plan is worth more",
        word(10 * PARAMS.shortfall.concession),
    ),
    says(
        THEORY,
        "Over a horizon of more than @ slots this holds in a window of @",
        *[REPLANNING.span] * 2,
    ),
    holds(THEORY, "gains a quarter of what is left to gain", lambda: parts(4, replanning.AMBITION)),
    holds(
        THEORY,
        "change a twentieth of the counts at most, then a tenth and a fifth",
        lambda: parts(20, REPLANNING.radius) and REPLANNING.most_radius == 4 * REPLANNING.radius,
    ),
    says(THEORY, "mixed with the best schedule over up to @ slots", REPLANNING.span),
    says(
        THEORY,
        "completions of the relaxation if there are no more than @ slots",
        REPLANNING.span,
    ),
    says(
        THEORY,
        "over more than @ slots the horizon is cut into periods of about @ slots",
        REPLANNING.span,
        PARAMS.periods.slots,
    ),
    holds(
        THEORY,
        "differ by less than a five-hundredth of the job's best",
        lambda: parts(500, PARAMS.periods.step),
    ),
    Claim(
        THEORY,
        "Where the jobs have up to @ slots to run in, over all of them",
        lambda: (MASTER.whole_size,),
    ),
    says(
        THEORY,
        "for @ tenths of the time left and a minute at most",
        word(10 * decomposition.WHOLE_SHARE),
    ),
    holds(THEORY, "of the time left and a minute at most", lambda: MASTER.whole_limit == 60),
    says(THEORY, "schedule and bound agree to $10^{-@}$ of", power(PROOF)),
    says(THEORY, "a checked schedule by up to $10^{-@}$ (`TRUST`)", power(TRUST)),
    says(THEORY, r"rounded outward by $@ \cdot 10^{-@}$", number(OUTWARD * 1e10), 10),
    holds(
        THEORY,
        "up to two billionths of the largest coefficient",
        lambda: max(WIDE / WIDE_SCALE, FEASIBILITY) <= 2e-9,
    ),
    says(SEARCH, "differ by less than $10^{-@}$ of the job's best", power(ULPS)),
]

RECOURSE_CLAIMS = [
    says(RECOURSE, "@ rules decide on admission", "Three"),
    says(RECOURSE, "over `samples` futures, @ unless you say otherwise", futures.DEFAULT_SAMPLES),
    says(RECOURSE, "where the first @ agree", word(futures.EARLIEST)),
    says(
        RECOURSE,
        "worth at least @ of what it is worth then",
        number(futures.DEFAULT_PROMISE_SHARE),
    ),
    holds(RECOURSE, "The share was chosen on the instances of this table", promises_decide),
    says(
        RECOURSE,
        "A future ends after @ jobs, and each is planned twice, so a decision takes @ insertions",
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
        "A plan for later counts a little less than one for now (`discount`)",
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

ERRATA_CLAIMS = [
    says(ERRATA, "Length of a slot (@ s here)", number(SIMULATION.slot_seconds)),
    says(ERRATA, "storage of the machines (@ GB)", number(STORAGE_GB)),
    says(
        ERRATA,
        "Fig. 5's @ to @ servers are split into",
        sum(SERVERS[0]),
        sum(SERVERS[-1]),
    ),
    says(
        ERRATA,
        r"@ times as much, where $\alpha = \ln 4 = @$",
        "three",
        f"{math.log(4):.2f}",
    ),
]

KUBERNETES_CLAIMS = [
    says(
        TENANTS,
        "a job pays @ for a quarter of the GPUs in @ hours",
        number(8 / 4),
        number(8),
    ),
    says(
        TENANTS,
        "in hundredths of the window: a payment may count for @ hundredth",
        word(100 * TOGETHER),
    ),
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
        OPERATE,
        "at up to @ nodes and @ pods",
        lambda: (largest("kubernetes", "nodes"), largest("kubernetes", "pods")),
    ),
    Claim(
        "docs/kubernetes-observe.md",
        "the loop of the controller has not turned for @ minutes",
        lambda: [word(STUCK / 60.0)],
    ),
    Claim(
        OPERATE,
        "at the next boundary, then after @, @, @ and at most @ slots",
        lambda: (2, 4, 8, LONGEST_WAIT),
    ),
    Claim(
        OPERATE,
        "A pod takes two writes, one to make it and one to open its gate",
        holds=lambda: {float(row["writes_per_pod"]) for row in benchmark("kubernetes")} == {2.0},
    ),
]

CLAIMS: list[Claim] = [
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
    },
    THEORY: {
        "A minimum above 1": DEFINED,
        "OSDI 2020) and Sia (Jayaram Subramanya and others, SOSP 2023)": REFERENCE,
        "in its slot of arrival has delay 0": DEFINED,
        "equals that of four other searches": "the table at the end names them",
        "rests on three observations": "they follow",
        "chose; 0 is the printed form": DEFINED,
        "A price is 0 where there is enough": DEFINED,
        "each needs three GPUs of a server that has four": CELL,
        "which takes exactly four GPUs": "two thirds of two times three",
        "*J. Heuristics* 4(2), 1998": REFERENCE,
        "To set one to 0 or 1": DEFINED,
        "Fischetti and Monaci 2014": REFERENCE,
        "Fischetti and Lodi 2003": REFERENCE,
        "Geoffrion 1974": REFERENCE,
        "Hence three rules": "they follow",
        "one server with 1000 GPUs, two jobs of 510 one-GPU workers": CELL,
        "is worth a million times as much": CELL,
        "and $G$ to 0": DEFINED,
        "against five others": "the sentence names them",
    },
    SEARCH: {
        "(0 where a completion is impossible": DEFINED,
        "no cost is below 0": DEFINED,
        "Raise each count between 0 and $m_i$": DEFINED,
        "the second term is 0 outside the window": DEFINED,
    },
    ERRATA: {
        "$w / c = 0.001$, two jobs, ratio $10^6$": CELL,
        r"worth 1 and 7: ratio 7 against $2 \ln 28$. With 6 in place of 7 the printed form": CELL,
        "on a server with three": CELL,
        "it ends below $10^6$": "asserted by the cell",
        "three slots of one worker": "two chunks of one and a half worker-slots",
        "with slots 1 to $T$": PAPER,
        "with 30 jobs on four workers:": PAPER,
        '"the scores of Worker-1,-2,-3,-4 were 63, 88, 92, 72"': PAPER,
        "adds at most 2 to the score of its worker, with the printed weights 2, 1.5 and 1, so that "
        "all scores together are at most 60": CELL,
        "for slots 0 to $T - 1$": DEFINED,
        "A deadline before the end makes it 0": DEFINED,
    },
    "docs/notation.md": {
        "counts slots 1 to $T$, the code 0 to $T - 1$": DEFINED,
        "| 1 | the loop over arrivals": PAPER,
        "| 1, l. 5–7 |": PAPER,
        "| 1, l. 8–12 |": PAPER,
        "| 2 | loop over completion slots": PAPER,
        "| 2, DP_COST |": PAPER,
        "| 2, COST_t |": PAPER,
        "| 1, optimality of the search": PAPER,
        "| 2, feasibility": PAPER,
        "| 4, competitive ratio": PAPER,
    },
    RECOURSE: {"Its slot 0": DEFINED, "2006); a heuristic": REFERENCE},
    "docs/commitment.md": {
        "`long` needs slots 0 to 2, `short` needs slot 1": CELL,
        "With three jobs it loses": CELL,
        "Koren and Shasha 1995": REFERENCE,
    },
    "docs/kubernetes-submit.md": {
        "can use all eight GPUs": "the object below, on two nodes of four GPUs",
    },
    "docs/kubernetes-observe.md": {
        "1 while the controller keeps the last plan": "what a metric of two values means",
    },
    "docs/architecture.md": {"20 a second as it comes": "a default of Kubernetes"},
    "docs/training.md": {
        "at most 40 characters": "tests/unit/kubernetes/test_frameworks.py",
        "from 0, anew": DEFINED,
        "is in worker 0": DEFINED,
        "three workers prints its line, such as `rank 2 of 3`. Worker 2": "its variables are below",
        "Worker 2 of three prints `process 2 of 3`": "its variables are below",
        "worker 0 is the chief": DEFINED,
        "Worker 2 of three finds": "tests/packaging/test_deploy.py",
        "at most 256 KiB": "a limit of Kubernetes",
    },
}
