"""Parameters of the decomposition and the compact model together."""

from __future__ import annotations

from dataclasses import dataclass, field

from offline.benders.params import BendersParams
from offline.model.params import CompactParams
from offline.params import Amount, Params, Share


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
