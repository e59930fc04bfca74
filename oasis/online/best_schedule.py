"""Algorithm 2: the schedule with the best payoff at given prices (21), (27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision, Rejection
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, payoff_noise
from oasis.model.schedule import Schedule
from oasis.model.summary import Facts, Summarised, short
from oasis.online.ledger import Ledger
from oasis.online.rejection import Cost, explanation, schedule_cost
from oasis.online.search import Granularity, Search, searches


@dataclass(frozen=True, slots=True, repr=False)
class BestSchedule(Summarised):
    """Result of `best_schedule`.

    Parameters
    ----------
    payoff : float
        mu_i = utility - cost; 0.0 without a schedule.
    utility, cost : float
        f_i at the completion and the price of everything used; 0.0 without a schedule.
    completion : int or None
        Slot in which the last work is done.
    schedule : Schedule or None
        Placements of the workers and parameter servers.
    reason : str or None
        Why there is no schedule.
    breakdown : Cost or None
        `cost` split by slot, server and resource.
    rejection : Rejection or None
        Without a schedule: which utility would have led to one; None if none would have.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> ledger = oasis.OASiS.from_instance(instance).ledger
    >>> best = oasis.best_schedule(
    ...     instance.jobs[0],
    ...     instance.cluster,
    ...     instance.horizon,
    ...     ledger.worker_prices,
    ...     ledger.ps_prices,
    ...     ledger.worker_used,
    ...     ledger.ps_used,
    ... )
    >>> print(f"{best.utility:.2f} - {best.cost:.2f} = {best.payoff:.2f}")
    28.05 - 0.35 = 27.70
    """

    payoff: float
    utility: float
    cost: float
    completion: int | None
    schedule: Schedule | None
    reason: str | None
    breakdown: Cost | None
    rejection: Rejection | None

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and payoff, utility, cost, completion, or why there are none."""
        if self.schedule is None:
            return "BestSchedule", [("none", self.reason or "")]
        worth = [(name, short(getattr(self, name))) for name in ("payoff", "utility", "cost")]
        return "BestSchedule", [*worth, ("completion", f"slot {self.completion}")]


def best_schedule(
    job: Job,
    cluster: Cluster,
    horizon: int,
    worker_prices: FloatArray,
    ps_prices: FloatArray,
    worker_used: FloatArray,
    ps_used: FloatArray,
    granularity: Granularity = "worker-slot",
    min_utility_fraction: float = 0.0,
) -> BestSchedule:
    """Find the schedule of `job` with the largest payoff (Algorithm 2).

    Parameters
    ----------
    job : Job
        The arriving job; its schedules are those of all its forms (`Schedule.form`).
    cluster : Cluster
        H worker servers and K hosts of parameter servers with R resources.
    horizon : int
        Number of slots T.
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        p_h^r(t), q_k^r(t), utility per unit of resource r.
    worker_used, ps_used : (T, H, R) and (T, K, R) float arrays
        g_h^r(t), v_k^r(t), units of resource r already committed.
    granularity : {"worker-slot", "chunk"}
        Exact in worker-slots, or the printed restriction to whole chunks per slot.
    min_utility_fraction : float
        Completions worth less than this fraction of the best count as worthless.

    Returns
    -------
    BestSchedule
        Without a schedule of positive payoff, `payoff` is 0.0 and `reason` says why.

    Raises
    ------
    ValueError
        If an array has the wrong shape or `granularity` is unknown.
    InstanceError
        If the job names a resource that the cluster does not have.

    References
    ----------
    arXiv 1801.00936, Algorithm 2; Theorem 1 proves it optimal for (27).

    Examples
    --------
    Prices 0 on an idle cluster: the job runs as early as it can and pays nothing.

    >>> import numpy as np
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> job, cluster, horizon = instance.jobs[0], instance.cluster, instance.horizon
    >>> worker = np.zeros((horizon, *cluster.worker_capacity.shape))
    >>> ps = np.zeros((horizon, *cluster.ps_capacity.shape))
    >>> best = oasis.best_schedule(job, cluster, horizon, worker, ps, worker, ps)
    >>> best.completion, best.cost, round(best.payoff, 2)
    (8, 0.0, 28.05)
    """
    cluster.check(job)
    shapes = {str(group): (horizon, *group.capacity(cluster).shape) for group in GROUPS}
    arrays = {
        "worker_prices": np.asarray(worker_prices, dtype=np.float64),
        "ps_prices": np.asarray(ps_prices, dtype=np.float64),
        "worker_used": np.asarray(worker_used, dtype=np.float64),
        "ps_used": np.asarray(ps_used, dtype=np.float64),
    }
    for name, array in arrays.items():
        expected = shapes[name.partition("_")[0]]
        if array.shape != expected:
            raise InputError(name, f"expected shape {expected}", array.shape)
        if not (np.isfinite(array).all() and (array >= 0).all()):
            raise InputError(name, "expected finite numbers >= 0")
    ledger = Ledger.of_arrays(cluster, **arrays)
    return result_of(searches(job, ledger, granularity, min_utility_fraction))


def result_of(forms: Sequence[Search]) -> BestSchedule:
    """Return the best schedule of these searches, or a result that says why there is none."""
    best = found_by(forms)
    if best is not None:
        return best
    reason, rejection = explanation(forms)
    return BestSchedule(0.0, 0.0, 0.0, None, None, reason, None, rejection)


def found_by(forms: Sequence[Search]) -> BestSchedule | None:
    """The best schedule in any form of a job; None if no schedule has a positive payoff.

    Among equal ones, the schedule that completes first; then the one in the first form.
    """
    result = None
    for search in sorted(forms, key=lambda search: -search.most_worth):
        # What costs nothing and ends as soon as it can pays no more than this: the
        # forms that are left need not be searched.
        if result is not None and search.most_worth < result.payoff - payoff_noise(
            result.utility, result.cost
        ):
            break
        candidate = _found_by(search)
        if candidate is not None and (result is None or _is_better(candidate, result)):
            result = candidate
    return result


def _is_better(candidate: BestSchedule, than: BestSchedule) -> bool:
    """Whether `candidate` pays more, or as much with an earlier completion or form."""
    gain = candidate.payoff - than.payoff
    noise = max(payoff_noise(split.utility, split.cost) for split in (candidate, than))
    if abs(gain) > noise:
        return gain > 0
    assert candidate.schedule is not None  # a payoff is that of a schedule
    assert than.schedule is not None
    return (candidate.schedule.completion, candidate.schedule.form) < (
        than.schedule.completion,
        than.schedule.form,
    )


def _found_by(search: Search) -> BestSchedule | None:
    """Return the best schedule in the form of `search`; None if none has a positive payoff."""
    # Alg. 2 in two steps: how many workers in which slot, then which servers. Costs of a slot
    # depend on the count alone, so the servers are chosen for the winning split only.
    split = search.best()
    if split is None:
        return None
    schedule = search.schedule(split)
    # The payoff reported is that of the schedule itself, not of the sums on the way to it.
    breakdown = schedule_cost(schedule, search.job, search.ledger)
    utility = float(search.ends.utility[schedule.completion - search.ends.first])
    cost = breakdown.total
    if utility <= cost:  # these sums may round differently from those of the search
        return None
    return BestSchedule(
        utility - cost, utility, cost, schedule.completion, schedule, None, breakdown, None
    )


def decide(forms: Sequence[Search]) -> Decision:
    """Return the decision on a job: admitted if a schedule has positive payoff (Alg. 1, l. 5-7)."""
    job_id, best = forms[0].job.id, result_of(forms)
    if best.schedule is None:
        return Decision(job_id, False, reason=best.reason, rejection=best.rejection)
    return admitted(job_id, best)


def admitted(job_id: str, best: BestSchedule) -> Decision:
    """Return the decision that admits a job with its best schedule."""
    return Decision(
        job_id, True, best.payoff, best.utility, best.cost, best.completion, best.schedule
    )
