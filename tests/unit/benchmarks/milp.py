"""The best schedule of one job as a mixed-integer program, (27) with (2)-(13), solved by HiGHS.

With all other jobs fixed, capacities (4) and (5) are bounds on single variables: how many units
fit in what is left. Slots end at the last completion that counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pulp

from oasis import Job, OASiS
from oasis.model.errors import SolverError
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.online.completions import completions
from oasis.solvers import highs
from offline.model.constraints import ps_ratio


@dataclass(frozen=True)
class Solved:
    """Payoff and bound of a solve, its integer variables, and the seconds without modelling."""

    payoff: float
    bound: float
    variables: int
    solve_seconds: float


def best_payoff(scheduler: OASiS, job: Job) -> Solved | None:
    """Payoff of the best schedule, 0.0 if none is positive; None if HiGHS does not prove it."""
    ledger, cluster = scheduler.ledger, scheduler.cluster
    seconds = cluster.slot_seconds
    ends = completions(job, scheduler.horizon, seconds, scheduler.bounds.min_utility_fraction)
    counted = np.flatnonzero(ends.counted)
    if not len(counted):
        return Solved(0.0, 0.0, 0, 0.0)
    problem = pulp.LpProblem("best_schedule", pulp.LpMaximize)
    last = ends.first + int(counted[-1])
    done = {
        ends.first + k: problem.add_variable(f"u{ends.first + k}", 0, 1, pulp.LpInteger)
        for k in counted.tolist()
    }
    ratio = ps_ratio(job, job.chunks)
    objective = [float(ends.utility[t - ends.first]) * u for t, u in done.items()]
    workers_of = []
    for t in range(job.arrival, last + 1):
        groups = []
        for symbol, group, amounts in (("y", ledger.worker, job.worker), ("z", ledger.ps, job.ps)):
            demand = as_array(amounts, cluster.resources)
            room, cost = (
                group.fits(demand, np.array([t]), job.chunks),
                group.unit_cost(demand, np.array([t])),
            )
            groups.append(_units(problem, f"{symbol}{t}", room[0], cost[0], objective))
        workers, servers = groups
        problem += workers <= job.chunks * pulp.lpSum(u for slot, u in done.items() if slot >= t)
        problem += servers <= workers  # (7)
        if ratio is not None:  # (6)
            p, q, free = ratio
            problem += q * servers >= p * workers - p * free
        workers_of.append(workers)
    problem += pulp.lpSum(done.values()) <= 1
    problem += pulp.lpSum(workers_of) >= job.work(seconds) * pulp.lpSum(done.values())  # (2)
    problem += pulp.lpSum(objective)
    begin = time.perf_counter()
    try:
        solution = highs.solve(problem)
    except SolverError:
        return None
    elapsed = time.perf_counter() - begin
    payoff, bound = (max(0.0, value) for value in (solution.objective or 0.0, solution.bound))
    return Solved(payoff, bound, len(problem.variables()), elapsed)


def _units(
    problem: pulp.LpProblem,
    name: str,
    room: FloatArray,
    cost: FloatArray,
    objective: list[pulp.LpAffineExpression],
) -> pulp.LpAffineExpression:
    """One integer variable for each server with room; their costs go to the objective."""
    units = []
    for server in np.flatnonzero(room).tolist():
        limit = int(room[server])
        unit = problem.add_variable(f"{name}_{server}", 0, limit, pulp.LpInteger)
        objective.append(-float(cost[server]) * unit)
        units.append(unit)
    return pulp.lpSum(units)
