"""The competitive ratio of OASiS on one instance: a number when proven, else an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import oasis
from oasis.certificate import Certificate, certify
from oasis.problem import Instance
from oasis.result import Run
from oasis.solvers import Progress, Status
from offline import OfflineResult, solve


@dataclass(frozen=True, slots=True)
class CompetitiveRatio:
    """OPT / P on one instance, with everything it rests on.

    Parameters
    ----------
    run : Run
        The online run; verified.
    offline : OfflineResult
        The offline optimum or an interval that contains it; its schedules are verified.
    certificate : Certificate
        2 alpha and the corrected constant of Theorem 4.
    """

    run: Run
    offline: OfflineResult
    certificate: Certificate

    @property
    def online_utility(self) -> float:
        """P, total utility of OASiS."""
        return self.run.total_utility

    @property
    def offline_objective(self) -> float:
        """Best offline total utility found."""
        return self.offline.objective

    @property
    def offline_upper_bound(self) -> float:
        """No schedule of the instance is worth more."""
        return self.offline.upper_bound

    @property
    def proven(self) -> bool:
        """Whether the offline optimum is proven."""
        return self.offline.status is Status.OPTIMAL

    @property
    def ratio(self) -> float | None:
        """OPT / P; None unless the optimum is proven, or if P = 0."""
        return self.lower if self.proven else None

    @property
    def lower(self) -> float | None:
        """The ratio is at least this; None if P = 0."""
        return self._over_online(self.offline.objective)

    @property
    def upper(self) -> float | None:
        """The ratio is at most this; None if P = 0."""
        return self._over_online(
            self.offline.objective if self.proven else self.offline.upper_bound
        )

    def _over_online(self, value: float) -> float | None:
        return value / self.online_utility if self.online_utility > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        certificate = self.certificate
        bound = certificate.upper_bound
        return {
            "ratio": self.ratio,
            "ratio_lower": self.lower,
            "ratio_upper": self.upper,
            "proven": self.proven,
            "online_utility": self.online_utility,
            "total_utility": self.online_utility,
            "admitted": self.run.admitted,
            "rejected": self.run.rejected,
            "jobs": len(self.run.decisions),
            "status": str(self.offline.status),
            "objective": self.offline.objective,
            "upper_bound": self.offline.upper_bound,
            "gap": self.offline.gap,
            "method": self.offline.method,
            "offline_seconds": self.offline.seconds,
            "alpha": certificate.alpha,
            "bound_2alpha": 2 * certificate.alpha,
            "log_alpha_x": certificate.log_alpha_x,
            "payoff_gap": certificate.payoff_gap,
            "initial_dual": certificate.initial_dual,
            "corrected_bound": bound if math.isfinite(bound) else None,
            "corrected_ratio_bound": certificate.ratio_bound,
            "decisions": [decision.to_dict() for decision in self.run.decisions],
            "decision_seconds": self.run.latency,
            "parameters": dict(self.run.parameters),
            "seed": self.run.seed,
            "version": self.run.version,
        }


def competitive_ratio(
    instance: Instance,
    time_limit: float = 60.0,
    *,
    method: str = "auto",
    scheduler: oasis.OASiS | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> CompetitiveRatio:
    """Run OASiS on `instance`, solve it offline and compare.

    Parameters
    ----------
    instance : Instance
        The problem.
    time_limit : float
        Seconds for the offline solve; after it, the ratio is an interval.
    method : str
        Offline method, as in `offline.solve`.
    scheduler : OASiS, optional
        A fresh scheduler for `instance`; default ``OASiS.from_instance(instance)``.
    on_progress : callable, optional
        Called with the progress of the offline solve.

    Raises
    ------
    VerificationError
        If a schedule breaks a constraint of the model.
    SolverError
        If the solver claims a bound below a verified schedule.
    """
    scheduler = scheduler or oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    oasis.verify(instance, run)
    offline = solve(
        instance,
        method=method,
        time_limit=time_limit,
        warm_start=run.schedules,
        on_progress=on_progress,
    )
    oasis.verify(instance, offline)
    return CompetitiveRatio(run, offline, certify(instance, run))
