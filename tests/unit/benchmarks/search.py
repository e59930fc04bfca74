"""The tables of docs/benchmarks/search: ``python -m tests.unit.benchmarks.search [section ..]``.

Each section takes a minute or so; without arguments all of them run. Tables are printed, and with
``--csv docs/benchmarks/search`` written to the files that the page shows.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import oasis
from oasis import Instance, Job, OASiS
from oasis.model.rounding import FloatArray
from oasis.online.dp import best_split
from oasis.solvers import highs
from tests.benchmarks import streams
from tests.benchmarks.table import write
from tests.unit.benchmarks import milp
from tests.unit.benchmarks.replay import assert_equal, fastest, one_pass, replay
from tests.unit.benchmarks.textbook import Textbook, TunedTextbook, compile_all, tuned_split
from tests.unit.online.test_split import arbitrary_row, fits, runs, stepped_row

RIVALS = ("textbook", "tuned")


Table = tuple[str, Sequence[str], list[Sequence[object]]]  # name, columns, rows
CALIBRATED, LONG = "`calibrated`", "jobs that last to T/2"
LABELS = {"calibrated": CALIBRATED, "long": LONG}


def cell(value: object) -> str:
    """Format a number to three digits; anything else stays as it is."""
    return f"{value:#.3g}".rstrip(".") if isinstance(value, float) else str(value)


def show(table: Table, directory: Path | None) -> None:
    """Print a table in Markdown, and write it where the page reads it."""
    name, header, rows = table
    texts = [[cell(value) for value in row] for row in rows]
    lines = [f"\n### {name}\n", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in texts]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    if directory is not None:
        write(directory / f"{name}.csv", [header, *texts])


def both(values: FloatArray) -> str:
    """Median and 99th percentile."""
    if not len(values):
        return "–"
    return f"{cell(float(np.median(values)))} / {cell(float(np.percentile(values, 99)))}"


def ratios(rival: FloatArray, ours: FloatArray) -> tuple[float, float]:
    """Ratio of the medians, and of the 99th percentiles."""
    middle = float(np.median(rival) / np.median(ours))
    return middle, float(np.percentile(rival, 99) / np.percentile(ours, 99))


STREAMS = (("calibrated", 100), ("calibrated", 400), ("long", 100), ("long", 200))


def side_by_side() -> Iterator[Table]:
    """T = 300, H = K = 50: the same jobs, the same ledger."""
    times: list[Sequence[object]] = []
    compared: list[Sequence[object]] = []
    for kind, jobs in STREAMS:
        runs = [replay(streams.STREAMS[kind](300, 50, jobs, seed)) for seed in (0, 1)]
        label = f"{LABELS[kind]}, {jobs} jobs"
        sides = ("quote", "search", "commit", *RIVALS)
        for group in ("admitted", "rejected"):
            side = {name: np.concatenate([run.of(name, group) for run in runs]) for name in sides}
            values = [both(found) for found in side.values()]
            if group == "rejected":
                values[sides.index("commit")] = "–"
            times.append((label, group, len(side["quote"]), *values))
        quote, *rivals = (
            np.concatenate([run.of(name, "all") for run in runs]) for name in ("quote", *RIVALS)
        )
        compared.append((label, *(ratio for rival in rivals for ratio in ratios(rival, quote))))
    names = ("textbook", "tuned textbook")
    header = ("stream", "jobs", "count", "quote", "without explanation", "commit", *names)
    yield "times", header, times
    kinds = [f"{name}: {kind}" for name in names for kind in ("median", "p99")]
    yield "ratios", ("stream", *kinds), compared


def own_times(kind: str, horizon: int, servers: int, jobs: int, seeds: int) -> tuple[object, ...]:
    """Label of a stream, its decisions, and the times of quotes and of commits."""
    made = [streams.STREAMS[kind](horizon, servers, jobs, seed) for seed in range(seeds)]
    runs = [replay(instance, rivals=()) for instance in made]
    quote, commit = (np.concatenate([run.of(side) for run in runs]) for side in ("quote", "commit"))
    return LABELS[kind], len(quote), quote, commit


def large_cluster() -> Iterator[Table]:
    """T = 1000, H = K = 1000 against one pass over the residual tensors."""
    rows: list[Sequence[object]] = []
    for kind, jobs in (("calibrated", 60), ("long", 40)):
        label, count, quote, commit = own_times(kind, 1000, 1000, jobs, 1)
        once = one_pass(streams.STREAMS[kind](1000, 1000, jobs, 0))
        rows.append((label, count, both(quote), both(commit), once))
    yield "large", ("stream", "jobs", "quote", "commit", "one pass"), rows


def footnote() -> Iterator[Table]:
    """100 slots and 80 servers, the size for which the paper reports less than a second."""
    rows: list[Sequence[object]] = []
    for kind, jobs in (("calibrated", 100), ("calibrated", 400), ("long", 100)):
        label, count, quote, commit = own_times(kind, 100, 40, jobs, 3)
        rows.append((f"{label}, {jobs} jobs", count, both(quote), both(quote + commit)))
    yield "small", ("stream", "decisions", "quote", "submit"), rows


def solver() -> Iterator[Table]:
    """The single-job MILP, solved by HiGHS."""
    rows: list[Sequence[object]] = []
    for horizon, servers, jobs in ((50, 20, 60), (100, 40, 100), (300, 50, 100)):
        instance = streams.STREAMS["calibrated"](horizon, servers, jobs, 0)
        scheduler, rest = streams.loaded(instance, 0.3)
        found = [_against_solver(scheduler, job) for job in rest[:30]]
        proved = np.array([row for row in found if row is not None])
        quote, whole, alone, variables = proved.T
        unproved = f"{len(found) - len(proved)} of {len(found)}"
        size = f"T = {horizon}, {servers} + {servers} servers"
        times = (both(quote), both(whole), both(alone))
        rows.append((size, int(np.median(variables)), *times, unproved))
    yield (
        "solver",
        ("instance", "variables", "quote", "MILP", "its solve alone", "not proved"),
        rows,
    )


def _against_solver(scheduler: OASiS, job: Job) -> tuple[float, float, float, float] | None:
    decision, quote = fastest(lambda: scheduler.quote(job))
    solved, whole = fastest(lambda: milp.best_payoff(scheduler, job), repeats=1)
    scheduler.submit(job)
    if solved is None:
        return None
    noise = 1e-5 * max(1.0, float(job.utility(0)))  # what HiGHS is good for
    assert solved.payoff - noise <= decision.payoff <= solved.bound + noise, (decision, solved)
    return quote, whole, 1e3 * solved.solve_seconds, float(solved.variables)


Changed = Callable[[list[Job], int], list[Job]]


def _with(**changes: Callable[[int], int]) -> Changed:
    def change(jobs: list[Job], value: int) -> list[Job]:
        new = {name: of(value) for name, of in changes.items()}
        return [replace(job, **new) for job in jobs]

    return change


def growth() -> Iterator[Table]:
    """Probe jobs, one size at a time; the page fits exponents to the medians."""
    compile_all()
    base, keep = (300, 50), _with()
    sweeps: tuple[tuple[str, Sequence[int], Callable[[int], tuple[int, int]], Changed], ...] = (
        ("T", (100, 200, 400, 800, 1600), lambda x: (x, 50), keep),
        ("H + K", (50, 100, 200, 400, 800), lambda x: (300, x // 2), keep),
        ("N", (5, 10, 20, 40, 80), lambda _: base, _with(chunks=lambda x: x)),
        (
            "E, the length of the job",
            (8, 16, 32, 64, 128),
            lambda _: base,
            _with(epochs=lambda x: x),
        ),
    )
    rows: list[Sequence[object]] = []
    for name, values, size, change in sweeps:
        for value in values:
            horizon, servers = size(value)
            instance = streams.calibrated(horizon, servers, max(80, horizon * servers // 100))
            scheduler, jobs = streams.probes(instance)
            times = _probe(scheduler, change(jobs, value))
            rows.append((name, value, *(both(side) for side in times.values())))
    yield "growth", ("varied", "value", "quote", "textbook", "tuned textbook"), rows


def _probe(scheduler: OASiS, jobs: list[Job]) -> dict[str, FloatArray]:
    rivals = (Textbook.beside(scheduler), TunedTextbook.beside(scheduler))
    times = []
    for job in jobs:
        decision, quote = fastest(lambda job=job: scheduler.quote(job))
        row = [quote]
        for rival in rivals:
            answer, taken = fastest(lambda rival=rival, job=job: rival.decide(job))
            assert_equal(decision.payoff, answer.payoff, job)
            row.append(taken)
        times.append(row)
    return dict(zip(("quote", *RIVALS), np.array(times).T, strict=True))


def groups() -> Iterator[Table]:
    """10,000 servers in ten groups, and the same servers written out one by one."""
    drawn = oasis.generate(jobs=60, worker_servers=5, ps_servers=5, horizon=100)
    rows: list[Sequence[object]] = []
    for name, instance in (("in ten groups", _times(drawn, 1000, 1)), ("one by one", None)):
        chosen = _times(drawn, 1, 1000) if instance is None else instance
        run = replay(chosen, rivals=())
        ledger = streams.loaded(chosen, 1.0)[0].ledger
        start = OASiS.from_instance(chosen).ledger.nbytes
        mb = (f"{size / 1e6:.1f}" for size in (start, ledger.nbytes))
        rows.append((name, both(run.of("quote")), both(run.of("commit")), *mb))
    header = ("10,000 servers", "quote", "commit", "ledger MB, idle", "ledger MB, after 60 jobs")
    yield "groups", header, rows


def _times(instance: Instance, count: int, copies: int) -> Instance:
    """Each server `count` times as a group, and `copies` such groups."""
    cluster = instance.cluster
    parts = [
        tuple(
            replace(server, id=f"{server.id}.{k}", count=count)
            for server in group
            for k in range(copies)
        )
        for group in (cluster.worker_servers, cluster.ps_servers)
    ]
    return replace(instance, cluster=oasis.Cluster(cluster.resources, *parts, cluster.slot_seconds))


def adversarial() -> Iterator[Table]:
    """The split alone on costs without structure: 300 slots, no two of them alike, N = 50."""
    compile_all()
    share = 1 / 7.3
    kinds: dict[str, Callable[[np.random.Generator], FloatArray]] = {
        "random prices": lambda rng: stepped_row(
            rng, 50, rng.random(6), share, np.array([rng.uniform(0.1, 20)])
        ),
        "two prices, equal steps": lambda rng: stepped_row(
            rng, 50, np.array([1.0, 1.5]), share, np.array([5.0])
        ),
        "no convexity": lambda rng: arbitrary_row(rng, 50, rng.random(6)),
    }
    rows: list[Sequence[object]] = []
    for name, kind in kinds.items():
        ours, theirs = np.array([_split(kind, seed) for seed in range(60)]).T
        ratio = theirs / ours
        extremes = (f"{np.median(ratio):.1f}", f"{ratio.min():.1f}")
        rows.append((name, both(ours), both(theirs), *extremes))
    yield "split", ("costs", "split", "tuned DP", "median ratio", "worst ratio"), rows


def _split(kind: Callable[[np.random.Generator], FloatArray], seed: int) -> tuple[float, float]:
    rng = np.random.default_rng([seed, 5])
    costs = np.array([kind(rng) for _ in range(300)])
    demand = int(min(rng.integers(50, 3000), fits(costs)))
    utility = np.linspace(1, 0.9, 300) * 3e6
    found, ours = fastest(lambda: best_split(*runs(costs), utility, demand, 0.0))
    answer, theirs = fastest(lambda: tuned_split(costs, utility, demand))
    assert abs(found.payoff - answer[0]) <= 1e-9 * utility[0]
    return ours, theirs


SECTIONS = {
    "side-by-side": side_by_side,
    "large": large_cluster,
    "footnote": footnote,
    "solver": solver,
    "growth": growth,
    "groups": groups,
    "adversarial": adversarial,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", nargs="*", help=f"of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--csv", type=Path, metavar="DIRECTORY", help="write the tables here, too")
    given = parser.parse_args(arguments)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    sys.stdout.write(f"OASiS {oasis.__version__}, {versions}, {highs.version()}\n")
    for name in given.section or SECTIONS:
        for table in SECTIONS[name]():
            show(table, given.csv)


if __name__ == "__main__":
    main()
