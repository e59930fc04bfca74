"""What can be done with a cell of a sweep, by name.

A task is a function in an importable module: workers get it by its name. It returns flat plain
data; figures that are measured times start with ``measured.``, because they do not repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

import oasis
from experiments.comparison import figures
from experiments.sweeps.model import Table
from oasis.problem import Instance
from oasis.result import Run
from oasis.simulator import Policy, Scheduler
from oasis.utility import Sigmoid

MEASURED = "measured."
Scalar: TypeAlias = bool | int | float | str | None
Figures: TypeAlias = dict[str, Scalar | Sequence[Scalar]]


class Options(Table):
    """Options of a task that has none; others derive from it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cell, ready to run.

    Parameters
    ----------
    instance : Instance
        The problem.
    make_policy : callable
        Makes a fresh policy for it.
    seed : int
        Seed of the cell; instance and policy have it already.
    options : Options
        Options of the task.
    """

    instance: Instance
    make_policy: Callable[[], Policy | Scheduler]
    seed: int
    options: Any


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do with each cell.

    Parameters
    ----------
    name : str
        What a configuration calls it.
    function : callable
        From a `Case` to its figures; top-level in an importable module.
    options : type of Options
        What a configuration may set.
    headline : tuple of str
        Figures that a summary shows.
    """

    name: str
    function: Callable[[Case], Figures]
    options: type[Options] = Options
    headline: tuple[str, ...] = ("total_utility", "admitted", "finished", "mean_completion")


def simulated(case: Case) -> Run:
    """The verified run of the case's policy."""
    run = oasis.simulate(case.instance, case.make_policy())
    oasis.verify(case.instance, run)
    return run


def run_figures(run: Run) -> Figures:
    """Utility, jobs, completion times in slots, shares of capacity used, and measured times."""
    found = figures(run)
    found["jobs"] = len(run.decisions)
    found["alpha"] = run.bounds.alpha if run.bounds else None
    for name in [name for name in found if name.endswith("_seconds")]:
        found[MEASURED + name] = found.pop(name)
    return _flat(found)


def run(case: Case) -> Figures:
    """Run the policy."""
    return run_figures(simulated(case))


def lateness(case: Case) -> Figures:
    """Run the policy; of each job that finished, completion minus target, in slots (Fig. 4, 9).

    ``lateness`` has an entry for each job in order of arrival, None where it did not finish or
    its utility is no sigmoid, so has no target; ``decay`` tells the kinds of jobs apart.
    """
    done = simulated(case)
    late: list[Scalar] = []
    decay: list[Scalar] = []
    for job, decision in zip(case.instance.jobs_by_arrival(), done.decisions, strict=True):
        end = decision.completion
        if isinstance(job.utility, Sigmoid):
            late.append(None if end is None else end - job.arrival - job.utility.target)
            decay.append(job.utility.decay)
        else:
            late.append(None)
            decay.append(None)
    return run_figures(done) | {"lateness": late, "decay": decay}


def _method(name: str) -> str:
    from offline import METHODS  # noqa: PLC0415 (needs an extra)

    if name not in METHODS:
        raise ValueError(f"expected one of {', '.join(METHODS)}, got {name!r}")
    return name


class RatioOptions(Options):
    """Options of the task ``ratio``.

    Parameters
    ----------
    time_limit : float
        Seconds for the offline solve of a cell.
    method : str
        As in `offline.solve`.
    """

    time_limit: Annotated[float, Field(ge=0)] = 60.0
    method: Annotated[str, AfterValidator(_method)] = "auto"


def ratio(case: Case) -> Figures:
    """Run the policy and divide the offline optimum, or its bounds, by what it earned.

    A solve that meets its time limit gives an interval that depends on the machine.
    """
    from oasis.certificate import certify  # noqa: PLC0415
    from offline import Status, solve  # noqa: PLC0415 (needs an extra)

    online = simulated(case)
    options: RatioOptions = case.options
    offline = solve(
        case.instance,
        method=options.method,
        time_limit=options.time_limit,
        warm_start=online.schedules,
    )
    if offline.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    oasis.verify(case.instance, offline)
    proven = offline.status is Status.OPTIMAL
    earned = online.total_utility
    upper = offline.objective if proven else offline.upper_bound
    found: Figures = {
        "ratio": offline.objective / earned if proven and earned > 0 else None,
        "ratio_lower": offline.objective / earned if earned > 0 else None,
        "ratio_upper": upper / earned if earned > 0 else None,
        "proven": proven,
        "offline_status": str(offline.status),
        "offline_objective": offline.objective,
        "offline_upper_bound": offline.upper_bound,
        "offline_gap": offline.gap if math.isfinite(offline.gap) else None,
        "offline_method": offline.method,
        MEASURED + "offline_seconds": offline.seconds,
    }
    if online.bounds is not None:
        certificate = certify(case.instance, online)
        found |= {
            "bound_2alpha": 2 * certificate.alpha,
            "log_alpha_x": certificate.log_alpha_x,
            "payoff_gap": certificate.payoff_gap,
        }
    return run_figures(online) | found


def _flat(data: Mapping[str, Any], prefix: str = "") -> Figures:
    """Nested mappings as one, names joined by dots."""
    flat: Figures = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("run", run),
        Task("lateness", lateness),
        Task(
            "ratio",
            ratio,
            RatioOptions,
            ("total_utility", "ratio", "ratio_lower", "ratio_upper", "proven"),
        ),
    )
}
