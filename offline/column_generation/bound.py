"""Bound by the configuration LP, the relaxation of (14)-(18), by column generation.

The pricing problem is Algorithm 2 on the empty cluster. Every price vector that is tried gives a
valid bound by weak duality,

    OPT <= D(p, q) = sum_i max(0, best payoff of i) + sum p c + sum q c       (19)(20)

so the solve can stop at any time. Prices are smoothed towards the best ones so far (Wentges), by
an amount that follows the subgradient (Pessoa et al.), and the rows go from one class of servers
a side to identical servers (`offline.column_generation.aggregation`).

References
----------
arXiv 1801.00936, (14)-(21).
Wentges, Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming, 1997.
Pessoa, Sadykov, Uchoa, Vanderbeck, Automation and combination of linear-programming based
stabilization techniques in column generation, INFORMS J. on Computing 30(2), 2018, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

import oasis
from oasis.certify.duality import dual_bound
from oasis.model.errors import SolverError
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.solvers import TRUST, Status
from oasis.solvers.budget import Budget, checked
from offline.column_generation.aggregation import Grouping, levels
from offline.column_generation.pricing import empty, price, pricing_work
from offline.column_generation.restricted_master import Column, RestrictedMaster
from offline.state import Standing

CONVERGED = 1e-6  # relative difference of bound and master at which the last level ends
COARSE = 2e-4  # the same for the levels before it
NOTHING = 1e-9  # of the first D: where rents are scaled down to 0 at once
STEP = 0.1
COLUMNS_A_JOB = 60
CERTIFY_STEPS = 100_000  # size up to which the independent bound is computed: about a second
AGREE = 1e-6


@dataclass(frozen=True, slots=True)
class Iterate:
    """One round: what its prices prove, and what the columns before it reach."""

    seconds: float
    dual: float
    master: float


@dataclass(frozen=True, slots=True, eq=False)
class ConfigurationBound:
    """What column generation proved, and what it found on the way.

    Parameters
    ----------
    status : Status
        ``optimal`` if the configuration LP is solved; the bound holds in any case.
    bound : float
        The smallest D(p, q) met: no schedule of the instance is worth more. inf if the time
        limit let no price vector be tried.
    value : float
        Value of the last master at the finest grouping, at most the LP's; 0 if none was solved.
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        The p and q of `bound`, utility per unit of resource.
    columns : tuple of Column
        Schedules of the last master.
    weights : (columns,) float array
        x_il of each of them, at most 1 a job.
    rounds : tuple of Iterate
        Every price vector tried.
    """

    status: Status
    bound: float
    value: float
    worker_prices: FloatArray
    ps_prices: FloatArray
    columns: tuple[Column, ...]
    weights: FloatArray
    rounds: tuple[Iterate, ...]


def configuration_bound(
    instance: Instance,
    time_limit: float | Budget | None = None,
    columns: Iterable[Column] = (),
    standing: Standing | None = None,
    tolerance: float = CONVERGED,
) -> ConfigurationBound:
    """Bound the optimum by the configuration LP.

    Starts from OASiS's final prices and its schedules. Ctrl-C and the time limit end it with the
    best bound so far (docs/theory, "The configuration LP").

    Parameters
    ----------
    instance : Instance
        The problem; its original utilities count, without any floor.
    time_limit : float or Budget, optional
        Seconds, or the `oasis.solvers.budget.Budget` of the solve that this is part of; None or
        inf is no limit.
    columns : iterable of Column
        Further schedules to start from, each feasible on its own.
    standing : Standing, optional
        Is told of every better bound; its incumbent, if it has one, ends the solve as soon as
        the bound proves it optimal.
    tolerance : float
        Relative difference of bound and master at which the LP counts as solved.

    Returns
    -------
    ConfigurationBound
        With ``bound``, and the prices that prove it.

    Raises
    ------
    ValueError
        For a negative time limit or NaN.
    SolverError
        If the independent dual bound or the incumbent refutes the result.
    """
    budget = time_limit if isinstance(time_limit, Budget) else Budget(checked(time_limit))
    run = _Generation(instance, budget, standing or Standing(budget))
    try:
        run.start(columns)
        *coarse, finest = levels(instance)
        for grouping in coarse:
            run.refine(grouping, max(COARSE, tolerance))
        if run.refine(finest, tolerance):
            run.status = Status.OPTIMAL
    except KeyboardInterrupt:
        run.status = Status.INTERRUPTED
    result = run.result()
    _certify(instance, result, run.standing.incumbent)
    return result


@dataclass(slots=True)
class _Centre:
    """The best prices so far, and how far the next trial stays with them."""

    worker_prices: FloatArray
    ps_prices: FloatArray
    bound: float = math.inf
    smoothing: float = 0.5

    def adapt(self, is_idle: bool, is_beyond: bool) -> None:
        """Smooth less after a trial that changed nothing, more after one beyond the minimum."""
        if is_idle:
            self.smoothing = max(0.0, 2 * self.smoothing - 1)
        elif is_beyond:
            self.smoothing = min(0.95, self.smoothing + STEP * (1 - self.smoothing))
        else:
            self.smoothing = max(0.0, self.smoothing - STEP)


@dataclass(slots=True)
class _Trial:
    """Prices tried: D, a subgradient of it by row, and the best schedules."""

    dual: float
    subgradient: FloatArray
    columns: list[Column]


@dataclass(slots=True)
class _Generation:
    """State of a column generation."""

    instance: Instance
    budget: Budget
    standing: Standing
    status: Status = field(init=False)
    value: float = 0.0
    rounds: list[Iterate] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    centre: _Centre = field(init=False)

    def __post_init__(self) -> None:
        self.status = self.budget.status
        shape, cluster = self.instance.horizon, self.instance.cluster
        self.centre = _Centre(
            np.zeros((shape, *cluster.worker_capacity.shape)),
            np.zeros((shape, *cluster.ps_capacity.shape)),
        )

    def start(self, columns: Iterable[Column]) -> None:
        """OASiS's prices, scaled down as long as that helps, and OASiS's schedules."""
        scheduler = oasis.OASiS.from_instance(self.instance)
        run = oasis.simulate(self.instance, scheduler)
        self.columns = [*columns, *columns_of(self.instance, run.schedules)]
        grouping = Grouping.of(self.instance, 1)
        worker, ps = scheduler.ledger.worker_prices, scheduler.ledger.ps_prices
        rents = grouping.rents(np.asarray(worker), np.asarray(ps))
        least = 0.0
        while not self.budget.passed:
            trial = self._try(grouping, rents, 0.0)
            self.columns += trial.columns
            if trial.dual > self.centre.bound:
                break
            self._move(grouping, rents, trial.dual)
            if not rents.any():
                break
            # where nobody pays at any price, D is the rents alone and never small beside them
            least = max(least, NOTHING * trial.dual)
            matters = rents.sum() > max(least, 1e-3 * trial.dual)
            rents = rents / 4 if matters else np.zeros_like(rents)

    def refine(self, grouping: Grouping, tolerance: float) -> bool:
        """Solve the configuration LP with these rows, from the best prices so far.

        Returns whether bound and master agree up to `tolerance`.
        """
        master = RestrictedMaster(grouping)
        master.add(self.columns)
        centre = grouping.rents(self.centre.worker_prices, self.centre.ps_prices)
        self.centre.smoothing, self.value = 0.5, 0.0
        while not self.budget.passed:
            solution = master.solve(self.budget)
            if solution is None:
                return False
            self.value = solution.value
            self.columns, self.weights = list(master.columns), solution.weights
            if self._has_converged(tolerance):
                return True
            master.keep_best(solution, most=COLUMNS_A_JOB * len(self.instance.jobs) + 1000)
            smoothing = self.centre.smoothing
            rents = smoothing * centre + (1 - smoothing) * solution.rents
            trial = self._try(grouping, rents, solution.value)
            is_better = trial.dual < self.centre.bound
            is_idle = master.add(trial.columns) == 0 and not is_better
            if is_idle and smoothing == 0:
                return False  # the master's own prices find nothing: only rounding is left
            descent = float(trial.subgradient @ (solution.rents - centre))
            self.centre.adapt(is_idle, is_beyond=descent >= 0)
            if is_better:
                self._move(grouping, rents, trial.dual)
                centre = rents
        return False

    def _has_converged(self, tolerance: float) -> bool:
        incumbent = self.standing.incumbent
        known = self.value if incumbent is None else max(self.value, incumbent)
        return self.centre.bound - known <= tolerance * abs(self.centre.bound)

    def _move(self, grouping: Grouping, rents: FloatArray, bound: float) -> None:
        self.centre.worker_prices, self.centre.ps_prices = grouping.prices(rents)
        self.centre.bound = bound
        self.standing.proved(bound)

    def _try(self, grouping: Grouping, rents: FloatArray, master: float) -> _Trial:
        """Price every job on the empty cluster."""
        prices = empty(self.instance, *grouping.prices(rents))
        payoffs, columns, subgradient = [], [], np.ones(grouping.size)
        for index, job in enumerate(self.instance.jobs):
            payoff, schedule = price(job, prices)
            if schedule is not None:
                payoffs.append(payoff)
                columns.append(Column.of(self.instance, index, schedule))
                rows, shares = grouping.usage(job, schedule)
                subgradient[rows] -= shares
        dual = math.fsum([float(rents.sum()), *payoffs])
        self.budget.charge(len(self.instance.jobs) * pricing_work(self.instance))
        self.rounds.append(Iterate(self.budget.seconds, dual, master))
        return _Trial(dual, subgradient, columns)

    def result(self) -> ConfigurationBound:
        """What is known now."""
        weights = np.zeros(len(self.columns))
        weights[: len(self.weights)] = self.weights
        return ConfigurationBound(
            self.status,
            self.centre.bound,
            self.value,
            self.centre.worker_prices,
            self.centre.ps_prices,
            tuple(self.columns),
            weights,
            tuple(self.rounds),
        )


def columns_of(instance: Instance, schedules: Mapping[str, Schedule]) -> list[Column]:
    """Columns of schedules by job id."""
    return [
        Column.of(instance, index, schedules[job.id])
        for index, job in enumerate(instance.jobs)
        if job.id in schedules
    ]


def _certify(instance: Instance, result: ConfigurationBound, incumbent: float | None) -> None:
    """Let `oasis.dual_bound`, which shares no code with the search, and the incumbent object."""
    if incumbent is not None and result.bound < incumbent - TRUST * abs(incumbent):
        raise SolverError(f"the bound is {result.bound:.9g}; a schedule is worth {incumbent:.9g}")
    cluster = instance.cluster
    entries = cluster.worker_capacity.size + cluster.ps_capacity.size
    steps = sum((instance.horizon - job.arrival) * (entries + job.chunks) for job in instance.jobs)
    if steps > CERTIFY_STEPS or not math.isfinite(result.bound):
        return
    independent = dual_bound(instance, result.worker_prices, result.ps_prices)
    if not math.isclose(independent, result.bound, rel_tol=AGREE, abs_tol=AGREE):
        text = f"the search bounds the optimum by {result.bound:.9g}"
        raise SolverError(f"{text}, an independent computation by {independent:.9g}")
