"""Parameters of the decomposition."""

from __future__ import annotations

from dataclasses import dataclass, field

from offline.column_generation.params import ColumnGenerationParams
from offline.heuristics.params import (
    AlternationParams,
    WindowParams,
)
from offline.params import Amount, Count, Number, Params, Share
from offline.patterns import CutParams
from offline.periods.bound import PeriodParams


@dataclass(frozen=True, slots=True)
class PrimalParams(Params):
    """Parameters of the search for schedules from a plan of the master.

    Parameters
    ----------
    plans, patience : int
        Most plans in a row, and most of them without a better schedule.
    plan_limit : float
        For one plan, or for one step towards a whole one; seconds or units of work.
    slots_at_once : int
        Slots whose counts become whole together.
    plan_gap : float
        Share of the difference of bound and incumbent at which a plan is good enough.
    distance_gap : float
        For a plan close to the best schedules: share of their counts, weighed by what a unit takes,
        by which a closer one may be missed.
    placement_limit : float
        For placing the counts of one slot by patterns.
    """

    plans: Number = 12
    patience: Number = 2
    plan_limit: Amount = 3.0
    slots_at_once: Number = 5
    plan_gap: Share = 0.1
    distance_gap: Share = 0.02
    placement_limit: Amount = 0.5


@dataclass(frozen=True, slots=True)
class ShortfallParams(Params):
    """Parameters of the repair of plans that do not quite fit.

    Parameters
    ----------
    limit : float
        For one plan; seconds or units of work.
    rounds : int
        Most rounds through the slots.
    patience : int
        Number of rounds after which jobs that still lack work may complete later, or leave.
    hopeless : int
        Number of rounds in a row without a new least total shortfall that end the search.
    concession : float
        Share of what the plan is worth more than the best schedules that may be given up for that
        at once, by all jobs together.
    growth : float
        Factor on the weight of a job in each round in which it lacks work.
    noise : float
        Share by which weights differ at random, so that a slot is not filled the same way again.
    gap : float
        Share of the lightest worker's weight by which heavier workers of a slot may be missed.
    """

    limit: Amount = 5.0
    rounds: Number = 40
    patience: Number = 3
    hopeless: Number = 8
    concession: Share = 0.3
    growth: Amount = 1.5
    noise: Share = 0.02
    gap: Share = 0.5


@dataclass(frozen=True, slots=True)
class ReplanningParams(Params):
    """Parameters of the large neighbourhood search over counts.

    Parameters
    ----------
    limit : float
        For one try, of a plan in fractions, cuts and plans in whole numbers; seconds or units of
        work.
    plan_limit : float
        For the plan in fractions: what takes longer frees too many jobs.
    first_jobs, fewest_jobs : int
        Jobs whose completion is free in the first neighbourhood, and in the smallest.
    growth : int
        How many jobs more are free after a plan that was found or refuted.
    invited_share : float
        Share of the free jobs that do not run yet.
    span : int
        Slots whose counts may change in a neighbourhood. Over a longer horizon, the search does
        not begin around the relaxation, and plans of the masters are not mixed with the best
        schedules.
    spread : int
        A neighbourhood lies at the arrival of a job that does not run yet, or up to one slot less
        than this later.
    random_share : float
        Probability that the movable jobs are drawn at random; otherwise they overlap in time.
    least_gain : float
        Share of the difference of bound and incumbent that a plan must be worth more.
    gap : float
        Share of that difference at which a plan in fractions is good enough.
    most_ambition : float
        Share of what a plan in fractions gains that a step towards it must gain, at most. It is
        halved after a step that led to no better schedules.
    failures : int
        So many steps that led to no better schedules end the walk to a plan.
    radius, most_radius : float
        Share of the counts of the best schedules, weighed by what a unit takes, that schedules
        between them and a plan may change: at first, and at most.
    least_tries : int
        Plans in fractions of one turn, at least.
    rounds : int
        Most rounds of cuts around a plan.
    window : int
        Slots that a job may complete later than in the plan in fractions.
    primal : PrimalParams
        What steers the plans in whole numbers; by default, of many slots together.
    """

    limit: Amount = 60.0
    plan_limit: Amount = 5.0
    first_jobs: Number = 10
    fewest_jobs: Number = 4
    growth: Number = 1
    invited_share: Share = 0.35
    span: Number = 25
    spread: Number = 6
    random_share: Share = 0.3
    least_gain: Share = 0.01
    gap: Share = 0.05
    most_ambition: Share = 0.6
    failures: Number = 2
    radius: Share = 0.05
    most_radius: Amount = 0.2
    least_tries: Number = 3
    rounds: Number = 6
    window: Count = 2
    primal: PrimalParams = field(
        default_factory=lambda: PrimalParams(
            plan_limit=2.0, patience=1, slots_at_once=25, plan_gap=0.01
        )
    )


@dataclass(frozen=True, slots=True)
class RootParams(Params):
    """Cutting planes on the master's relaxation, before any master.

    Parameters
    ----------
    share : float
        Share of what is left of the limit.
    patience : int
        Rounds over which the bound must fall.
    least_progress : float
        Relative fall of the bound over these rounds below which the cutting planes end.
    """

    share: Share = 0.1
    patience: Number = 4
    least_progress: Amount = 3e-4


@dataclass(frozen=True, slots=True)
class MasterParams(Params):
    """Parameters of the sequence of masters.

    Parameters
    ----------
    share : float
        Share of what is left of the limit for one master.
    slow : float
        A master that lowers the bound by less than this share of that difference ends its level.
    window : int
        Slots that a job may complete later than in the plan.
    primal_share : float
        Share of what is left for schedules close to a plan.
    whole_size : int
        Slots in which jobs can run, over all jobs, up to which whole counts are tried at once.
    whole_limit : float
        Most seconds for that, or units of work.
    """

    share: Share = 0.5
    slow: Share = 0.01
    window: Count = 2
    primal_share: Share = 0.4
    whole_size: Count = 300
    whole_limit: Amount = 60.0


@dataclass(frozen=True, slots=True)
class BendersParams(Params):
    """Division of time in the method "benders".

    Parameters
    ----------
    pricing : ColumnGenerationParams
        What steers the configuration LP, whose prices guide the heuristics.
    windows : WindowParams
        What steers ruin and recreate in windows of time.
    alternation : AlternationParams
        How it and the search over counts take turns beside the masters.
    root, periods : Params
        What steers the cutting planes before the first master, or the periods of a long horizon.
    master : MasterParams
        What steers the masters.
    cuts : CutParams
        What steers the search for violated cuts.
    primal : PrimalParams
        What steers the way from plans to schedules.
    shortfall : ShortfallParams
        What steers the search for places of the work that a plan's jobs lack.
    replanning : ReplanningParams
        What steers the search over counts, where the master is too large to be tried whole.
    prices_share, search_share : float
        Shares of what is left for the configuration LP, and for the search in windows before it.
    search_limit : float
        Most seconds (or units of work) for this search, also without a limit.
    patch_limit : float
        Limit of searches between two looks at a running master.
    second_process : bool
        Whether schedules are looked for in a process of its own beside the masters of a large
        problem, where there is a second core and unless work is limited.
    process_limit : float
        Such a process is not started with fewer seconds left.
    pays : float
        Share of the difference of bound and incumbent; searches that close as much go on,
        whether a master runs or not.

    Examples
    --------
    >>> from offline import BendersParams
    >>> params = BendersParams.from_dict({"master": {"window": 3}})
    >>> params.master.window, params.cuts.classes
    (3, 60)
    """

    pricing: ColumnGenerationParams = field(
        default_factory=lambda: ColumnGenerationParams(tolerance=1e-3)
    )
    windows: WindowParams = field(default_factory=WindowParams)
    alternation: AlternationParams = field(
        default_factory=lambda: AlternationParams(first_turn=3.0, most_share=1.0)
    )
    root: RootParams = field(default_factory=RootParams)
    periods: PeriodParams = field(default_factory=PeriodParams)
    master: MasterParams = field(default_factory=MasterParams)
    cuts: CutParams = field(default_factory=CutParams)
    primal: PrimalParams = field(default_factory=PrimalParams)
    shortfall: ShortfallParams = field(default_factory=ShortfallParams)
    replanning: ReplanningParams = field(default_factory=ReplanningParams)
    prices_share: Share = 0.05
    search_share: Share = 0.03
    search_limit: Amount = 5.0
    patch_limit: Amount = 3.0
    second_process: bool = True
    process_limit: Amount = 5.0
    pays: Amount = 0.02
