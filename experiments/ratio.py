"""The competitive ratio of OASiS on one instance: a number when proven, else an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from oasis.certificate import Certificate, certify
from oasis.online import OASiS
from oasis.problem import Instance
from oasis.result import Decision, Run
from oasis.solvers import Progress, Status
from oasis.verify import verify
from oasis.version import __version__
from offline import OfflineResult, solve
from offline.deadline import Deadline
from offline.standing import Standing
from offline.start import ONLINE, decide


@dataclass(frozen=True, slots=True)
class CompetitiveRatio:
    """OPT / P on one instance, with everything it rests on.

    Parameters
    ----------
    run : Run
        The online run; verified. If Ctrl-C ended it, the decisions by then.
    offline : OfflineResult
        The offline optimum or an interval that contains it; its schedules are verified.
    certificate : Certificate or None
        2 alpha and the corrected constant of Theorem 4; None if Ctrl-C ended the online run.
    """

    run: Run
    offline: OfflineResult
    certificate: Certificate | None

    @property
    def online_utility(self) -> float:
        """P, total utility of OASiS; at most P if Ctrl-C ended its run."""
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
        """Whether the offline optimum is proven, and the online run complete."""
        return self.offline.status is Status.OPTIMAL and self.certificate is not None

    @property
    def ratio(self) -> float | None:
        """OPT / P; None unless the optimum is proven, or if P = 0."""
        return self.lower if self.proven else None

    @property
    def lower(self) -> float | None:
        """The ratio is at least this; None if P = 0."""
        if self.certificate is None:  # P may still grow, but no schedule is worth more than OPT
            return self._over_online(self.online_utility)
        return self._over_online(self.offline.objective)

    @property
    def upper(self) -> float | None:
        """The ratio is at most this; None if P = 0."""
        return self._over_online(
            self.offline.objective if self.proven else self.offline.upper_bound
        )

    @property
    def bound_2alpha(self) -> float | None:
        """2 alpha, the ratio that Theorem 4 prints; None if the online run did not end."""
        return None if self.certificate is None else 2 * self.certificate.alpha

    @property
    def corrected_ratio_bound(self) -> float | None:
        """What the corrected Theorem 4 bounds the ratio by; None without or where it overflows."""
        return None if self.certificate is None else self.certificate.ratio_bound

    def _over_online(self, value: float) -> float | None:
        return value / self.online_utility if self.online_utility > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        offline = self.offline
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
            "status": str(offline.status),
            "objective": offline.objective,
            "upper_bound": offline.upper_bound,
            "gap": offline.gap,
            "objective_by": offline.objective_by,
            "bound_by": offline.bound_by,
            "method": offline.method,
            "offline_parameters": dict(offline.parameters),
            "offline_seconds": offline.seconds,
            "history": [milestone.to_dict() for milestone in offline.history],
            **_guarantees(self.certificate),
            "decisions": [decision.to_dict() for decision in self.run.decisions],
            "decision_seconds": self.run.latency,
            "parameters": dict(self.run.parameters),
            "seed": self.run.seed,
            "version": self.run.version,
        }


def _guarantees(certificate: Certificate | None) -> dict[str, float | None]:
    """What theory promises; null where the run that it speaks of did not end."""
    if certificate is None:
        return dict.fromkeys(GUARANTEES)
    bound = certificate.upper_bound
    values = (
        certificate.alpha,
        2 * certificate.alpha,
        certificate.log_alpha_x,
        certificate.payoff_gap,
        certificate.initial_dual,
        bound if math.isfinite(bound) else None,
        certificate.ratio_bound,
    )
    return dict(zip(GUARANTEES, values, strict=True))


GUARANTEES = (
    "alpha",
    "bound_2alpha",
    "log_alpha_x",
    "payoff_gap",
    "initial_dual",
    "corrected_bound",
    "corrected_ratio_bound",
)


def competitive_ratio(
    instance: Instance,
    time_limit: float = 60.0,
    *,
    method: str = "auto",
    scheduler: OASiS | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> CompetitiveRatio:
    """Run OASiS on `instance`, solve it offline and compare.

    Parameters
    ----------
    instance : Instance
        The problem.
    time_limit : float
        Seconds for the offline solve; after it, the ratio is an interval. So it is after Ctrl-C.
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

    def make() -> OASiS:
        return scheduler or OASiS.from_instance(instance)

    return measure(instance, make, time_limit, method, on_progress, nullcontext)


def measure(
    instance: Instance,
    make: Callable[[], OASiS],
    time_limit: float,
    method: str,
    on_progress: Callable[[Progress], None] | None,
    raising: Callable[[], AbstractContextManager[None]],
) -> CompetitiveRatio:
    """As `competitive_ratio`; Ctrl-C only has to be heard where `raising` is entered."""
    decided: list[Decision] = []
    online = Standing(Deadline(), on_progress)
    try:
        with raising():
            run = decide(instance, online, make, decided.append)
    except KeyboardInterrupt:
        offline = online.result(instance, Status.INTERRUPTED, method, {})
        return CompetitiveRatio(_unfinished(instance, decided), offline, None)
    with raising():
        offline = solve(instance, method, time_limit, run.schedules, on_progress)
    offline = offline.from_start(ONLINE)
    verify(instance, offline)
    return CompetitiveRatio(run, offline, certify(instance, run))


def _unfinished(instance: Instance, decided: list[Decision]) -> Run:
    """The part of an online run that Ctrl-C left."""
    seed = instance.metadata.get("seed")
    return Run(OASiS.name, {}, tuple(decided), None, (), seed, __version__)
