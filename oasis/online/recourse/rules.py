"""Rules of admission by name, as options and saved schedulers name them."""

from __future__ import annotations

from typing import Literal, get_args

from oasis.model.errors import InputError
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR, AdmissionRule, AtPrices
from oasis.online.recourse.futures import DEFAULT_SAMPLES, SampledFutures
from oasis.online.recourse.learned import AtLearnedPrices, LearnedPrices

RuleName = Literal["futures", "learned", "oasis"]


def admission_rule(
    admission: str,
    *,
    prices: LearnedPrices | None = None,
    bounds: PriceBounds | None = None,
    samples: int = DEFAULT_SAMPLES,
    min_utility_fraction: float = DEFAULT_FLOOR,
    seed: int = 0,
) -> AdmissionRule:
    """Make the admission rule of this name; errors name the argument that does not go with it."""
    if admission not in get_args(RuleName):
        expected = ", ".join(get_args(RuleName))
        raise InputError("admission", f"expected one of {expected}", admission)
    # Two sources for U and L, or one that the rule never reads: either would be ignored in silence.
    if bounds is not None and (admission != "oasis" or prices is not None):
        raise InputError("bounds", "expected with admission 'oasis' alone, and no learned prices")
    if admission == "futures":
        return SampledFutures(
            prices, samples=samples, min_utility_fraction=min_utility_fraction, seed=seed
        )
    if admission == "learned":
        if prices is None:
            raise InputError("prices", "expected learned prices for admission 'learned', got none")
        return AtLearnedPrices(prices, min_utility_fraction)
    return AtPrices(bounds if prices is None else prices.bounds, min_utility_fraction)


def rule_name(
    name: RuleName | None, prices: LearnedPrices | None, bounds: PriceBounds | None
) -> RuleName:
    """Return `name`, or the default rule for these prices and bounds if it is None."""
    if name is not None:
        return name
    # The most particular thing that was given says which rule is meant.
    if bounds is not None:
        return "oasis"
    return "futures" if prices is None else "learned"


def check_unused(**options: object) -> None:
    """Raise `InputError` if an option is given that only matters if jobs are promised something."""
    used = [name for name, value in options.items() if value is not None]
    if used:
        raise InputError(used[0], "only jobs that are promised something are admitted by it")
