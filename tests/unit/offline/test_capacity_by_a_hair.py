"""Capacities that are exceeded by about as much as the solver forgives: every method must agree.

`oasis.model.rounding.fits` forgives 1.001e-9 of a capacity. HiGHS forgives 1e-9 on top of a row
that is widened by that much, so that it takes for feasible what the verification refuses.
"""

import random

import numpy as np
import pulp
import pytest

import oasis
from oasis import Constant
from oasis.solvers import highs
from oasis.solvers.arrays import ArrayModel
from offline import Status, solve
from offline.model.arrays import OfflineArrays
from offline.model.capacities import Cover, fits
from offline.model.milp import CompactModel
from tests import builders
from tests.unit.benchmarks import cpsat
from tests.unit.linear import as_pulp

EXCESSES = (0.0, 0.9e-9, 1.0013e-9, 1.2e-9, 1.5e-9, 1.9e-9, 2.5e-9)
PARTS = (
    (1 / 2, 1 / 2),
    (1 / 3, 2 / 3),
    (1 / 3, 1 / 3, 1 / 3),
    (0.1, 0.2, 0.7),
    (0.314159, 0.685841),
)


def hair(excess, jobs=2, servers=1, horizon=1):
    """Jobs of which two exceed a server by `excess` of its capacity."""
    half = 0.5 * (1.0 + excess)
    made = [builders.job(f"j{k}", gpus=half, utility=Constant(1.0 + k)) for k in range(jobs)]
    return builders.instance(*made, horizon=horizon, on=builders.cluster(1.0, servers))


def drawn(seed):
    """Jobs whose demands are parts of a capacity, times 1 and a hair."""
    rng = random.Random(seed)
    capacity = {"gpu": rng.choice((1.0, 8.0, 0.3, 61.0)), "bandwidth_gbps": 10.0}
    parts, excess = rng.choice(PARTS), rng.choice(EXCESSES)
    jobs = []
    for k in range(rng.randint(2, 4)):
        worker, ps = ({"gpu": capacity["gpu"] * rng.choice(parts) * (1 + excess)} for _ in "wp")
        if rng.random() < 0.5:
            worker["bandwidth_gbps"], ps["bandwidth_gbps"] = 1.0, 2.0
        else:
            ps = {}
        utility, chunks = Constant(float(rng.randint(1, 9))), rng.randint(1, 2)
        made = builders.job(f"j{k}", workers=chunks, worker=worker, ps=ps, utility=utility)
        jobs.append(made)
    cluster = builders.cluster(servers=rng.randint(1, 2), worker=capacity, ps=capacity)
    return builders.instance(*jobs, horizon=rng.randint(1, 2), on=cluster)


def assert_agrees(instance, method):
    exact = solve(instance, "bruteforce").objective
    found = solve(instance, method, work_limit=0.2 if method == "colgen" else 2.0)
    assert oasis.verify(instance, found) == found.objective <= found.upper_bound
    assert found.upper_bound >= exact
    if method in ("milp", "benders"):
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(exact, rel=1e-6)
    for milestone in found.history:
        assert milestone.objective is None or milestone.objective <= found.objective


METHODS = ("milp", "benders", "colgen")


@pytest.mark.parametrize("excess", EXCESSES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [(2, 1, 1), (5, 2, 1), (4, 1, 2)])
def test_every_method_agrees_with_enumeration(method, excess, size):
    instance = hair(excess, *size)
    jobs, servers, slots = size
    together = 2 if excess < 1e-9 else 1
    most = sum(range(jobs, max(0, jobs - together * servers * slots), -1))
    assert solve(instance, "bruteforce").objective == most
    assert_agrees(instance, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seeds", builders.seeds(6, range(100, 500, 40)))
def test_every_method_agrees_on_parts_of_a_capacity(method, seeds):
    for seed in seeds:
        assert_agrees(drawn(seed), method)


@pytest.mark.parametrize("excess", EXCESSES)
def test_cbc_agrees_on_rows_of_whole_numbers(excess):
    """CBC forgives more than HiGHS: only rows of whole numbers tell it what does not fit."""
    instance = hair(excess, 4, 2)
    compact = CompactModel(OfflineArrays.of(instance))
    model = ArrayModel.of(compact.problem)
    for number, limit in enumerate(compact.limits()):
        pair = [1, 1, 0, 0]
        if not fits(limit.amounts, pair, limit.capacity):
            levels = Cover.within(limit.amounts, pair, limit.capacity).levels()
            columns = np.array([model.names.index(v.name) for v in limit.variables])
            pairs = [(columns[level.items], level.count) for level in levels]
            model = model.below(pairs, f"cover_{number}")
    problem = as_pulp(model)
    cbc = pulp.COIN_CMD(path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, threads=1)
    assert problem.solve(cbc) == pulp.LpStatusOptimal
    best = pytest.approx(solve(instance, "bruteforce").objective, rel=1e-6)
    assert pulp.value(problem.objective) == best
    assert highs.solve(model, presolve=False).objective == best


@pytest.mark.skipif(not cpsat.is_installed(), reason=cpsat.MISSING)
@pytest.mark.parametrize("excess", [e for e in EXCESSES if not 1e-9 < e < 1.01e-9])
def test_cpsat_agrees(excess):
    instance = hair(excess, 3, 1, 1)
    found = cpsat.solve_cpsat(instance)
    assert found.objective == solve(instance, "bruteforce").objective
