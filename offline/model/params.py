"""Parameters of the compact model."""

from __future__ import annotations

from dataclasses import dataclass

from offline.params import Params


@dataclass(frozen=True, slots=True)
class CompactParams(Params):
    """How HiGHS solves the compact model.

    Parameters
    ----------
    presolve : bool
        Whether HiGHS may simplify the model first. False is for cross-checks.

    Examples
    --------
    >>> from offline import CompactParams
    >>> CompactParams().presolve
    True
    """

    presolve: bool = True
