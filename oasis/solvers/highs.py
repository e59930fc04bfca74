"""HiGHS, through highspy: one call for linear and mixed-integer programs, of PuLP or as arrays.

It reads HiGHS's own model status. PuLP's ``LpStatus`` says "Optimal" for a solve that ran out of
time, and its HiGHS interface negates the objective to maximise, so that the bound comes back with
the wrong sign; here PuLP only carries the model, and HiGHS is told to maximise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pulp

from oasis.model.errors import InputError
from oasis.solvers import Solution, SolveProgress, Status
from oasis.solvers.answers import (
    accept,
    bound_correction,
    check_proof,
    is_closed,
    objective_scale,
    solution_of,
    translate,
)
from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget
from oasis.solvers.running import Exchange, RunningSolve

# HiGHS 1.15.1 (and 1.12 and 1.13.1) proves false optima on the compact model (1)-(13) with presolve
# rule 12 (bit 12 = 4096), and on masters of the decomposition with forbidden counts with rule 13
# (8192). tests/unit/offline/test_milp_agreement.py keeps watch.
PRESOLVE_RULE_OFF = 4096 + 8192

# HiGHS's default would let a server that is short of a millionth of a worker take it.
FEASIBILITY = 1e-9

# HiGHS's default for mixed-integer models, for relaxations: what it forgives makes them a little
# wider, and their bounds stay bounds. With 1e-9, HiGHS 1.15.1 proves false optima on large masters
# of the decomposition, below plans that are known.
# HiGHS also drops solutions that are better by less than this in its objective. With the objective
# multiplied by `WIDE_SCALE`, that is about a billionth of the largest cost.
WIDE = 1e-6
WIDE_SCALE = 1024.0

# Capacities are widened by 1.001e-9 for what rounding may add. What HiGHS forgives on top must be
# far less, or it calls feasible in one part of its work what it refuses in another. Rows of
# capacities are therefore multiplied by this (`row_scale` of `solve`); a power of two changes no
# digit. CBC, which gets the same models for comparison, errs on such rows.
ROW_SCALE = 1024.0

ROUNDING = 1e-6  # by which a solution of HiGHS may miss the limits of a variable

NO_NODE_LIMIT = 2**31 - 1  # HiGHS's own default

# Work of one solve, and between two of HiGHS's checks whether it should stop, which come at the
# same points of the same solve however busy the machine is; in units of about a second, measured.
SOLVE_WORK, SOLVE_WORK_PER_ENTRY = 2e-3, 2e-5
CHECK_WORK, CHECK_WORK_PER_ENTRY = 1e-3, 6e-7


def solve(
    problem: pulp.LpProblem | ArrayModel,
    *,
    budget: Budget | None = None,
    node_limit: int | None = None,
    gap: float = 0.0,
    is_whole_problem: bool = False,
    warm_start: Mapping[str, float] | None = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
    presolve: bool = True,
    proof: bool = True,
    seed: int = 0,
    is_relaxation: bool = False,
    row_scale: float = 1.0,
    exchange: Exchange | None = None,
) -> Solution:
    """Solve a model with HiGHS, to a gap of zero unless another one is given.

    One thread and a fixed seed: a solve that ends before its time limit gives the same solution
    every time. Ctrl-C ends the solve, not the program: the result then says `INTERRUPTED` and
    holds the best solution and bound so far; a second Ctrl-C raises. HiGHS does not listen in
    parts of its work; after two seconds it is left to itself, and the result has the bound alone.

    Parameters
    ----------
    problem : pulp.LpProblem or ArrayModel
        Linear or mixed-integer; it is not modified.
    budget : Budget, optional
        What may be spent, in seconds or in work; the work done is charged to it.
    node_limit : int, optional
        Nodes of the branch-and-bound tree, at least 1; unlike seconds, it stops every run of a
        model at the same solution.
    gap : float
        Difference of bound and solution at which to stop, in units of the objective.
    is_whole_problem : bool
        Whether the model is the whole problem of the budget, so that its solutions and bounds
        meet the criteria of that (`oasis.solvers.budget`): HiGHS then stops at their gap, and,
        where the budget counts work, when it has not improved anything for so long.
    warm_start : mapping of str to float, optional
        Value of each variable by name, 0 where left out; an infeasible one is ignored.
    on_progress : callable, optional
        Called in the calling thread, about ten times a second; what it raises ends the solve.
    presolve : bool
        Whether HiGHS may simplify the model first. False is for cross-checks.
    proof : bool
        Whether an optimal solution must agree with its bound. HiGHS knows when no value lies
        between the two and stops; False accepts that, for callers that only use the bound.
    seed : int
        HiGHS's random seed.
    is_relaxation : bool
        Whether solutions need not be exact: rows and whole numbers may be missed by `WIDE` instead
        of `FEASIBILITY`, and the objective is multiplied by `WIDE_SCALE`.
    row_scale : float
        What rows with coefficients that are no whole numbers are multiplied by. HiGHS lets every
        row exceed its limit by 1e-9: the larger the row, the less that is of it.
    exchange : Exchange, optional
        Gives solutions while HiGHS runs, and takes those that it finds.

    Raises
    ------
    SolverError
        If HiGHS fails, or calls a solve optimal whose bound and solution disagree.
    """
    run = start(
        problem,
        budget=budget,
        node_limit=node_limit,
        gap=gap,
        is_whole_problem=is_whole_problem,
        warm_start=warm_start,
        presolve=presolve,
        proof=proof,
        seed=seed,
        is_relaxation=is_relaxation,
        row_scale=row_scale,
        exchange=exchange,
    )
    return run.finish(on_progress)


def start(
    problem: pulp.LpProblem | ArrayModel,
    *,
    budget: Budget | None = None,
    node_limit: int | None = None,
    gap: float = 0.0,
    is_whole_problem: bool = False,
    warm_start: Mapping[str, float] | None = None,
    presolve: bool = True,
    proof: bool = True,
    seed: int = 0,
    is_relaxation: bool = False,
    row_scale: float = 1.0,
    exchange: Exchange | None = None,
) -> RunningSolve:
    """Start a `solve` in a thread and return at once; meanwhile the model may be changed."""
    budget = Budget() if budget is None else budget
    model = problem if isinstance(problem, ArrayModel) else ArrayModel.of(problem)
    names = model.names
    # HiGHS's tolerances are absolute, so the size of the costs decides how exact its answer is.
    scale = objective_scale(model) * (WIDE_SCALE if is_relaxation else 1.0)
    # A limit in seconds would end a repeatable solve at another point each time.
    highs = new_solver(None if budget.is_repeatable else budget.left, node_limit, presolve, seed)
    if is_relaxation:
        forgive(highs, WIDE)
    share = budget.stopping.gap if is_whole_problem else 0.0
    accept(highs.setOptionValue("mip_abs_gap", gap * scale), "refused the gap")
    accept(highs.setOptionValue("mip_rel_gap", share), "refused the gap")
    lp = translate(model, scale, row_scale)
    accept(highs.passModel(lp), "refused the model")
    if warm_start is not None:
        values = np.array([warm_start.get(name, 0.0) for name in names])
        # Values from another solve miss the limits by rounding; HiGHS refuses a start that does.
        within = np.clip(values, model.lower, model.upper)
        if np.allclose(values, within, rtol=0.0, atol=ROUNDING):  # HiGHS refuses it otherwise
            columns = np.arange(len(names), dtype=np.int32)
            accept(highs.setSolution(len(names), columns, within), "refused the warm start")
    is_mip = bool(model.is_whole.any())
    worst = math.inf if model.maximise else -math.inf

    def read() -> Solution:
        solution = solution_of(highs, names, scale, is_mip=is_mip)
        moved = abs(bound_correction(highs)) / scale if is_mip else 0.0
        if (gap > 0 or share > 0) and not is_closed(solution, scale, moved):
            solution = replace(solution, status=Status.GAP_LIMIT)
        if proof:
            check_proof(solution, scale, moved)
        return solution

    entries = len(model.rows.values)
    budget.charge(SOLVE_WORK + SOLVE_WORK_PER_ENTRY * entries)
    check_work = CHECK_WORK + CHECK_WORK_PER_ENTRY * entries
    return RunningSolve(
        highs,
        scale,
        read,
        worst,
        budget,
        check_work,
        is_whole_problem=is_whole_problem,
        exchange=exchange,
        names=names,
    )


def version() -> str:
    """Return name and version of the solver, for results."""
    return f"HiGHS {highspy.Highs().version()}"


def new_solver(
    time_limit: float | None, node_limit: int | None, presolve: bool, seed: int
) -> highspy.Highs:
    """Return a HiGHS solver with these limits, one thread and a gap of 0."""
    if node_limit is not None and node_limit < 1:  # HiGHS stops before it looks at anything
        raise InputError("node_limit", "expected at least 1", node_limit)
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        # One thread, so that the same solve takes the same steps every time.
        "threads": 1,
        "random_seed": seed,
        "time_limit": math.inf if time_limit is None else max(0.0, float(time_limit)),
        "mip_max_nodes": NO_NODE_LIMIT if node_limit is None else node_limit,
        "presolve": "choose" if presolve else "off",
        "presolve_rule_off": PRESOLVE_RULE_OFF,
        # HiGHS also calls a solve that stopped at the gap limit optimal, so there is none.
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
    }
    configure(highs, options)
    forgive(highs, FEASIBILITY)
    return highs


def configure(highs: highspy.Highs, options: Mapping[str, Any]) -> None:
    """Set options of HiGHS, by name."""
    for name, value in options.items():
        accept(highs.setOptionValue(name, value), f"refused the option {name}")


def forgive(highs: highspy.Highs, tolerance: float) -> None:
    """Set HiGHS's tolerances of rows and of integrality to `tolerance`."""
    names = ("mip_feasibility_tolerance", "primal_feasibility_tolerance")
    configure(highs, dict.fromkeys(names, tolerance))
