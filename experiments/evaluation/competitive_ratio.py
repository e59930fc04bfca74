"""A competitive ratio: a number when the optimum is proven, otherwise an interval."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import EllipsisType
from typing import Any

from oasis.certify.certificate import (
    Certificate,
    WeakDuality,
    any_certificate,
    certify,
)
from oasis.certify.verify import verify
from oasis.model.decision import Decision
from oasis.model.document import entry, flag, mapping, optional, real
from oasis.model.errors import InputError, SolverError, VerificationError
from oasis.model.instance import Instance, expect_instance
from oasis.model.schedule import schedules_by_job
from oasis.model.summary import Facts, Summarised, short
from oasis.online.oasis import OASiS
from oasis.scheduling.policy_check import check_interface
from oasis.simulator import Policy
from oasis.simulator.result import Run
from oasis.solvers import PROOF, SolveProgress, Status
from oasis.solvers.budget import Budget, Stop, stop_of
from oasis.version import __version__
from offline.result import OfflineResult
from offline.solve import solve
from offline.state import Phase, SolveState, decide


@dataclass(frozen=True, slots=True, repr=False)
class CompetitiveRatio(Summarised):
    """OPT / P on one instance, with everything it rests on.

    Parameters
    ----------
    run : Run
        The online run; verified. If Ctrl-C ended it, the decisions by then.
    offline : OfflineResult
        The offline optimum or an interval that contains it; its schedules are verified.
    certificate : Certificate, WeakDuality or None
        2 alpha and the corrected constant of Theorem 4, or at prices of one's own the bound of weak
        duality; None for a policy without prices, and if Ctrl-C ended the online run.
    is_complete : bool
        Whether the online run came to its end.

    Examples
    --------
    >>> import oasis
    >>> from experiments import competitive_ratio
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> result.proven, 1 <= result.lower <= result.upper <= result.corrected_ratio_bound
    (True, True)
    """

    run: Run
    offline: OfflineResult
    certificate: Certificate | WeakDuality | None
    is_complete: bool = True

    @property
    def online_utility(self) -> float:
        """P, total utility of the policy; at most P if Ctrl-C ended its run."""
        return self.run.total_utility

    @property
    def offline_objective(self) -> float:
        """Total utility of the best offline schedule found."""
        return self.offline.objective

    @property
    def offline_upper_bound(self) -> float:
        """An upper bound on the offline optimum."""
        return self.offline.upper_bound

    @property
    def proven(self) -> bool:
        """Whether the offline optimum is proven and the online run is complete."""
        return self.offline.status is Status.OPTIMAL and self.is_complete

    @property
    def ratio(self) -> float | None:
        """OPT / P; None unless the optimum is proven, or if P = 0."""
        return self.lower if self.proven else None

    @property
    def lower(self) -> float | None:
        """A lower bound on the ratio; None if P = 0."""
        if not self.is_complete:  # P may still grow, but no schedule is worth more than OPT
            return self._over_online(self.online_utility)
        # The solve need not know the schedules of the run: Ctrl-C ended it, or it came before.
        return self._over_online(max(self.offline.objective, self.online_utility))

    @property
    def upper(self) -> float | None:
        """An upper bound on the ratio; None if P = 0."""
        return self.lower if self.proven else self._over_online(self.offline.upper_bound)

    @property
    def bound_2alpha(self) -> float | None:
        """2 alpha, the ratio printed in Theorem 4; None without its certificate."""
        return 2 * self.certificate.alpha if isinstance(self.certificate, Certificate) else None

    @property
    def corrected_ratio_bound(self) -> float | None:
        """Bound on the ratio by the corrected Theorem 4; None if uncertified or infinite."""
        return None if self.certificate is None else self.certificate.ratio_bound

    def _over_online(self, value: float) -> float | None:
        return value / self.online_utility if self.online_utility > 0 else None

    def summary(self) -> tuple[str, Facts]:
        """Return a title and facts: the ratio, proven or not, and the two utilities."""
        ratio = f"between {short(self.lower)} and {short(self.upper)} (not proven)"
        if self.proven:
            ratio = f"{short(self.ratio)} (proven)"
        return "CompetitiveRatio", [
            ("ratio", ratio),
            (self.run.policy, short(self.online_utility)),
            ("offline", short(self.offline_objective)),
            ("at most", short(self.offline_upper_bound)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which `from_dict` reads."""
        run, solved, certificate = self.run.to_dict(), self.offline.to_dict(), self.certificate
        bound = math.inf if certificate is None else certificate.upper_bound
        return {
            "kind": KIND,
            "ratio": self.ratio,
            "ratio_lower": self.lower,
            "ratio_upper": self.upper,
            "proven": self.proven,
            "online_utility": self.online_utility,
            "total_utility": self.online_utility,
            "admitted": self.run.admitted,
            "rejected": self.run.rejected,
            "jobs": len(self.run.decisions),
            **{name: solved[name.removeprefix("offline_")] for name in OF_THE_SOLVE},
            "is_complete": self.is_complete,
            "certificate": None if certificate is None else certificate.to_dict(),
            "alpha": getattr(certificate, "alpha", None),
            "bound_2alpha": self.bound_2alpha,
            # Constants of Theorem 4: weak duality alone has none.
            **{name: getattr(certificate, name, None) for name in CONSTANTS},
            "corrected_bound": bound if math.isfinite(bound) else None,  # JSON has no infinity
            "corrected_ratio_bound": self.corrected_ratio_bound,
            **{name: run[name] for name in OF_THE_RUN},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompetitiveRatio:
        """Make a result from the data of `to_dict`, also as read from JSON; ignore further keys.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.

        Examples
        --------
        >>> import oasis
        >>> from experiments import CompetitiveRatio, competitive_ratio
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> document = competitive_ratio(instance, method="milp").to_dict()
        >>> CompetitiveRatio.from_dict(document).to_dict() == document
        True
        """
        renamed = {
            "parameters": entry(data, "offline_parameters", mapping),
            "seconds": entry(data, "offline_seconds", real),
        }
        # The document has two solutions, so the schedules
        # of the offline one stand under another key.
        offline = OfflineResult.from_dict({**data, **renamed, "schedules": []})
        schedules = entry(data, "offline_schedules", schedules_by_job)
        return cls(
            Run.from_dict(data),
            replace(offline, schedules=schedules),
            entry(data, "certificate", optional(any_certificate)),
            entry(data, "is_complete", flag),
        )


KIND = "ratio"
CONSTANTS = ("log_alpha_x", "payoff_gap", "initial_dual")
OF_THE_RUN = (
    *("bounds", "decisions", "decision_seconds", "report", "simulation"),
    *("policy", "parameters", "seed", "version"),
)
OF_THE_SOLVE = (
    *("status", "objective", "upper_bound", "gap", "objective_by", "bound_by", "method"),
    *("offline_parameters", "offline_seconds", "offline_schedules", "history"),
)


__all__ = ["CompetitiveRatio", "competitive_ratio", "measure"]

LOGGER = logging.getLogger(__name__)
ROUNDING = 1e-9  # relative, of the corrected bound


def competitive_ratio(
    instance: Instance,
    policy: Policy | None = None,
    *,
    offline: OfflineResult | None = None,
    method: str = "auto",
    stop: Stop | None = None,
    seed: int = 0,
    on_progress: Callable[[SolveProgress], None] | None = None,
    time_limit: float | EllipsisType | None = ...,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
) -> CompetitiveRatio:
    """Run OASiS, or another policy, on `instance`, solve it offline and compare.

    Parameters
    ----------
    instance : Instance
        The problem.
    policy : OASiS or any policy, optional
        A fresh one for `instance`; default ``OASiS.from_instance(instance)``.
    offline : OfflineResult, optional
        Of an earlier solve of `instance`, so that one solve serves several policies. Nothing is
        solved then, and the arguments of the solve are not needed.
    method : str
        Offline method, as in `offline.solve`.
    stop : Stop, optional
        When the offline solve ends, as in `offline.solve`, default after 60 seconds. Without a
        proof by then, or by Ctrl-C, the ratio is an interval.
    seed : int
        Seed of the offline solve.
    on_progress : callable, optional
        Called with the progress of the online run and of the offline solve.
    time_limit, work_limit, gap, no_improvement : float, optional
        Shorthands for criteria of `stop`, as in `offline.solve`.

    Raises
    ------
    VerificationError
        If a schedule breaks a constraint of the model, also one of `offline`, or is worth more than
        the corrected Theorem 4 allows.
    SolverError
        If the solver claims a bound below a verified schedule.

    Examples
    --------
    >>> import oasis
    >>> from baselines import DRF, FIFO
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> result = competitive_ratio(instance, method="milp")
    >>> result.proven and result.ratio == result.lower == result.upper
    True
    >>> others = [competitive_ratio(instance, p, offline=result.offline) for p in (FIFO(), DRF())]
    >>> [other.proven for other in others]
    [True, True]
    """
    expect_instance(instance)

    def make() -> Policy:
        return policy or OASiS.from_instance(instance)

    limits = (time_limit, work_limit, gap, no_improvement)
    if offline is None:
        stops = stop_of(stop, *limits)
        solving: Callable[..., OfflineResult] = partial(solve, method=method, stop=stops, seed=seed)
    elif stop is None and limits == (..., None, None, None):
        worth = verify(instance, offline)
        if not math.isclose(worth, offline.objective, rel_tol=PROOF):
            detail = f"its schedules are worth {worth:.9g}, it states {offline.objective:.9g}"
            raise VerificationError("offline", detail)
        solving = partial(lambda known, *_, **__: known, offline)
    else:
        raise InputError("offline", "expected no limits beside it, because nothing is solved")
    return measure(instance, make, solving, method, on_progress, nullcontext)


def measure(
    instance: Instance,
    make: Callable[[], Policy],
    solve_offline: Callable[..., OfflineResult],
    method: str,
    on_progress: Callable[[SolveProgress], None] | None,
    raising: Callable[[], AbstractContextManager[None]],
) -> CompetitiveRatio:
    """Run and solve as `competitive_ratio`; inside `raising()`, Ctrl-C raises KeyboardInterrupt."""
    decided: list[Decision] = []
    policy: Policy | None = None
    online = SolveState(instance, Budget(), on_progress)
    try:
        with raising():
            made = make()
            check_interface(made)
            policy = made
            phase = Phase.ONLINE if isinstance(made, OASiS) else Phase.WARM_START
            run, start = decide(online, lambda: made, decided.append, phase)
    except KeyboardInterrupt:
        offline = online.result(Status.INTERRUPTED, method, {})
        seed = instance.metadata.get("seed")
        # The policy may not have been made by then.
        name, parameters = (OASiS.name, {}) if policy is None else (policy.name, policy.parameters)
        unfinished = Run(name, dict(parameters), tuple(decided), None, (), seed, __version__)
        return CompetitiveRatio(unfinished, offline, None, is_complete=False)
    with raising():
        offline = solve_offline(instance, warm_start=start, on_progress=on_progress)
    if run.total_utility > offline.upper_bound * (1 + PROOF) + PROOF:
        detail = f"{run.policy} earned {run.total_utility:.9g}"
        raise SolverError(f"{detail}, more than the offline upper bound {offline.upper_bound:.9g}")
    if run.bounds is None:  # Theorem 4 speaks of policies with prices alone
        return CompetitiveRatio(run, offline, None)
    certificate = certify(instance, run)
    # The corrected Theorem 4 holds on every run; a verified schedule above its bound refutes it,
    # be the optimum proven or not: then one of the two is wrong.
    if offline.objective > certificate.upper_bound * (1 + ROUNDING):
        detail = f"a schedule is worth {offline.objective:.9g}"
        bound = f"the certificate says at most {certificate.upper_bound:.9g}"
        raise VerificationError("corrected Theorem 4", f"{bound}, {detail}")
    LOGGER.info("Theorem 4, corrected: no schedule exceeds %g", certificate.upper_bound)
    return CompetitiveRatio(run, offline, certificate)
