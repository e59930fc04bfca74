"""Two policies on the same seeds: by how much one earns more (docs/sweeps)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from experiments.evaluation.comparison import OVER_SEEDS, PAIRED, Comparison
from experiments.evaluation.intervals import LARGEST, mean_and_half_width
from experiments.evaluation.tables import brief, percent
from oasis.model.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MOST_SAID = 12  # pairs, in one sentence each


@dataclass(frozen=True, slots=True)
class Pair:
    """Difference of total utility between two policies, over the seeds that both were run with."""

    first: str
    second: str
    seeds: int
    # Mean of the paired differences over the mean of the second, and the ends of its interval by
    # Student's t; None if the second earned nothing on any shared seed.
    by: float | None
    low: float | None
    high: float | None
    instance: str = ""  # a point of the grid

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """One sentence, such as ``a beats b by 12% (95%: 8 to 16%) on 20 shared seeds``."""
        on = f"on {self.seeds} shared seeds" + (f", {self.instance}" if self.instance else "")
        if self.by is None or self.low is None or self.high is None:
            return f"{self.first} and {self.second}: {self.second} earned nothing {on}"
        if self.low == self.high == 0:
            return f"{self.first} and {self.second} earn the same {on}"
        ends = f"(95%: {brief(100 * self.low, 3)} to {percent(self.high)})"
        if self.low > 0:
            return f"{self.first} beats {self.second} by {percent(self.by)} {ends} {on}"
        if self.high < 0:
            ends = f"(95%: {brief(-100 * self.high, 3)} to {percent(-self.low)})"
            return f"{self.first} earns {percent(-self.by)} less than {self.second} {ends} {on}"
        both = f"{self.first} and {self.second} do not differ clearly"
        return f"{both}: {percent(self.by)} {ends} {on}"


def pair(
    first: str,
    second: str,
    earned: Mapping[str, Mapping[int, float]],
    instance: str = "",
) -> Pair | None:
    """Compare utilities by seed of two policies in `earned`; None below two shared seeds."""
    shared = [seed for seed in earned[first] if seed in earned[second]]
    if len(shared) < 2:
        return None
    for value in (earned[name][seed] for name in (first, second) for seed in shared):
        if abs(value) > LARGEST:
            raise InputError(PAIRED, f"expected at most {LARGEST:g} in size", value)
    base = math.fsum(earned[second][seed] for seed in shared) / len(shared)
    if base == 0:
        return Pair(first, second, len(shared), None, None, None, instance)
    # Both meet the same jobs on a seed: the difference is free of what the jobs differ in.
    mean, half = mean_and_half_width(
        [earned[first][seed] - earned[second][seed] for seed in shared]
    )
    by, low, high = ((mean + sign * half) / abs(base) for sign in (0, -1, 1))
    return Pair(first, second, len(shared), by, low, high, instance)


def against_first(
    earned: Mapping[str, Mapping[int, float]], instance: str = "", first: str | None = None
) -> Iterator[Pair]:
    """Yield pairs of the first policy with each other one that shares two seeds with it."""
    # Not in that of the results: the interval of whichever came out best would promise too much.
    first = next(iter(earned), "") if first is None else first
    others = [name for name in earned if name != first] if first in earned else []
    yield from filter(None, (pair(first, other, earned, instance) for other in others))


def pairs_of_comparison(comparison: Comparison) -> list[Pair]:
    """Pairs with the first policy, empty if no policy has seeds; others earn alike on each."""
    over = {name: row[OVER_SEEDS] for name, row in comparison.policies.items() if OVER_SEEDS in row}
    drawn = {
        name: dict(zip(one["seeds"], one["figures"][PAIRED]["values"], strict=True))
        for name, one in over.items()
    }
    if not drawn:  # also of traces, whose jobs need no utility
        return []
    seeds = dict.fromkeys(seed for values in drawn.values() for seed in values)
    earned = {
        name: drawn.get(name) or dict.fromkeys(seeds, row[PAIRED])
        for name, row in comparison.policies.items()
        if row.get(PAIRED) is not None
    }
    # Two that do not draw are one pair of numbers, however many seeds others have.
    return [one for one in against_first(earned) if {one.first, one.second} & drawn.keys()]


def pairs_of_sweep(frame: pd.DataFrame) -> list[Pair]:
    """Pairs with the first policy at each grid point; empty if cells lack a total utility."""
    from experiments.sweep.summary import label, varying  # noqa: PLC0415 (needs an extra)

    if PAIRED not in frame:
        return []
    points = frame[varying(frame)].to_dict("records")
    at, policies = ([label(p, prefix) for p in points] for prefix in ("instance.", "policy."))
    rows = frame.assign(at=at, policy=policies).dropna(subset=[PAIRED])
    earned_at = {
        point: {
            name: dict(zip(cells["seed"].tolist(), cells[PAIRED].tolist(), strict=True))
            for name, cells in group.groupby("policy", sort=False)
        }
        for point, group in rows.groupby("at", sort=False)
    }
    # The policy of the first cell, also where that could not run: nothing is compared there.
    first = next(iter(policies), "")
    return [
        one
        for point, earned in earned_at.items()
        for one in against_first(earned, point, first)
        # One instance for all seeds, and two that do not draw, are one pair of numbers.
        if any(len(set(earned[name].values())) > 1 for name in (one.first, one.second))
    ]


def said(pairs: Sequence[Pair]) -> list[str]:
    """Sentences on the first `MOST_SAID` pairs, and one with the number of the pairs left out."""
    omitted = len(pairs) - MOST_SAID
    more = [f"{omitted} more pairs: the JSON document has them"] if omitted > 0 else []
    return [*map(str, pairs[:MOST_SAID]), *more]
