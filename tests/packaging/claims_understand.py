"""Numbers of the pages on theory, recourse, Kubernetes and the code (page_numbers).

Most are constants and defaults: a page cannot name another one than the code uses.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from functools import cache

import numpy as np

import oasis
from experiments.figures.figure import Row, read_csv
from oasis import Instance, OASiS, PriceBounds, PriceFunction, Run
from oasis.kubernetes.objects.manifests import own
from oasis.online.recourse import futures
from oasis.workloads.presets import DECAY, PRESETS
from offline import BendersParams, solve
from tests.packaging.page_numbers import ROOT, text_of

PARAMS = BendersParams()
SIMULATION, TESTBED = PRESETS["paper"], PRESETS["testbed"]


def metrics_port() -> list[int]:
    """The port that the Deployment gives the controller."""
    (container,) = own()[-1]["spec"]["template"]["spec"]["containers"]
    return [port["containerPort"] for port in container["ports"]]


def power(value: float) -> str:
    """The exponent of a negative power of ten."""
    exponent = round(-math.log10(value))
    assert value == float(f"1e-{exponent}")
    return str(exponent)


def least_log_utility() -> int:
    """How small a utility of the simulation can be at the end of the horizon, as a power of e."""
    steepest, nearest = max(high for _, high in DECAY), SIMULATION.target[0]
    utility = oasis.Sigmoid(1.0, steepest, nearest)
    return round(float(utility.log_value(SIMULATION.horizon - 1)))


def benchmark(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs/benchmarks" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def commitments() -> list[dict[str, Row]]:
    """Rows of the commitments without a bonus, by policy, for each family of instances."""
    families: dict[str, dict[str, Row]] = {}
    for row in read_csv(ROOT / "docs/figures/commitment.csv"):
        if row["policy"].startswith("recourse") and "bonus" not in row["policy"]:
            families.setdefault(row["family"], {})[row["policy"]] = row
    return list(families.values())


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


def arrival_and_worth(number: int) -> tuple[int, float]:
    """Of a job of the example."""
    job = worked_example()[0].jobs[number]
    return job.arrival, float(job.utility(0))


def row_of_b(first: int, second: int) -> list[float]:
    """Prices of two GPUs in two slots when job B arrives, and what that comes to."""
    instance, _, prices, _ = worked_example()
    job, (one, other) = instance.jobs[1], (prices[1][first], prices[1][second])
    worth, cost = float(job.utility(second)), 2 * one + 2 * other
    return [one, other, cost, worth, worth - cost]


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
        drawn += [f"slot {slot}", *workers, *["free"] * (4 - len(workers)), *hosted, f"{price:g}"]
    return shown == drawn


def unused_gpu() -> float:
    """What the first slot of a GPU costs at prices that are computed from the jobs."""
    return float(OASiS.from_instance(worked_example()[0]).ledger.worker_prices[0, 0, 0])


def guarantee() -> tuple[float, float, float, float]:
    """Of the example at computed prices: what OASiS earned, G, the bound, and the optimum."""
    instance, _, _, optimum = worked_example()
    run = computed_prices()
    certificate = oasis.certify(instance, run)
    assert isinstance(certificate, oasis.Certificate)
    bound = round(certificate.upper_bound, 1)
    return run.total_utility, certificate.payoff_gap, bound, optimum


def computed_prices() -> Run:
    instance = worked_example()[0]
    return oasis.simulate(instance, OASiS.from_instance(instance))


def sharing() -> Instance:
    """Two jobs that need three GPUs of the only server, which has four, in the only slot."""
    server = oasis.Server("w", {"gpu": 4})
    cluster = oasis.Cluster(("gpu",), (server,), (oasis.Server("p", {}),), slot_seconds=3600.0)
    worth = oasis.Constant(9.0)
    jobs = (oasis.Job(name, 0, 1, 1, 1, 1.0, 0.0, {"gpu": 3}, {}, worth) for name in "ab")
    return Instance(1, cluster, tuple(jobs))


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
