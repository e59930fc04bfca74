"""Parameters of the heuristics that look for good schedules."""

from __future__ import annotations

from dataclasses import dataclass

from offline.params import Amount, Number, Params, Share


@dataclass(frozen=True, slots=True)
class WindowParams(Params):
    """Ruin and recreate of the whole instance in windows of time, without prices.

    Parameters
    ----------
    temperature : float
        Share of the total utility that a step may lose at first, by a factor of e less likely
        than one that loses nothing.
    most_leaving, most_joining : int
        Most jobs that leave in a step, and most of the others that try to join; the number is
        drawn from 1 to this.
    noise : float
        Standard deviation of the normal variable whose exponential multiplies a job's density.
    spread : int
        A window lies at the arrival of a job that does not run, or up to one slot less than this
        later; jobs that join arrive within the same distance of it.
    min_utility_fraction : float
        Completions worth less than this share of a job's best are not looked for.
    patience : int
        The first search ends after this number of steps for each job without a better plan.
    """

    temperature: Amount = 2e-4
    most_leaving: Number = 10
    most_joining: Number = 10
    noise: Amount = 0.5
    spread: Number = 6
    min_utility_fraction: Share = 1e-3
    patience: Number = 10


@dataclass(frozen=True, slots=True)
class AlternationParams(Params):
    """Parameters of the alternation of searches.

    Parameters
    ----------
    first_turn : float
        Seconds or units of work of a search's first turn.
    most_share : float
        No turn gets more than this share of what is left, so that every search has one.
    growth : float
        How much longer the next turn of a search is after one that gained nothing.
    most_wait : int
        Largest number of turns that a search waits.
    """

    first_turn: Amount = 30.0
    most_share: Share = 0.2
    growth: Amount = 1.5
    most_wait: Number = 5
