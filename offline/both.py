"""The decomposition and the compact model on one instance: at once, or one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.benders.params import BendersParams
from offline.benders.solve import Benders
from offline.model.milp import CompactMethod, CompactParams
from offline.params import Amount, Params, Share
from offline.problem import Method, OfflineProblem, seed_of
from offline.processes import Helper, ProcessTask, has_second_core
from offline.state import Phase


@dataclass(frozen=True, slots=True)
class BothParams(Params):
    """How the method "both" shares the time between its two parts.

    Parameters
    ----------
    benders : BendersParams
        What steers the decomposition.
    milp : CompactParams
        What steers the compact model.
    head_start : float
        Seconds that the decomposition has alone before the compact model joins it in a process
        of its own, where both run at once. Most instances of a few servers are proven by then.
    first_share : float
        Share of the limit that the decomposition gets where the two run one after the other; the
        compact model has the rest.

    Examples
    --------
    >>> from offline import BothParams
    >>> BothParams.from_dict({"milp": {"presolve": False}}).milp.presolve
    False
    """

    benders: BendersParams = field(default_factory=BendersParams)
    milp: CompactParams = field(default_factory=CompactParams)
    head_start: Amount = 3.0
    first_share: Share = 0.8


class Both(Method[BothParams]):
    """Method "both": the decomposition, and the compact model in a second process.

    ``result.parameters`` has ``processes`` where a second one was started, and
    ``compact_model_failed`` with the reason if that failed and the decomposition went on alone.
    """

    name, kind, needs_prices = "both", BothParams, True

    def solve(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """Solve by the two at once; one after the other where work counts, or on a single core."""
        params, state = self.params, problem.state
        if stop.is_repeatable or not has_second_core():
            return self._in_turn(problem, stop, rng)
        task = ProcessTask("compact model", Phase.COMPACT, params.milp, seed_of(rng))
        benders = replace(params.benders, second_process=False)
        with Helper(problem.instance, state, task, params.head_start):
            return Benders(benders).solve(problem, stop, rng)

    def _in_turn(self, problem: OfflineProblem, stop: Budget, rng: np.random.Generator) -> Status:
        """The decomposition with its share of the limit, then the compact model with the rest."""
        params, state = self.params, problem.state
        for method, share in (
            (Benders(params.benders), params.first_share),
            (CompactMethod(params.milp), 1.0),
        ):
            if state.is_proven or stop.passed:
                break
            method.solve(problem, stop.share(share), rng)
        return Status.OPTIMAL if state.is_proven else stop.status
