"""A competitive ratio: a number when the optimum is proven, else an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oasis.certify.certificate import Certificate
from oasis.model.document import entry, flag, mapping, optional, real
from oasis.model.schedule import schedules_by_job
from oasis.model.summary import Facts, Summarised, short
from oasis.simulator.result import Run
from oasis.solvers import Status
from offline import OfflineResult


@dataclass(frozen=True, slots=True, repr=False)
class CompetitiveRatio(Summarised):
    """OPT / P on one instance, with everything it rests on.

    Parameters
    ----------
    run : Run
        The online run; verified. If Ctrl-C ended it, the decisions by then.
    offline : OfflineResult
        The offline optimum or an interval that contains it; its schedules are verified.
    certificate : Certificate or None
        2 alpha and the corrected constant of Theorem 4; None for a policy without prices, and if
        Ctrl-C ended the online run.
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
    certificate: Certificate | None
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
        """Whether the offline optimum is proven, and the online run complete."""
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
        if not self.proven:  # Ctrl-C can end the solve before it knows the schedules of the run
            return self._over_online(max(self.offline.objective, self.online_utility))
        return self._over_online(self.offline.objective)

    @property
    def upper(self) -> float | None:
        """An upper bound on the ratio; None if P = 0."""
        return self._over_online(
            self.offline.objective if self.proven else self.offline.upper_bound
        )

    @property
    def bound_2alpha(self) -> float | None:
        """2 alpha, the ratio that Theorem 4 prints; None without a certificate."""
        return None if self.certificate is None else 2 * self.certificate.alpha

    @property
    def corrected_ratio_bound(self) -> float | None:
        """What the corrected Theorem 4 bounds the ratio by; None without or where it overflows."""
        return None if self.certificate is None else self.certificate.ratio_bound

    def _over_online(self, value: float) -> float | None:
        return value / self.online_utility if self.online_utility > 0 else None

    def summary(self) -> tuple[str, Facts]:
        """The ratio, proven or not, and the two utilities that it divides."""
        found = f"between {short(self.lower)} and {short(self.upper)} (not proven)"
        if self.proven:
            found = f"{short(self.ratio)} (proven)"
        return "CompetitiveRatio", [
            ("ratio", found),
            (self.run.policy, short(self.online_utility)),
            ("offline", short(self.offline_objective)),
            ("at most", short(self.offline_upper_bound)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        offline, run = self.offline, self.run.to_dict()
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
            "status": str(offline.status),
            "objective": offline.objective,
            "upper_bound": offline.upper_bound,
            "gap": offline.gap,
            "objective_by": offline.objective_by,
            "bound_by": offline.bound_by,
            "method": offline.method,
            "offline_parameters": dict(offline.parameters),
            "offline_seconds": offline.seconds,
            "offline_schedules": [schedule.to_dict() for schedule in offline.schedules.values()],
            "history": [milestone.to_dict() for milestone in offline.history],
            "is_complete": self.is_complete,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            **_guarantees(self.certificate),
            **{name: run[name] for name in OF_THE_RUN},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompetitiveRatio:
        """Rebuild from `to_dict`, also after a trip through JSON; further keys do not matter.

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
        offline = OfflineResult.from_dict({**data, **renamed, "schedules": []})
        schedules = entry(data, "offline_schedules", schedules_by_job)
        return cls(
            Run.from_dict(data),
            replace(offline, schedules=schedules),
            entry(data, "certificate", optional(Certificate.from_dict)),
            entry(data, "is_complete", flag),
        )


KIND = "ratio"
OF_THE_RUN = (
    *("bounds", "decisions", "decision_seconds", "report", "simulation"),
    *("policy", "parameters", "seed", "version"),
)


def _guarantees(certificate: Certificate | None) -> dict[str, float | None]:
    """The constants of the certificate by name; all None if the online run did not end."""
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
