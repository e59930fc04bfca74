"""Measuring the competitive ratio of a policy on one instance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from experiments.evaluation.competitive_ratio import CompetitiveRatio
from oasis.certify.certificate import Certificate, certify
from oasis.certify.verify import verify
from oasis.model.decision import Decision
from oasis.model.errors import VerificationError
from oasis.model.instance import Instance, expect_instance
from oasis.online.oasis import OASiS
from oasis.simulator import Policy, Scheduler, simulate
from oasis.simulator.result import Run
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Budget
from oasis.version import __version__
from offline import OfflineResult, solve
from offline.state import SolveState
from offline.warm_start import WarmStart, decide

__all__ = ["CompetitiveRatio", "competitive_ratio", "measure"]

LOGGER = logging.getLogger(__name__)
ROUNDING = 1e-9  # relative, of the corrected bound


def competitive_ratio(
    instance: Instance,
    time_limit: float | None = 60.0,
    *,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    seed: int = 0,
    method: str = "auto",
    scheduler: Policy | Scheduler | None = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
) -> CompetitiveRatio:
    """Run OASiS, or another policy, on `instance`, solve it offline and compare.

    Parameters
    ----------
    instance : Instance
        The problem.
    time_limit : float, optional
        Seconds for the offline solve; after it, the ratio is an interval. So it is after Ctrl-C.
        None is no limit.
    work_limit : float, optional
        Units of work in place of the time limit, as in `offline.solve`: the result then repeats.
    gap, no_improvement : float, optional
        Criteria that end the offline solve before its limit, as in `offline.solve`.
    seed : int
        Of the offline solve.
    method : str
        Offline method, as in `offline.solve`.
    scheduler : OASiS or any policy, optional
        A fresh one for `instance`; default ``OASiS.from_instance(instance)``.
    on_progress : callable, optional
        Called with the progress of the offline solve.

    Raises
    ------
    VerificationError
        If a schedule breaks a constraint of the model, or is worth more than the corrected
        Theorem 4 allows.
    SolverError
        If the solver claims a bound below a verified schedule.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> result.proven and result.ratio == result.lower == result.upper
    True
    """
    expect_instance(instance)

    def make() -> Policy | Scheduler:
        return scheduler or OASiS.from_instance(instance)

    offline = partial(
        solve,
        method=method,
        time_limit=time_limit,
        work_limit=work_limit,
        gap=gap,
        no_improvement=no_improvement,
        seed=seed,
    )
    return measure(instance, make, offline, method, on_progress, nullcontext)


def measure(
    instance: Instance,
    make: Callable[[], Policy | Scheduler],
    solve_offline: Callable[..., OfflineResult],
    method: str,
    on_progress: Callable[[SolveProgress], None] | None,
    raising: Callable[[], AbstractContextManager[None]],
) -> CompetitiveRatio:
    """Do what `competitive_ratio` does, for a caller that handles Ctrl-C itself.

    Parameters
    ----------
    instance : Instance
        The problem.
    make : callable
        Makes a fresh policy.
    solve_offline : callable
        `offline.solve` with its limits set.
    method : str
        Name of the offline method, for a result that Ctrl-C ends before the method begins.
    on_progress : callable or None
        Called with the progress of both parts.
    raising : callable
        Makes the context inside which Ctrl-C may raise KeyboardInterrupt.
    """
    decided: list[Decision] = []
    policy: Policy | Scheduler | None = None
    online = SolveState(Budget(), on_progress)
    try:
        with raising():
            policy = make()
            run, start = _online(instance, policy, online, decided)
    except KeyboardInterrupt:
        offline = online.result(instance, Status.INTERRUPTED, method, {})
        unfinished = _unfinished(instance, policy, decided)
        return CompetitiveRatio(unfinished, offline, None, is_complete=False)
    with raising():
        offline = solve_offline(instance, warm_start=start, on_progress=on_progress)
    verify(instance, offline)
    LOGGER.info("schedules of %s and offline verified", run.policy)
    if run.bounds is None:  # Theorem 4 speaks of policies with prices alone
        return CompetitiveRatio(run, offline, None)
    certificate = certify(instance, run)
    _check_theorem(offline, certificate)
    LOGGER.info("Theorem 4, corrected: no schedule exceeds %g", certificate.upper_bound)
    return CompetitiveRatio(run, offline, certificate)


def _online(
    instance: Instance, policy: Policy | Scheduler, state: SolveState, decided: list[Decision]
) -> tuple[Run, WarmStart]:
    """The run of `policy`, and where the offline solve starts: never below what it has earned."""
    if isinstance(policy, OASiS):
        return decide(instance, state, lambda: policy, decided.append)
    run = simulate(instance, policy, on_decision=decided.append)
    verify(instance, run)
    return run, WarmStart(run.schedules)


def _check_theorem(offline: OfflineResult, certificate: Certificate) -> None:
    """The corrected Theorem 4 holds on every run; if it does not, one of the two is wrong."""
    if offline.objective > certificate.upper_bound * (1 + ROUNDING):
        detail = f"a schedule is worth {offline.objective:.9g}"
        bound = f"D_0 + alpha_x P + G is {certificate.upper_bound:.9g}"
        raise VerificationError("corrected Theorem 4", f"{bound}, {detail}")


def _unfinished(
    instance: Instance, policy: Policy | Scheduler | None, decided: list[Decision]
) -> Run:
    """The run up to the last decision before Ctrl-C; `policy` is None if it was not made yet."""
    seed = instance.metadata.get("seed")
    name = OASiS.name if policy is None else policy.name
    parameters = {} if policy is None else dict(policy.parameters)
    return Run(name, parameters, tuple(decided), None, (), seed, __version__)
