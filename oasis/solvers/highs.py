"""HiGHS, through highspy: the only module of the toolkit that talks to a solver.

It reads HiGHS's own model status. PuLP's ``LpStatus`` says "Optimal" for a solve that ran out of
time, and its HiGHS interface negates the objective to maximise, so that the bound comes back with
the wrong sign; here PuLP only carries the model, and HiGHS is told to maximise.
"""

from __future__ import annotations

import atexit
import math
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pulp

from oasis.model.errors import SolverError
from oasis.solvers import PROOF, Progress, Solution, Status, relative_gap
from oasis.solvers.budget import Budget

__all__ = ["Progress", "Run", "Solution", "Status", "solve", "start", "version"]

# HiGHS 1.15.1 (and 1.12 and 1.13.1) proves false optima on the compact model (1)-(13): 154 of
# 11,964 tiny instances came back "optimal" below the true optimum. Without presolve rule 12
# (bit 12 = 4096) all of 12,000 were right. Masters of the decomposition with forbidden counts need
# rule 13 (8192) off as well: else 5 of 2,782 were wrong. tests/oracle/test_milp_agreement.py and
# test_master_agreement.py keep watch.
PRESOLVE_RULE_OFF = 4096 + 8192

# HiGHS's default of 1e-6 would let a server that is short of a millionth of a worker take it.
FEASIBILITY = 1e-9

NO_NODE_LIMIT = 2**31 - 1  # HiGHS's own default

POLL_SECONDS = 0.1
GRACE_SECONDS = 2.0  # for HiGHS to hear that it should stop
EXIT_SECONDS = 10.0  # the same at the end of the program

# Work of one solve, and between two of HiGHS's checks whether it should stop, which come at the
# same points of the same solve on every machine; in units of about a second, measured.
SOLVE_WORK, SOLVE_WORK_PER_ENTRY = 2e-3, 2e-5
CHECK_WORK, CHECK_WORK_PER_ENTRY = 1e-3, 6e-7

_MODEL = highspy.HighsModelStatus
_STATUS = {
    _MODEL.kOptimal: Status.OPTIMAL,
    _MODEL.kModelEmpty: Status.OPTIMAL,
    _MODEL.kTimeLimit: Status.TIME_LIMIT,
    _MODEL.kSolutionLimit: Status.NODE_LIMIT,  # the node limit is the only one of its kind set here
    _MODEL.kInterrupt: Status.INTERRUPTED,
    _MODEL.kInfeasible: Status.INFEASIBLE,
    _MODEL.kUnbounded: Status.UNBOUNDED,
    _MODEL.kUnboundedOrInfeasible: Status.INFEASIBLE_OR_UNBOUNDED,
}


def solve(
    problem: pulp.LpProblem,
    *,
    budget: Budget | None = None,
    node_limit: int | None = None,
    gap: float = 0.0,
    warm_start: Mapping[str, float] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    presolve: bool = True,
    proof: bool = True,
    seed: int = 0,
) -> Solution:
    """Solve a PuLP model with HiGHS, to a gap of zero unless something else is asked for.

    One thread and a fixed seed: a solve that ends before its time limit gives the same solution
    every time. Ctrl-C ends the solve, not the program: the result then says `INTERRUPTED` and
    holds the best solution and bound so far; a second Ctrl-C raises. HiGHS does not listen in
    parts of its work; after two seconds it is left to itself, and the result has the bound alone.

    Parameters
    ----------
    problem : pulp.LpProblem
        Linear or mixed-integer; it is not modified.
    budget : Budget, optional
        What may be spent, in seconds or in work; the work done is charged to it.
    node_limit : int, optional
        Nodes of the branch-and-bound tree, at least 1; unlike seconds, it stops every run of a
        model at the same solution.
    gap : float
        Difference of bound and solution at which to stop, in units of the objective.
    warm_start : mapping of str to float, optional
        Value of each variable by name, 0 where left out; HiGHS ignores an infeasible one.
    on_progress : callable, optional
        Called in the calling thread, about ten times a second; what it raises ends the solve.
    presolve : bool
        Whether HiGHS may simplify the model first. False is for cross-checks.
    proof : bool
        Whether an optimal solution must agree with its bound. HiGHS knows when no value lies
        between the two and stops; False accepts that, for callers that only use the bound.
    seed : int
        HiGHS's random seed.

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
        warm_start=warm_start,
        presolve=presolve,
        proof=proof,
        seed=seed,
    )
    return run.finish(on_progress)


def start(
    problem: pulp.LpProblem,
    *,
    budget: Budget | None = None,
    node_limit: int | None = None,
    gap: float = 0.0,
    warm_start: Mapping[str, float] | None = None,
    presolve: bool = True,
    proof: bool = True,
    seed: int = 0,
) -> Run:
    """Begin what `solve` does and return at once; the model may change meanwhile."""
    budget = Budget() if budget is None else budget
    variables = problem.variables()
    scale = objective_scale(problem)
    highs = configured(None if budget.is_repeatable else budget.left, node_limit, presolve, seed)
    _accept(highs.setOptionValue("mip_abs_gap", gap * scale), "refused the gap")
    lp = translated(problem, variables, scale)
    _accept(highs.passModel(lp), "refused the model")
    if warm_start is not None:
        values = np.array([warm_start.get(variable.name, 0.0) for variable in variables])
        columns = np.arange(len(variables), dtype=np.int32)
        _accept(highs.setSolution(len(variables), columns, values), "refused the warm start")
    is_mip = any(variable.cat == pulp.LpInteger for variable in variables)
    names = [variable.name for variable in variables]
    worst = math.inf if problem.sense == pulp.LpMaximize else -math.inf

    def read() -> Solution:
        solution = _solution(highs, names, scale, is_mip)
        if gap > 0 and not _is_closed(solution, scale):
            solution = replace(solution, status=Status.GAP_LIMIT)
        if proof:
            _check_proof(solution, scale)
        return solution

    entries = len(lp.a_matrix_.value_)
    budget.charge(SOLVE_WORK + SOLVE_WORK_PER_ENTRY * entries)
    return Run(highs, scale, read, worst, budget, CHECK_WORK + CHECK_WORK_PER_ENTRY * entries)


def version() -> str:
    """Name and version of the solver, for results."""
    return f"HiGHS {highspy.Highs().version()}"


def configured(
    time_limit: float | None, node_limit: int | None, presolve: bool, seed: int
) -> highspy.Highs:
    """HiGHS with the options that every solve here has."""
    if node_limit is not None and node_limit < 1:  # HiGHS stops before it looks at anything
        raise ValueError(f"node_limit: expected at least 1, got {node_limit}")
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": seed,
        "time_limit": math.inf if time_limit is None else max(0.0, float(time_limit)),
        "mip_max_nodes": NO_NODE_LIMIT if node_limit is None else node_limit,
        "presolve": "choose" if presolve else "off",
        "presolve_rule_off": PRESOLVE_RULE_OFF,
        # HiGHS also calls a solve that stopped at the gap limit optimal, so there is none.
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": FEASIBILITY,
        "primal_feasibility_tolerance": FEASIBILITY,
    }
    for name, value in options.items():
        _accept(highs.setOptionValue(name, value), f"refused the option {name}")
    return highs


def objective_scale(problem: pulp.LpProblem) -> float:
    """Power of two that brings the largest cost to about 1: HiGHS's tolerances are absolute."""
    largest = max((abs(c) for c in (problem.objective or {}).values()), default=0.0)
    return 2.0 ** -math.frexp(largest)[1] if largest else 1.0


def translated(
    problem: pulp.LpProblem, variables: list[pulp.LpVariable], scale: float
) -> highspy.HighsLp:
    """HiGHS's form of a PuLP model, its objective multiplied by `scale`."""
    index = {variable: k for k, variable in enumerate(variables)}
    rows = problem.constraints()
    entries = [[(index[v], c) for v, c in row.items() if c != 0] for row in rows]
    objective = problem.objective or pulp.LpAffineExpression()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(variables), len(rows)
    maximise = problem.sense == pulp.LpMaximize
    lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    lp.offset_ = objective.constant * scale
    lp.col_cost_ = np.array([objective.get(v, 0.0) for v in variables], float) * scale
    lp.col_lower_ = _limits((v.lowBound for v in variables), -math.inf)
    lp.col_upper_ = _limits((v.upBound for v in variables), math.inf)
    lp.row_lower_ = _limits((row.getLb() for row in rows), -math.inf)
    lp.row_upper_ = _limits((row.getUb() for row in rows), math.inf)
    kinds = highspy.HighsVarType
    lp.integrality_ = [
        kinds.kInteger if v.cat == pulp.LpInteger else kinds.kContinuous for v in variables
    ]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *map(len, entries)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([k for row in entries for k, _ in row], np.int32)
    lp.a_matrix_.value_ = np.array([c for row in entries for _, c in row], float)
    return lp


def _limits(values: Any, missing: float) -> Any:
    return np.array([missing if value is None else value for value in values], float)


_RUNNING: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _wait_for_all() -> None:
    """At exit: a thread that Python ends inside HiGHS aborts the process."""
    for run in list(_RUNNING):
        run._stop.set()
    for run in list(_RUNNING):
        run._thread.join(EXIT_SECONDS)


class Run:
    """A solve in a thread of its own, so that the calling thread can do other work and hear Ctrl-C.

    Leaving a ``with`` block stops it.

    Attributes
    ----------
    progress : Progress or None
        What HiGHS has told so far.
    """

    def __init__(
        self,
        highs: highspy.Highs,
        scale: float,
        read: Callable[[], Solution],
        worst: float,
        budget: Budget,
        check_work: float,
    ) -> None:
        self.progress: Progress | None = None
        self._highs, self._scale, self._read, self._worst = highs, scale, read, worst
        self._budget, self._check_work = budget, check_work
        self._checks = 0
        self._most_checks = budget.left / check_work if budget.is_repeatable else math.inf
        self._stop = threading.Event()
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self._outcome: highspy.HighsStatus | None = None
        highs.cbMipInterrupt.subscribe(self._watch_mip)
        highs.cbSimplexInterrupt.subscribe(self._watch)
        highs.cbIpmInterrupt.subscribe(self._watch)
        self._thread = threading.Thread(target=self._work, name="HiGHS", daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def is_done(self) -> bool:
        """Whether `finish` would return at once."""
        return self._done.is_set()

    def stop(self) -> None:
        """Ask HiGHS to end and wait for it, at most two seconds."""
        self._stop.set()
        self._done.wait(GRACE_SECONDS)

    def finish(self, on_progress: Callable[[Progress], None] | None = None) -> Solution:
        """Wait for the solution; see `solve`. After `stop` there is nothing to wait for."""
        if self._stop.is_set() and not self.is_done:
            return self._abandoned()
        is_interrupted = False
        try:
            self._report(on_progress)
        except KeyboardInterrupt:
            is_interrupted = True
            self.stop()
            if not self.is_done:
                return self._abandoned()
        except BaseException:
            self.stop()
            raise
        self._highs.clearCallbacks()
        if self._failure is not None:
            raise SolverError(f"HiGHS failed: {self._failure}") from self._failure
        _accept(self._outcome, "failed")
        solution = self._read()
        self._budget.charge(self._checks * self._check_work)
        if self._checks > self._most_checks and solution.status is Status.INTERRUPTED:
            solution = replace(solution, status=Status.WORK_LIMIT)
        # also where HiGHS was done before it heard of it: a caller with more to solve must stop
        return replace(solution, status=Status.INTERRUPTED) if is_interrupted else solution

    def _watch(self, event: Any) -> None:
        self._checks += 1
        event.data_in.user_interrupt = self._stop.is_set() or self._checks > self._most_checks

    def _watch_mip(self, event: Any) -> None:
        self._watch(event)
        out = event.data_out
        incumbent = out.mip_primal_bound / self._scale
        found = incumbent if math.isfinite(incumbent) else None
        bound = out.mip_dual_bound / self._scale
        self.progress = Progress(out.running_time, found, bound, relative_gap(found, bound))

    def _work(self) -> None:
        try:
            self._outcome = self._highs.run()
            self._highs.resetGlobalScheduler(False)
        except BaseException as error:  # noqa: BLE001 - handed to the calling thread
            self._failure = error
        finally:
            self._done.set()

    def _report(self, on_progress: Callable[[Progress], None] | None) -> None:
        last = None
        while not self._done.wait(POLL_SECONDS):
            if on_progress is not None and self.progress is not None and self.progress != last:
                last = self.progress
                on_progress(last)

    def _abandoned(self) -> Solution:
        """What HiGHS has told so far; it still runs, so that nothing may be asked of it."""
        bound = self.progress.bound if self.progress is not None else self._worst
        return Solution(Status.INTERRUPTED, None, bound, math.inf, {})


def _accept(status: Any, what: str) -> None:
    # kWarning is what a time limit or an interrupt comes back as.
    if status not in (highspy.HighsStatus.kOk, highspy.HighsStatus.kWarning):
        raise SolverError(f"HiGHS {what} ({status})")


def _solution(highs: highspy.Highs, names: list[str], scale: float, is_mip: bool) -> Solution:
    found = highs.getModelStatus()
    if found not in _STATUS:
        raise SolverError(f"HiGHS ended with the status {highs.modelStatusToString(found)!r}")
    status = _STATUS[found]
    if found == _MODEL.kModelEmpty:
        offset = highs.getObjectiveOffset()[1] / scale
        return Solution(status, offset, offset, 0.0, {})
    info = highs.getInfo()
    is_feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective, values = None, {}
    if is_feasible or status is Status.OPTIMAL:
        objective = info.objective_function_value / scale
        values = dict(zip(names, map(float, highs.getSolution().col_value), strict=True))
    worst = math.inf if highs.getObjectiveSense()[1] == highspy.ObjSense.kMaximize else -math.inf
    if is_mip:
        bound = info.mip_dual_bound / scale
    elif status is Status.OPTIMAL and objective is not None:
        bound = objective  # a linear program solved to optimality is its own bound
    else:
        bound = worst
    return Solution(status, objective, bound, relative_gap(objective, bound), values)


def _is_closed(solution: Solution, scale: float) -> bool:
    """Whether a solution said to be optimal agrees with its bound."""
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return True
    allowed = PROOF * max(1.0 / scale, abs(solution.objective))
    return abs(solution.bound - solution.objective) <= allowed


def _check_proof(solution: Solution, scale: float) -> None:
    if not _is_closed(solution, scale):
        text = f"objective {solution.objective:.12g} against bound {solution.bound:.12g}"
        raise SolverError(f"HiGHS calls a solution optimal that it has not proved: {text}")
