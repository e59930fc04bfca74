"""Tasks of a sweep: functions in importable modules, which workers get by their names.

A task returns flat plain data; figures that are measured times start with ``measured.``, because
they do not repeat. A fingerprint of the code behind results sees to it that no old result passes
for a new one: the version alone does not tell two states of a checkout apart.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeAlias

import oasis
from experiments.evaluation.comparison import figures
from experiments.options import check_known, options_of, read_seconds, read_share
from oasis.model.choices import choice
from oasis.model.document import Reader, entry, mapping, optional
from oasis.model.errors import InputError, located_at
from oasis.model.utility import Sigmoid
from oasis.model.validation import LARGEST_SEED, integer
from oasis.online.prices import PriceBounds
from oasis.simulator import Policy
from oasis.simulator.result import Run

SOURCES = (
    *("oasis", "offline", "baselines"),
    *("experiments.sweep", "experiments.evaluation"),
)
LENGTH = 16


@cache
def fingerprint(function: Callable[..., Any]) -> str:
    """Hash the sources that decide results, and the module of `function`."""
    digest = hashlib.sha256()
    for name in SOURCES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        origin = Path(spec.origin)
        root = origin.parent
        paths = [origin] if spec.submodule_search_locations is None else root.rglob("*.py")
        # Sorted, because file systems list names in different orders; moves count, so names do.
        for path in sorted(paths, key=Path.as_posix):
            digest.update(f"{name}/{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    source = inspect.getsourcefile(function)
    if source is None:
        raise InputError(f"task {function.__qualname__}", "expected a function of a module")
    digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:LENGTH]


MEASURED = "measured."
Scalar: TypeAlias = bool | int | float | str | None
Figures: TypeAlias = dict[str, Scalar | Sequence[Scalar]]


@dataclass(frozen=True)
class Options:
    """Base class of a task's options; fields have defaults and types that text can express."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Make the options from a configuration; raise an error for unknown or wrong ones."""
        options = options_of(cls)
        check_known(table, options)
        values = {}
        for name, value in table.items():
            with located_at(name):
                values[name] = options[name].check(value)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain data for JSON."""
        plain = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """Input of a task: one cell, ready to run.

    Parameters
    ----------
    instance : Instance
        The problem; what the source of the cell makes, if that is no instance.
    make_policy : callable
        Makes a fresh policy for it.
    seed : int
        Seed of the cell; instance and policy have it already.
    options : Options
        Options of the task.
    shared : mapping
        Figures of the task that the cells of an instance and seed share, if there is one.
    """

    instance: Any
    make_policy: Callable[[], Policy]
    seed: int
    options: Any
    shared: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellTask:
    """A task that a sweep does with each cell.

    Parameters
    ----------
    name : str
        Name in configurations.
    function : callable
        From a `Case` to its figures; top-level in an importable module.
    options : type of Options
        Options that a configuration may set.
    headline : tuple of str
        Figures that a summary shows.
    shared : CellTask, optional
        Is run once for all cells of an instance and seed, before them and without a policy. It
        has the same options; its figures are in ``case.shared``.
    modules : tuple of str
        Modules that it imports only when it runs: a Dask worker must show that it has them.
    """

    name: str
    function: Callable[[Case], Figures]
    options: type[Options] = Options
    headline: tuple[str, ...] = ("total_utility", "finished", "mean_completion")
    shared: CellTask | None = None
    modules: tuple[str, ...] = ()


def simulated(case: Case) -> Run:
    """Run the policy of the case, verify its schedules, and return the run."""
    run = oasis.simulate(case.instance, case.make_policy())
    oasis.verify(case.instance, run)
    return run


def run_figures(run: Run) -> Figures:
    """Figures of a run: utility, jobs, completion times in slots, use, and measured times."""
    row = figures(run)
    row["jobs"] = len(run.decisions)
    row["alpha"] = run.bounds.alpha if isinstance(run.bounds, PriceBounds) else None
    for name in [name for name in row if name.endswith("_seconds")]:
        row[MEASURED + name] = row.pop(name)
    return _flat(row)


def _flat(data: Mapping[str, Any], prefix: str = "") -> Figures:
    """Flatten nested mappings; names are joined by dots, after `prefix`."""
    flat: Figures = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


ROUNDING = 1e-6  # of a bound that a solver has proved
GIVEN_ONLY = ("gap", "no_improvement", "params")


def run(case: Case) -> Figures:
    """Run the policy and return the figures of the run."""
    return run_figures(simulated(case))


def lateness(case: Case) -> Figures:
    """Run the policy; add to its figures each job's completion minus target (Fig. 4, 9)."""
    done = simulated(case)
    late: list[Scalar] = []
    decay: list[Scalar] = []  # tells the kinds of jobs apart
    for job, decision in zip(case.instance.jobs_by_arrival(), done.decisions, strict=True):
        end, sigmoid = decision.completion, job.utility
        has_target = isinstance(sigmoid, Sigmoid)
        is_late = has_target and end is not None
        late.append(end - job.arrival - sigmoid.target if is_late else None)
        decay.append(sigmoid.decay if has_target else None)
    return run_figures(done) | {"lateness": late, "decay": decay}


def _method(name: Any) -> str:
    from offline.solve import METHODS  # noqa: PLC0415 (needs an extra)

    return choice(name, METHODS)


def _limit(value: Any, **units: Any) -> float | None:
    """Read a limit, a number or a text such as ``5m``; return None for no limit or infinity."""
    limit = math.inf if value is None else float(read_seconds(value, **units))
    return None if limit == math.inf else limit


READERS: Mapping[str, Reader[Any]] = {
    "time_limit": _limit,
    "work_limit": partial(_limit, what="units of work", is_time=False),
    "gap": optional(read_share),
    "no_improvement": _limit,
    "seed": lambda value: integer(value, "", maximum=LARGEST_SEED),
    "method": _method,
    "params": optional(mapping),
}


@dataclass(frozen=True)
class RatioOptions(Options):
    """Options of the task ``ratio``."""

    time_limit: float | None = 60.0
    work_limit: float | None = None
    gap: float | None = None
    no_improvement: float | None = None
    seed: int = 0
    method: str = "auto"
    params: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> RatioOptions:
        """Make the options; a limit may be a text, and `work_limit` replaces `time_limit`."""
        check_known(table, READERS)
        values = {name: entry(table, name, read) for name, read in READERS.items() if name in table}
        if "work_limit" in table:
            if "time_limit" in table:
                raise InputError("", "expected time_limit or work_limit, got both")
            if isinstance(table.get("no_improvement"), str):
                expected = "expected units of work with work_limit, got a time"
                raise InputError("no_improvement", expected)
            values["time_limit"] = None
        options = cls(**values)
        if options.params is not None:
            from offline.solve import params_of  # noqa: PLC0415 (needs an extra)

            with located_at("params"):
                params_of(options.method).from_dict(options.params)
        return options

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, without those of `GIVEN_ONLY` that are None."""
        options = {k: v for k, v in asdict(self).items() if k not in GIVEN_ONLY or v is not None}
        return options | {"gap": None} if self.gap == math.inf else options


def optimum(case: Case) -> Figures:
    """Solve the instance offline; return the figures that all policies' cells share."""
    from oasis.solvers import Status  # noqa: PLC0415 (needs an extra)
    from oasis.solvers.budget import Stop  # noqa: PLC0415
    from offline.solve import solve  # noqa: PLC0415

    options: RatioOptions = case.options
    limits = options.time_limit, options.work_limit, options.gap, options.no_improvement
    offline = solve(
        case.instance,
        method=options.method,
        stop=Stop(*limits),
        seed=options.seed,
        params=options.params,
    )
    # A solve that Ctrl-C cut short must not become a record.
    if offline.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return {
        "proven": offline.status is Status.OPTIMAL,
        "offline_status": str(offline.status),
        "offline_objective": offline.objective,
        "offline_upper_bound": offline.upper_bound,
        "offline_method": offline.method,
        MEASURED + "offline_seconds": offline.seconds,
    }


def ratio(case: Case) -> Figures:
    """Run the policy; add to its figures the ratio of the offline optimum to its utility."""
    from oasis.certify.certificate import Certificate, certify  # noqa: PLC0415
    from oasis.solvers import relative_gap  # noqa: PLC0415

    online = simulated(case)
    offline = case.shared
    earned, upper = online.total_utility, offline["offline_upper_bound"]
    # A schedule that was verified is right, so a bound below it is a fault of the solver.
    if earned > upper * (1 + ROUNDING) + ROUNDING:
        bound = f"offline upper bound {upper:.9g}"
        raise oasis.SolverError(f"{online.policy} earned {earned:.9g}, more than the {bound}")
    proven = offline["proven"]
    best = max(offline["offline_objective"], earned)  # the policy's own schedules are a solution
    upper = best if proven else upper
    gap = relative_gap(best, upper)
    row: Figures = {
        "ratio": best / earned if proven and earned > 0 else None,
        "ratio_lower": best / earned if earned > 0 else None,
        "ratio_upper": upper / earned if earned > 0 else None,
        "proven": proven,
        "offline_status": offline["offline_status"],
        "offline_objective": best,
        "offline_upper_bound": offline["offline_upper_bound"],
        "offline_gap": gap if math.isfinite(gap) else None,
        "offline_method": offline["offline_method"],
        MEASURED + "offline_seconds": offline[MEASURED + "offline_seconds"],
    }
    if online.bounds is not None and isinstance(
        certificate := certify(case.instance, online), Certificate
    ):
        row |= {
            "bound_2alpha": 2 * certificate.alpha,
            "log_alpha_x": certificate.log_alpha_x,
            "payoff_gap": certificate.payoff_gap,
        }
    return run_figures(online) | row


TASKS: Mapping[str, CellTask] = {
    task.name: task
    for task in (
        CellTask("run", run),
        CellTask("lateness", lateness),
        CellTask(
            "ratio",
            ratio,
            RatioOptions,
            ("proven", "total_utility", "ratio_lower", "ratio_upper"),
            shared=CellTask("optimum", optimum, RatioOptions, modules=("offline",)),
        ),
    )
}
