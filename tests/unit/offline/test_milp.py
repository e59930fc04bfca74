"""Known optima of the compact model, its certificates and its refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import (
    Cluster,
    Constant,
    Deadline,
    Instance,
    Piecewise,
    Server,
    SolverError,
)
from oasis.solvers import Status, highs
from offline import METHODS, solve
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from tests import builders


def job(name="a", **changes):
    """Four worker-slots, at most two at once, one parameter server for every two workers."""
    given = {
        "worker": {"cpu": 1.0, "bandwidth_gbps": 1.0},
        "ps": {"cpu": 1.0, "bandwidth_gbps": 2.0},
        "utility": Piecewise((1.0, 3.0), (10.0, 4.0)),
    }
    return builders.job(name, slots=2, workers=2, **(given | changes))


def instance(*jobs, horizon=4, workers=2.0, ps=1.0):
    cluster = Cluster(
        ("cpu", "bandwidth_gbps"),
        (Server("w", {"cpu": workers, "bandwidth_gbps": 100.0}),),
        (Server("p", {"cpu": ps, "bandwidth_gbps": 100.0}),),
        slot_seconds=1.0,
    )
    return Instance(horizon, cluster, jobs)


def hard(seed=1):
    """Twenty jobs that fight for two servers over twenty slots."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(
            f"j{i}",
            arrival=int(rng.integers(12)),
            epochs=int(rng.integers(3, 9)),
            chunks=int(rng.integers(2, 6)),
            worker={"cpu": float(rng.uniform(0.5, 3)), "bandwidth_gbps": float(rng.uniform(1, 3))},
            ps={"cpu": float(rng.uniform(0.5, 3)), "bandwidth_gbps": float(rng.uniform(3, 6))},
            utility=oasis.Sigmoid(float(rng.uniform(1, 100)), 0.5, float(rng.uniform(3, 9))),
        )
        for i in range(20)
    ]
    servers = [
        tuple(Server(f"{side}{k}", {"cpu": 8.0, "bandwidth_gbps": 20.0}) for k in range(3))
        for side in "wp"
    ]
    return Instance(20, Cluster(("cpu", "bandwidth_gbps"), *servers, 1.0), tuple(jobs))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("problem", "optimum"),
    [
        (instance(job()), 10.0),  # two workers in slots 0 and 1
        (instance(job(), workers=1.0), 4.0),  # one worker at a time: slots 0 to 3
        (instance(job(), workers=1.0, horizon=3), 0.0),
        (instance(job(), job("b", utility=Constant(3.0))), 13.0),  # one after the other
        (instance(job(), job("b", utility=Deadline(11.0, 1.0))), 15.0),  # b in 0, 1, then a
        (instance(job(ps={"cpu": 1.0, "bandwidth_gbps": 1.0})), 4.0),  # b = B: a PS a worker
        (instance(job(ps={"cpu": 2.0, "bandwidth_gbps": 2.0})), 0.0),  # no room for a PS
        (instance(job(worker={"cpu": 1.0}, ps={"cpu": 2.0})), 10.0),  # needs none
        (instance(job(worker={"cpu": 0.0}, ps={})), 10.0),  # takes nothing
        (instance(job(arrival=3)), 0.0),  # too late
        (instance(job(arrival=2)), 10.0),
        (instance(job(utility=Deadline(5.0, 0.0))), 0.0),  # worthless when done
        (instance(), 0.0),
    ],
)
def test_known_optimum(problem, optimum, method):
    result = solve(problem, method)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum)
    assert result.upper_bound == pytest.approx(optimum)
    assert result.gap == pytest.approx(0, abs=1e-6)
    assert oasis.verify(problem, result) == result.objective


def test_schedules_hold_nothing_that_the_job_can_spare():
    result = solve(instance(job(epochs=3, minibatch_time=0.8), workers=9.0, ps=9.0), "milp")
    schedule = result.schedules["a"]
    assert schedule.worker_slots == 5
    assert schedule.completion == 2
    assert schedule.ps[:, 2].sum() == 3


def test_a_server_short_of_a_ten_millionth_holds_one_worker_less():
    third = job(chunks=3, epochs=1, worker={"cpu": 1.0}, ps={}, utility=Constant(1.0))
    other = replace(third, id="b", chunks=1, worker={"cpu": 1.0 + 3e-7})
    assert solve(instance(third, other, horizon=1, workers=4.0), "milp").objective == 1.0


def test_surplus_of_the_solver_is_dropped_from_the_end():
    model = CompactModel(OfflineArrays.of(instance(job(), workers=9.0, ps=9.0)))
    (names,) = model.jobs
    used = {var.name: 2.0 for (t, _), var in (*names.workers.items(), *names.ps.items()) if t < 3}
    values = dict.fromkeys((v.name for v in model.problem.variables()), 0.0) | used
    schedule = model.schedules_of(values | {names.done[2].name: 1.0})["a"]
    assert schedule.workers.tolist() == [[0, 0, 2], [1, 0, 2]]
    assert schedule.ps.tolist() == [[0, 0, 1], [1, 0, 1]]


def test_a_limited_solve_is_never_called_optimal():
    result = solve(hard(), "milp", work_limit=0.5)
    assert result.status is Status.WORK_LIMIT
    assert result.gap > 1e-6
    assert result.objective < result.upper_bound < math.inf
    assert oasis.verify(hard(), result) == result.objective


def test_the_warm_start_reaches_the_solver(monkeypatch):
    problem = instance(job(), job("b", utility=Constant(3.0)))
    known = solve(problem, "bruteforce").schedules
    starts = []
    real = highs.solve

    def spy(model, **options):
        starts.append(options["warm_start"])
        return real(model, **options)

    monkeypatch.setattr(highs, "solve", spy)
    solve(problem, "milp", warm_start=known)
    start = starts[0]
    placed = sum(value for name, value in start.items() if name.startswith("y"))
    assert placed == sum(schedule.worker_slots for schedule in known.values())
    assert sum(value for name, value in start.items() if name.startswith("u")) == 2


def claim(monkeypatch, **changes):
    """Let the solver report something else."""
    real = highs.solve

    def lie(model, **options):
        return replace(real(model, **options), **changes)

    monkeypatch.setattr(highs, "solve", lie)


NO_VALUES = {"objective": None, "values": {}}
MISPLACED = dict.fromkeys(("u_0_1", "y_0_0_0"), 1.0)


@pytest.mark.parametrize(
    ("is_warm", "said", "error"),
    [
        (True, {"status": Status.OPTIMAL, "bound": 9.0, "values": {}}, "bound 9"),
        (True, {"status": Status.TIME_LIMIT, "bound": 9.0, "values": {}}, "bound 9"),
        (False, {"bound": 9.9}, r"bound 9\.9"),  # below the solver's own schedule
        (True, {"values": {}}, "calls 0 optimal"),
        (False, {"values": MISPLACED}, "infeasible"),
        (False, {"status": Status.INFEASIBLE, **NO_VALUES}, "admitting no job"),
    ],
)
def test_what_a_solver_cannot_say_stops_the_run(monkeypatch, is_warm, said, error):
    problem = instance(job())
    known = solve(problem, "milp").schedules if is_warm else None
    claim(monkeypatch, **said)
    with pytest.raises(SolverError, match=error):
        solve(problem, "milp", warm_start=known)


def test_a_solver_that_finds_less_than_the_warm_start_in_time_gives_the_warm_start(monkeypatch):
    problem = instance(job(), job("b", utility=Deadline(11.0, 1.0)))  # one of them has to wait
    known = solve(problem, "milp").schedules
    claim(monkeypatch, status=Status.TIME_LIMIT, bound=math.inf, **NO_VALUES)
    result = solve(problem, "milp", warm_start=known)
    assert (result.objective, result.upper_bound) == (15.0, 21.0)
    assert (result.objective_by, result.bound_by) == ("warm start", "every job at its best")
    assert result.schedules == known
    assert result.status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    "said",
    [
        {"status": Status.TIME_LIMIT, "bound": math.inf, **NO_VALUES},
        {"bound": 10.0 * (1 - 5e-6)},  # within the solver's tolerance
    ],
)
def test_a_schedule_that_proves_the_bound_is_optimal_whatever_the_solver_says(monkeypatch, said):
    problem = instance(job())
    known = solve(problem, "milp").schedules
    claim(monkeypatch, **said)
    result = solve(problem, "milp", warm_start=known)
    assert result.status is Status.OPTIMAL
    assert (result.objective, result.upper_bound) == (10.0, 10.0)
