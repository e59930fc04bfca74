"""The decision of a scheduler on one job, as plain data that serialises to JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from oasis.model.document import count, flag, list_of, optional, real, record, text
from oasis.model.schedule import Schedule
from oasis.model.summary import Facts, Summarised, short


@dataclass(frozen=True, slots=True, repr=False)
class Bottleneck(Summarised):
    """The resource that contributes most to a job's cheapest cost.

    Parameters
    ----------
    resource : str
        Resource type.
    group : {"worker", "ps"}
        Server group it is charged in.
    servers : tuple of str
        The fewest servers that carry at least half of that cost, dearest first.
    slots : tuple of int
        The fewest slots that carry at least half of that cost, in order of time.
    cost : float
        What the job would pay for it, in units of utility.
    share : float
        `cost` as a fraction of the job's whole cost.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=23)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> (rejection,) = [d.rejection for d in run.decisions if d.rejection is not None]
    >>> spot = rejection.bottleneck
    >>> print(spot.resource, spot.group, spot.servers, f"{spot.share:.0%}")
    cpu ps ('p0',) 99%
    """

    resource: str
    group: str
    servers: tuple[str, ...]
    slots: tuple[int, ...]
    cost: float
    share: float


@dataclass(frozen=True, slots=True, repr=False)
class Rejection(Summarised):
    """The utility at which a job that fits on the cluster would have been admitted.

    Parameters
    ----------
    smallest_utility : float
        A job with a utility above this at every completion would have been admitted: it is the
        cost of the cheapest schedule that ends by the horizon.
    smallest_utility_completion : int
        The completion slot of that cheapest schedule.
    utility_factor : float or None
        With its own utility function multiplied by more than this, the job would have been
        admitted; None if it is worth nothing at every completion slot that it can still reach.
    bottleneck : Bottleneck or None
        The resource that the cheapest schedule pays most for; None if it costs nothing.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=23)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> (rejection,) = [d.rejection for d in run.decisions if d.rejection is not None]
    >>> print(f"{rejection.smallest_utility:.2f} {rejection.utility_factor:.2f}")
    84.43 1.71
    """

    smallest_utility: float
    smallest_utility_completion: int
    utility_factor: float | None
    bottleneck: Bottleneck | None


Explanation = tuple[str, Rejection | None]  # the reason and the rejection of a decision
_LATER = ("reason", "rejection")


@dataclass(frozen=True, slots=True, repr=False)
class Decision(Summarised):
    """Outcome of quoting or submitting a job.

    Explaining a rejection may take longer than deciding on it. So `reason` and `rejection` of
    `Decision.rejected` are computed when one of them is first asked for.

    Parameters
    ----------
    job_id : str
        The job.
    admitted : bool
        Whether the job runs; for a quote, whether it would run.
    payoff, utility, cost : float
        mu_i, the utility f_i at the delay of its completion, and the cost at the prices of the
        moment: payoff = utility - cost. All 0.0 for a rejected job.
    completion : int or None
        Slot in which the last work is done; None if the job is rejected or not done in time.
    schedule : Schedule or None
        Its placements.
    reason : str or None
        Why the job was rejected, or why it earned nothing although it was admitted.
    rejection : Rejection or None
        For a rejected job: which utility would have got it admitted; None if none would have.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.OASiS.from_instance(instance)
    >>> for job in instance.jobs_by_arrival():
    ...     decision = scheduler.submit(job)
    ...     reason = (decision.reason or "admitted").partition(":")[0]
    ...     print(decision.job_id, decision.completion, reason)
    j0 8 admitted
    j1 None no room
    j2 9 admitted
    """

    job_id: str
    admitted: bool
    payoff: float = 0.0
    utility: float = 0.0
    cost: float = 0.0
    completion: int | None = None
    schedule: Schedule | None = None
    reason: str | None = None
    rejection: Rejection | None = None
    _explain: Callable[[], Explanation] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def rejected(cls, job_id: str, explain: Callable[[], Explanation]) -> Decision:
        """Build a rejection; `explain` is called once, when the reason is first read.

        Examples
        --------
        >>> from oasis.model.decision import Decision
        >>> decision = Decision.rejected("j", lambda: (print("looking"), ("no room", None))[1])
        >>> decision.admitted
        False
        >>> decision.reason
        looking
        'no room'
        >>> decision.reason
        'no room'
        """
        decision = cls(job_id, False, _explain=explain)
        for name in _LATER:  # a slot without a value makes Python ask `__getattr__`
            object.__delattr__(decision, name)
        return decision

    def __getattr__(self, name: str) -> Any:
        if name not in _LATER or self._explain is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        for later, value in zip(_LATER, self._explain(), strict=True):
            object.__setattr__(self, later, value)
        object.__setattr__(self, "_explain", None)
        return getattr(self, name)

    def summary(self) -> tuple[str, Facts]:
        """Admission and what it earns; the reason of a rejection, if it is already known."""
        if not self.admitted:
            # To show a decision must not compute anything:
            # `reason` is looked at only once it is known.
            known = [("because", self.reason)] if self._explain is None and self.reason else []
            return "Decision", [("job", self.job_id), ("rejected", ""), *known]
        when = [("completion", "none" if self.completion is None else f"slot {self.completion}")]
        worth = [(name, short(getattr(self, name))) for name in ("payoff", "utility", "cost")]
        return "Decision", [("job", self.job_id), ("admitted", ""), *when, *worth]

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain data for JSON, the inverse of `from_dict`."""
        names = (name for name in Decision.__slots__ if name != "_explain")
        data = {name: getattr(self, name) for name in names}
        data["schedule"] = self.schedule.to_dict() if self.schedule else None
        data["rejection"] = asdict(self.rejection) if self.rejection else None
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """Rebuild from `to_dict`, also after a trip through JSON; further keys do not matter.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.
        """
        return _READ(data)


_BOTTLENECK = record(
    Bottleneck,
    resource=text,
    group=text,
    servers=list_of(text),
    slots=list_of(count),
    cost=real,
    share=real,
)
_REJECTION = record(
    Rejection,
    smallest_utility=real,
    smallest_utility_completion=count,
    utility_factor=optional(real),
    bottleneck=optional(_BOTTLENECK),
)
_READ = record(
    Decision,
    job_id=text,
    admitted=flag,
    payoff=real,
    utility=real,
    cost=real,
    completion=optional(count),
    schedule=optional(Schedule.from_dict),
    reason=optional(text),
    rejection=optional(_REJECTION),
)
