"""Print the tables of docs/benchmarks/search: ``python -m tests.benchmarks.search [section ..]``.

Each section takes a minute or so; without arguments all of them run.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

import oasis
from oasis import Instance, Job, OASiS
from oasis.model.rounding import FloatArray
from oasis.online.dp import best_split
from oasis.solvers import highs
from tests.benchmarks import milp, streams
from tests.benchmarks.replay import Replay, assert_equal, fastest, one_pass, replay
from tests.benchmarks.textbook import Textbook, TunedTextbook, compile_all, tuned_split
from tests.oracle.test_split import arbitrary_row, fits, runs, stepped_row

RIVALS = ("textbook", "tuned")


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table on standard output, numbers to three digits."""

    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = [f"\n### {title}\n", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def both(values: FloatArray) -> str:
    """Median and 99th percentile."""
    return f"{np.median(values):.2f} / {np.percentile(values, 99):.2f}" if len(values) else "–"


def ratios(rival: FloatArray, ours: FloatArray) -> tuple[float, float, float]:
    """Ratio of the medians, of the 99th percentiles, and the median of the ratios by job."""
    middle = float(np.median(rival) / np.median(ours))
    tail = float(np.percentile(rival, 99) / np.percentile(ours, 99))
    return middle, tail, float(np.median(rival / ours))


STREAMS = (("calibrated", 100), ("calibrated", 400), ("long", 100), ("long", 200))


def side_by_side() -> None:
    """T = 300, H = K = 50: the same jobs, the same ledger."""
    times, compared = [], []
    for kind, jobs in STREAMS:
        runs = [replay(streams.STREAMS[kind](300, 50, jobs, seed)) for seed in (0, 1)]
        for group in ("all", "admitted", "rejected"):
            side = {
                name: np.concatenate([run.of(name, group) for run in runs])
                for name in ("quote", "search", "commit", *RIVALS)
            }
            label = f"{kind}, {jobs} jobs"
            count = len(side["quote"])
            times.append((label, group, count, *(both(values) for values in side.values())))
            for ours in ("quote", "search"):
                found = [ratios(side[rival], side[ours]) for rival in RIVALS]
                cells = [f"{x:.1f} / {y:.1f} / {z:.1f}" for x, y, z in found]
                compared.append((label, group, ours, *cells))
    table(
        "T = 300, H = K = 50: milliseconds, median / p99",
        ("stream", "jobs", "count", "quote", "without explanation", "commit", *RIVALS),
        times,
    )
    table(
        "Times faster: ratio of medians / of p99 / median ratio by job",
        ("stream", "jobs", "of", *RIVALS),
        compared,
    )


def large_cluster() -> None:
    """T = 1000, H = K = 1000 against one pass over the residual tensors."""
    rows = []
    for kind, jobs in (("calibrated", 60), ("long", 40)):
        instance = streams.STREAMS[kind](1000, 1000, jobs, 0)
        run, once = replay(instance, rivals=()), one_pass(instance)
        quote, commit = run.of("quote"), run.of("commit")
        share = float(np.median(quote) / once)
        rows.append((kind, len(quote), both(quote), both(commit), once, share))
    header = ("stream", "jobs", "quote", "commit", "one pass", "median quote / one pass")
    table("T = 1000, H = K = 1000: milliseconds, median / p99", header, rows)


def footnote() -> None:
    """100 slots and 80 servers, the size for which the paper reports less than a second."""
    rows = []
    for kind, jobs in (("calibrated", 100), ("calibrated", 400), ("long", 100)):
        runs = [replay(streams.STREAMS[kind](100, 40, jobs, s), rivals=()) for s in (0, 1, 2)]
        quote, commit = (np.concatenate([r.of(side) for r in runs]) for side in ("quote", "commit"))
        rows.append((kind, len(quote), both(quote), both(commit), both(quote + commit)))
    header = ("stream", "decisions", "quote", "commit", "submit")
    table("100 slots, 80 servers: milliseconds, median / p99", header, rows)


def solver() -> None:
    """The single-job MILP, solved by HiGHS."""
    rows = []
    for kind, horizon, servers, jobs in (
        ("calibrated", 50, 20, 60),
        ("calibrated", 100, 40, 100),
        ("calibrated", 300, 50, 100),
    ):
        scheduler, rest = streams.loaded(streams.STREAMS[kind](horizon, servers, jobs, 0), 0.3)
        found = [_against_solver(scheduler, job) for job in rest[:30]]
        proved = np.array([row for row in found if row is not None])
        quote, whole, alone, variables = proved.T
        size = f"{horizon}, {servers} + {servers}"
        ratio = float(np.median(whole) / np.median(quote))
        unproved = f"{len(found) - len(proved)} of {len(found)}"
        sizes = (kind, size, int(np.median(variables)))
        rows.append((*sizes, both(quote), both(whole), both(alone), ratio, unproved))
    table(
        f"Single-job MILP, {highs.version()}: milliseconds, median / p99",
        ("stream", "T, H + K", "variables", "quote", "MILP", "its solve", "ratio", "not proved"),
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


def growth() -> None:
    """Probe jobs, one size at a time; exponents of the medians by least squares in logarithms."""
    compile_all()
    base, keep = (300, 50), _with()
    sweeps: tuple[tuple[str, Sequence[int], Callable[[int], tuple[int, int]], Changed], ...] = (
        ("T", (100, 200, 400, 800, 1600), lambda x: (x, 50), keep),
        ("H + K", (50, 100, 200, 400, 800), lambda x: (300, x // 2), keep),
        ("N", (5, 10, 20, 40, 80), lambda _: base, _with(chunks=lambda x: x)),
        ("length", (8, 16, 32, 64, 128), lambda _: base, _with(epochs=lambda x: x)),
    )
    rows, fits = [], []
    for name, values, size, change in sweeps:
        medians: dict[str, list[float]] = {side: [] for side in ("quote", *RIVALS)}
        for value in values:
            horizon, servers = size(value)
            instance = streams.calibrated(horizon, servers, max(80, horizon * servers // 100))
            scheduler, jobs = streams.probes(instance)
            times = _probe(scheduler, change(jobs, value))
            rows.append((name, value, *(both(side) for side in times.values())))
            for side, found in times.items():
                medians[side].append(float(np.median(found)))
        slopes = [np.polyfit(np.log(values), np.log(medians[side]), 1)[0] for side in medians]
        fits.append((name, *(f"{slope:.2f}" for slope in slopes)))
    header = ("varied", "value", "quote", *RIVALS)
    table("Growth: milliseconds, median / p99", header, rows)
    table("Growth: exponents of the median", ("in", "quote", *RIVALS), fits)


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


def groups() -> None:
    """10,000 servers in ten groups, and the same servers written out one by one."""
    drawn = oasis.generate(jobs=60, worker_servers=5, ps_servers=5, horizon=100)
    rows = []
    for name, instance in (("ten groups", _times(drawn, 1000, 1)), ("one by one", None)):
        chosen = _times(drawn, 1, 1000) if instance is None else instance
        run = replay(chosen, rivals=())
        ledger = _final(chosen).ledger
        start = OASiS.from_instance(chosen).ledger.nbytes
        mb = (f"{size / 1e6:.1f}" for size in (start, ledger.nbytes))
        rows.append((name, both(run.of("quote")), both(run.of("commit")), *mb))
    header = ("10,000 servers, T = 100", "quote", "commit", "ledger MB, idle", "after 60 jobs")
    table("Identical servers: milliseconds, median / p99", header, rows)


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


def _final(instance: Instance) -> OASiS:
    scheduler = OASiS.from_instance(instance)
    for job in instance.jobs_by_arrival():
        scheduler.submit(job)
    return scheduler


def explanation() -> None:
    """What the explanation of a rejection adds, and what a commit adds."""
    rows = []
    for kind, jobs in (("calibrated", 400), ("long", 200)):
        run: Replay = replay(streams.STREAMS[kind](300, 50, jobs, 0), rivals=())
        quote, search = run.of("quote", "rejected"), run.of("search", "rejected")
        admitted = np.median(run.of("quote", "admitted"))
        rows.append((kind, len(quote), both(quote), both(search), float(admitted)))
    header = ("stream", "rejections", "quote", "without explanation", "admitted, median")
    table("Rejected jobs, T = 300, H = K = 50: milliseconds, median / p99", header, rows)


def adversarial() -> None:
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
    rows = []
    for name, kind in kinds.items():
        ours, theirs = np.array([_split(kind, seed) for seed in range(60)]).T
        ratio = theirs / ours
        extremes = (float(np.median(ratio)), float(ratio.min()))
        rows.append((name, both(ours), both(theirs), *extremes))
    header = ("costs", "split", "tuned DP", "median ratio", "worst ratio")
    table("Split alone, 300 distinct slots: milliseconds, median / p99", header, rows)


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
    "explanation": explanation,
    "adversarial": adversarial,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", nargs="*", help=f"of {', '.join(SECTIONS)}; default: all")
    chosen = parser.parse_args(arguments).section or list(SECTIONS)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    sys.stdout.write(f"OASiS {oasis.__version__}, {versions}\n")
    for name in chosen:
        SECTIONS[name]()


if __name__ == "__main__":
    main()
