"""Parameters of the search for patterns and cuts."""

from __future__ import annotations

from dataclasses import dataclass

from offline.params import Amount, Number, Params, Share


@dataclass(frozen=True, slots=True)
class CutParams(Params):
    """How patterns are looked for: for violated cuts, and for placing the counts of a slot.

    Parameters
    ----------
    classes : int
        Most classes of servers a group; more give stronger cuts and more knapsacks.
    rounds : int
        Most rounds of the column generation over patterns.
    deep : float
        A cut that takes away this share of what any cut could is good enough.
    quick_gain : float
        Relative gain at which patterns found by greedy choice will do for a round.
    clear : float
        Relative violation from which a cut counts.
    lifting_rounds : int
        Rounds of knapsacks for the weights of jobs that the counts have none of.
    lifting_depth : float
        The same as `deep`, for these weights.
    lifting_trace : float
        Share of what fits on the servers that is added to the counts to get these weights.
    placing_limit : float
        For placing counts by the patterns that cover them, seconds or units of work.
    """

    classes: Number = 60
    rounds: Number = 200
    deep: Share = 0.5
    quick_gain: Amount = 1e-3
    clear: Amount = 1e-3
    lifting_rounds: Number = 5
    lifting_depth: Share = 0.8
    lifting_trace: Share = 3e-3
    placing_limit: Amount = 1.0
