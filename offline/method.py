"""What an offline method is: a name, its parameters, and one function to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from oasis.certify.verify import verify
from oasis.model.errors import InputError, InstanceError
from oasis.model.instance import Instance, expect_instance
from oasis.model.validation import LARGEST_SEED, integer
from oasis.solvers import SolveProgress, Status, highs
from oasis.solvers.budget import Budget, checked, limits
from offline.params import Params
from offline.result import OfflineResult
from offline.state import Phase, SolveState, Start, WarmStart, trivial_bound, warm_start_of

P = TypeVar("P", bound=Params)
Work = Callable[[Instance, WarmStart, SolveState, P, int], Status]


@dataclass(frozen=True, slots=True)
class Method(Generic[P]):
    """An offline method.

    Parameters
    ----------
    name : str
        As users call it.
    params : type
        Of its parameters; without arguments, the defaults.
    run : callable
        ``run(instance, warm_start, state, params, seed)`` solves until the state's budget is
        spent or optimality is proven, tells `state` what it learns, and returns why it ended.
    needs_prices : bool
        Whether it starts from OASiS's final prices.
    takes_limit : bool
        Whether it heeds its budget; an enumeration does not.
    takes_minimum : bool
        Whether it heeds `Job.min_workers`; others refuse an instance with one above 1.
    """

    name: str
    params: type[P]
    run: Work[P]
    needs_prices: bool = False
    takes_limit: bool = True
    takes_minimum: bool = False

    def solve(
        self,
        instance: Instance,
        time_limit: float | None = 60.0,
        *,
        work_limit: float | None = None,
        gap: float | None = None,
        no_improvement: float | None = None,
        seed: int = 0,
        params: P | Mapping[str, Any] | None = None,
        warm_start: Start = None,
        on_progress: Callable[[SolveProgress], None] | None = None,
    ) -> OfflineResult:
        """Solve an instance; see `offline.solve`."""
        expect_instance(instance)
        Budget.of(
            time_limit, work_limit, gap, no_improvement
        )  # refuses a bad one before OASiS runs
        if not self.takes_minimum:
            self._refuse_minimum(instance)
        time_limit = checked(time_limit)
        seed = integer(seed, "seed", maximum=LARGEST_SEED)
        chosen = self.checked_params(params)
        online = SolveState(Budget(), on_progress)
        try:
            start = warm_start_of(instance, warm_start, online, needs_prices=self.needs_prices)
        except KeyboardInterrupt:
            return online.result(instance, Status.INTERRUPTED, self.name, {})
        budget = Budget()
        if self.takes_limit:
            budget = Budget.of(time_limit, work_limit, gap, no_improvement)
        state = SolveState(budget, on_progress)
        told: dict[str, Any] = {"params": chosen.to_dict()}
        if self.takes_limit:
            told |= {
                **limits(time_limit, work_limit, gap, no_improvement),
                "seed": seed,
                "warm_start": str(start.source),
                "solver": highs.version(),
            }

        def work() -> Status:
            return self._run(instance, start, state, chosen, seed)

        return concluded(instance, state, work, self.name, told)

    def checked_params(self, params: P | Mapping[str, Any] | None) -> P:
        """Parameters as users give them: an object, plain data, or None for the defaults.

        Raises
        ------
        ValueError
            If they are those of another method, or plain data with an unknown name or a value
            that is not allowed.
        """
        if params is None:
            return self.params()
        if isinstance(params, Mapping):
            return self.params.from_dict(params)
        if not isinstance(params, self.params):
            expected, found = self.params.__name__, type(params).__name__
            raise InputError("params", f"method {self.name!r} takes {expected}, got {found}")
        return params

    def _refuse_minimum(self, instance: Instance) -> None:
        for k, job in enumerate(instance.jobs):
            if job.min_workers > 1:
                expected = f"expected 1: method {self.name!r} counts workers from one on"
                found = f"got {job.min_workers} (job {job.id!r}); use method 'auto'"
                raise InstanceError(f"jobs[{k}].min_workers", f"{expected}, {found}")

    def _run(
        self, instance: Instance, start: WarmStart, state: SolveState, params: P, seed: int
    ) -> Status:
        state.enter(start.source)
        state.found(verify(instance, start.schedules), start.schedules)
        return self.run(instance, start, state, params, seed)


def concluded(
    instance: Instance,
    state: SolveState,
    work: Callable[[], Status],
    method: str,
    parameters: Mapping[str, Any],
) -> OfflineResult:
    """Do `work`, which tells `state` what it learns; Ctrl-C ends it with what is known then."""
    try:
        state.proved(trivial_bound(instance), Phase.TRIVIAL)
        status = work()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return state.result(instance, status, method, {**parameters, **state.notes})
