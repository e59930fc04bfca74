"""What can be done with the cells of a sweep, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

import oasis
from experiments.sweep.task import (
    MEASURED,
    Case,
    Figures,
    Options,
    Scalar,
    Task,
    run_figures,
    simulated,
)
from oasis.model.utility import Sigmoid


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


def _limit(value: Any) -> Any:
    """TOML has no null, and records are JSON, which has no infinity."""
    return None if value == math.inf else value


class RatioOptions(Options):
    """Options of the task ``ratio``.

    Parameters
    ----------
    time_limit : float or None
        Seconds for the offline solve of a cell; None is no limit, in a file ``inf``.
    method : str
        As in `offline.solve`.
    """

    time_limit: Annotated[Annotated[float, Field(ge=0)] | None, BeforeValidator(_limit)] = 60.0
    method: Annotated[str, AfterValidator(_method)] = "auto"


def ratio(case: Case) -> Figures:
    """Run the policy and divide the offline optimum, or its bounds, by what it earned.

    A solve that meets its time limit gives an interval that depends on the machine.
    """
    from oasis.certify.certificate import certify  # noqa: PLC0415
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


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("run", run),
        Task("lateness", lateness),
        Task(
            "ratio",
            ratio,
            RatioOptions,
            ("total_utility", "ratio_lower", "ratio_upper", "proven"),
        ),
    )
}
