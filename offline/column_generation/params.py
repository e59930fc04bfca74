"""Parameters of the column generation, and of the method that follows it with heuristics."""

from __future__ import annotations

from dataclasses import dataclass, field

from offline.heuristics.params import (
    AlternationParams,
    WindowParams,
)
from offline.params import Amount, Number, Params, Share
from offline.patterns import CutParams


@dataclass(frozen=True, slots=True)
class ColumnGenerationParams(Params):
    """Parameters of the configuration LP.

    Parameters
    ----------
    tolerance : float
        Relative difference of bound and restricted master at which the LP counts as solved.
    classes : tuple of int
        Most classes of servers a group, from coarse to fine; identical servers come last.
    smoothing_step : float
        How much the weight of the stability centre in the next prices changes after a round.

    Examples
    --------
    >>> import oasis
    >>> from offline import ColumnGenerationParams, configuration_bound
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> rough = configuration_bound(instance, params=ColumnGenerationParams(tolerance=0.1))
    >>> rough.bound >= configuration_bound(instance).bound * (1 - 1e-9)
    True
    """

    tolerance: Amount = 1e-6
    classes: tuple[Number, ...] = (1, 6)
    smoothing_step: Share = 0.1


@dataclass(frozen=True, slots=True)
class CuttingParams(Params):
    """Parameters of the single-slot cuts that lower the bound of the configuration LP.

    Parameters
    ----------
    pricing : ColumnGenerationParams
        How the LP is solved between two rounds of cuts.
    tolerance : float
        The tolerance of `pricing` in the end, after the last round.
    patterns : CutParams
        How cuts on the counts of a slot are looked for.
    classes : int
        Most classes of servers a group that have rows of their own, where the LP without cuts
        took longer than its share; else identical servers share a row, as in that.
    enough : int
        Number of known violated cuts that are added before new ones are searched.
    search_limit : float
        Seconds or units of work after which a search that has found new cuts ends.
    patience : int
        Rounds over which the value of the LP must fall.
    least_progress : float
        Relative fall over these rounds below which there are no more.

    Examples
    --------
    >>> from offline import ConfigurationParams
    >>> ConfigurationParams.from_dict({"cutting": {"patience": 5}}).cutting.patience
    5
    """

    pricing: ColumnGenerationParams = field(
        default_factory=lambda: ColumnGenerationParams(tolerance=5e-4)
    )
    tolerance: Amount = 1e-6
    patterns: CutParams = field(default_factory=CutParams)
    classes: Number = 3
    enough: Number = 10
    search_limit: Amount = 10.0
    patience: Number = 3
    least_progress: Amount = 2e-4


@dataclass(frozen=True, slots=True)
class ConfigurationParams(Params):
    """Division of time in the method "colgen".

    Parameters
    ----------
    pricing : ColumnGenerationParams
        What steers the configuration LP; by default, with other `classes` than elsewhere.
    windows : WindowParams
        What steers ruin and recreate in windows of time, without prices.
    alternation : AlternationParams
        How long a turn of it is at the end, before what another process found is looked at.
    cutting : CuttingParams
        What steers cuts that lower the bound.
    bound_share : float
        Share of the limit for the bound.
    cutting_share : float
        Share of what is left after the bound, for cuts.
    start_share : float
        Share of the limit for the search in windows before the bound or beside it.
    second_process : bool
        Whether a second process looks for schedules from the start, beside the bound, where there
        is a second core and unless work is limited.
    process_limit : float
        Such a process is only started if more seconds than these are left.
    mix_limit : float
        Most seconds for each mix of what the two processes have found.

    Examples
    --------
    >>> from offline import ConfigurationParams
    >>> ConfigurationParams(bound_share=0.5).to_dict()["bound_share"]
    0.5
    """

    pricing: ColumnGenerationParams = field(
        default_factory=lambda: ColumnGenerationParams(classes=(3, 6))
    )
    cutting: CuttingParams = field(default_factory=CuttingParams)
    windows: WindowParams = field(default_factory=WindowParams)
    alternation: AlternationParams = field(default_factory=AlternationParams)
    start_share: Share = 0.05
    bound_share: Share = 0.25
    cutting_share: Share = 0.4
    second_process: bool = True
    process_limit: Amount = 5.0
    mix_limit: Amount = 5.0
