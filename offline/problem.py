"""The problem that a method solves, and the protocol of methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from oasis.model.errors import InputError
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.model.arrays import OfflineArrays
from offline.params import Params
from offline.processes import Partner
from offline.state import SolveState, WarmStart

P = TypeVar("P", bound=Params)


class OfflineProblem:
    """An instance, its arrays, and the state of the solve."""

    def __init__(self, start: WarmStart, state: SolveState) -> None:
        self.instance, self.start, self.state = state.instance, start, state
        self.arrays = OfflineArrays.of(state.instance)


class Method(ABC, Generic[P]):
    """A method to solve the offline problem."""

    name: ClassVar[str]
    kind: ClassVar[type[Params]]
    needs_prices: ClassVar[bool] = False
    heeds_limits: ClassVar[bool] = True

    def __init__(self, params: P | Mapping[str, Any] | None = None) -> None:
        self.params: P = cast("P", checked_params(self.name, self.kind, params))

    @abstractmethod
    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Solve until `stop` is spent or optimality is proven; return why the solve ended."""

    def assist(
        self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator, partner: Partner
    ) -> Status:
        """Help the solve of another process, the `partner`; by default, by solving too."""
        return self.solve(problem, stop, rng)


def checked_params(
    method: str, kind: type[Params], params: Params | Mapping[str, Any] | None
) -> Params:
    """Return parameters, as users give them to a method, as an object of `kind`."""
    if params is None:
        return kind()
    if isinstance(params, Mapping):
        return kind.from_dict(params)
    if not isinstance(params, kind):
        expected = f"expected {kind.__name__} for method {method!r}"
        raise InputError("params", expected, params)
    return params


def seed_of(rng: np.random.Generator) -> int:
    """Return the seed that `rng` was made with, for solvers and processes with own generators."""
    sequence = cast("np.random.SeedSequence", rng.bit_generator.seed_seq)
    return int(cast("int", sequence.entropy))
