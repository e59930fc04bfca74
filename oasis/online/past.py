"""The ledger as it was at an earlier decision, made again from what was committed."""

from __future__ import annotations

from collections.abc import Callable

from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds


class Past:
    """A ledger, and how it came to be what it is.

    A ledger is the same, to the last bit, whenever the same schedules are committed in the same
    order. So the past needs no copies: a second ledger goes through the commits again, as far as
    it is asked to. Questions in order of time go through them once.

    Parameters
    ----------
    begin : callable
        Makes the ledger with which it all began, a new one at each call.
    bounds : PriceBounds
        Of the prices.

    Attributes
    ----------
    present : Ledger
        With all commits.

    Examples
    --------
    >>> import oasis
    >>> from oasis.online.ledger import Ledger
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> job, bounds = instance.jobs[0], oasis.PriceBounds.from_instance(instance)
    >>> past = Past(lambda: Ledger.idle(instance.cluster, instance.horizon, bounds), bounds)
    >>> past.commit(job, oasis.OASiS.from_instance(instance).quote(job).schedule)
    >>> past.commits, past.present.worker_used.any(), past.after(0).worker_used.any()
    (1, np.True_, np.False_)
    """

    def __init__(self, begin: Callable[[], Ledger], bounds: PriceBounds) -> None:
        self._begin, self._bounds = begin, bounds
        self.present = begin()
        self._committed: list[tuple[Job, Schedule]] = []
        self._second: Ledger | None = None
        self._reached = 0  # commits of the second ledger

    @property
    def commits(self) -> int:
        """How many schedules have been committed."""
        return len(self._committed)

    def commit(self, job: Job, schedule: Schedule) -> None:
        """Commit to the present ledger."""
        self.present.commit(job, schedule, self._bounds)
        self._committed.append((job, schedule))

    def after(self, commits: int) -> Ledger:
        """The ledger after the first `commits` commits; only to be read, and only until the next.

        It is the present one if nothing was committed since.
        """
        if commits == self.commits:
            return self.present
        if self._second is None or self._reached > commits:
            self._second, self._reached = self._begin(), 0
        for job, schedule in self._committed[self._reached : commits]:
            self._second.commit(job, schedule, self._bounds)
        self._reached = commits
        return self._second
