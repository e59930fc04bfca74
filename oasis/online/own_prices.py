"""Prices of one's own, which OASiS takes in place of the paper's (22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oasis.model.errors import InputError, describe
from oasis.model.groups import GROUPS
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised, short
from oasis.model.validation import number
from oasis.online.prices import PriceBounds, PriceFunction, Prices
from oasis.online.recourse.learned import LearnedPrices

PAPER = {"normalize": True, "scale": 1.0, "prices": None, "trust": 0.0}  # options of (22)
MOST = 1e100  # so that prices times amounts, and their sums, are finite
PRICES = "expected prices: an object with a method at(used, capacity), or two, for workers and PS"


@dataclass(frozen=True, slots=True, repr=False)
class OwnPrices(Summarised):
    """Prices of one's own for both groups of machines, as `PriceBounds` are the paper's.

    Parameters
    ----------
    worker, ps : Prices
        Of worker servers, and of hosts of parameter servers.
    min_utility_fraction : float
        The utility floor of the search, from 0 on and below 1; see `PriceBounds`.
    name : str
        What results call the prices; default: the names of their classes.
    options : mapping of str to object, optional
        What results record of the prices instead of their name.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis import OwnPrices
    >>> class Flat:
    ...     def at(self, used, capacity):
    ...         return np.full(used.shape, 0.5)
    >>> OwnPrices(Flat(), Flat())
    <OwnPrices: prices Flat, min_utility_fraction 0>
    """

    worker: Prices = field(compare=False)
    ps: Prices = field(compare=False)
    min_utility_fraction: float = 0.0
    name: str = ""
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        fraction = number(self.min_utility_fraction, "min_utility_fraction")
        if fraction >= 1:
            raise InputError("min_utility_fraction", "expected 0 <= phi < 1", fraction)
        kinds = []
        for group in GROUPS:
            own: Any = group.of(self)
            own = own.own if isinstance(own, _Checked) else own
            if not _has_prices(own):
                raise TypeError(f"{group}: {PRICES}, got {describe(own)}")
            kinds.append(type(own).__name__)
            object.__setattr__(self, str(group), _Checked(own))
        object.__setattr__(self, "name", self.name or " and ".join(dict.fromkeys(kinds)))

    @classmethod
    def of(cls, given: Any, min_utility_fraction: float) -> OwnPrices:
        """Make own prices of `given`: an `OwnPrices`, prices for both groups, or a pair."""
        if isinstance(given, OwnPrices):
            return given
        pair = given if isinstance(given, Sequence) else (given, given)
        if len(pair) != len(GROUPS) or not all(map(_has_prices, pair)):
            raise TypeError(f"prices: {PRICES}, got {describe(given)}")
        return cls(pair[0], pair[1], min_utility_fraction)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What results record of these prices: options or name, and the floor."""
        recorded = {"prices": self.name} if self.options is None else self.options
        return {**recorded, "min_utility_fraction": self.min_utility_fraction}

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and the name of the prices and the utility floor."""
        floor = ("min_utility_fraction", short(self.min_utility_fraction))
        return "OwnPrices", [("prices", self.name), floor]


@dataclass(frozen=True, slots=True)
class Blend:
    """Prices between the paper's and a prediction that knows no use: (1 - trust) p + trust q.

    Parameters
    ----------
    paper : PriceFunction
        The paper's prices p, (22).
    predicted : (R,) float array
        The predicted price q of a unit of each resource, such as the mean of learned prices.
    trust : float
        The weight of the prediction, 0 to 1.

    Examples
    --------
    >>> import numpy as np, oasis
    >>> from oasis.online.own_prices import Blend
    >>> paper = oasis.PriceFunction(np.log([1.0]), np.log([100.0]), 1.0)
    >>> Blend(paper, np.array([3.0]), 0.5).at(np.array([[0.0], [4.0]]), np.array([4.0])).round(6)
    array([[ 2. ],
           [51.5]])
    """

    paper: PriceFunction
    predicted: FloatArray
    trust: float

    def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        """Return prices at committed amounts `used`, as `Prices.at` does."""
        prices: FloatArray = (1 - self.trust) * self.paper(used, capacity)
        return prices + self.trust * self.predicted


def blended(bounds: PriceBounds, learned: LearnedPrices, trust: float) -> OwnPrices:
    """Return (1 - trust) times the paper's prices, plus trust times the mean of learned prices."""
    share = number(trust, "trust")
    if share > 1:
        raise InputError("trust", "expected a weight from 0 to 1", trust)
    worker, ps = (
        Blend(group.of(bounds), np.asarray(group.of(learned)).mean(axis=0), share)
        for group in GROUPS
    )
    options = {**bounds.parameters, "trust": share}
    return OwnPrices(worker, ps, bounds.min_utility_fraction, "blend", options)


def _has_prices(value: object) -> bool:
    """Whether `value` is an object with the method `at`, and not a class."""
    return isinstance(value, Prices) and not isinstance(value, type)


def refuse_beside(options: tuple[object, ...]) -> None:
    """Raise `InputError` unless options of the paper's prices are at their defaults."""
    if options != (None, 1.0, True, 0.0):
        raise InputError("prices", "expected no bounds, scale, normalize or trust beside them")


def check_prices(bounds: object, resources: Sequence[str]) -> None:
    """Raise unless `bounds` are the paper's or own prices, of these resources."""
    if not isinstance(bounds, PriceBounds | OwnPrices):
        expected = "expected oasis.PriceBounds, as OASiS.from_instance makes it"
        raise TypeError(f"bounds: {expected}, got {describe(bounds)}")
    if isinstance(bounds, OwnPrices):
        return
    if any(len(group.of(bounds).log_lower) != len(resources) for group in GROUPS):
        raise InputError("bounds", f"expected one for each of {', '.join(resources)}")


@dataclass(frozen=True, slots=True)
class _Checked:
    """Own prices whose results are checked: a wrong one raises an error that names its class."""

    own: Prices

    def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        capacity = np.broadcast_to(capacity, used.shape)
        where = f"{type(self.own).__name__}.at"
        try:
            own = np.asarray(self.own.at(used.copy(), capacity.copy()))
            answer = own.astype(np.float64, casting="same_kind")
        except (Exception, SystemExit) as error:
            raise InputError(where, f"failed with {type(error).__name__}: {error}") from error
        if answer.shape != used.shape:
            raise InputError(where, f"expected an array of shape {used.shape}", answer.shape)
        wrong = ~((answer >= 0) & (answer <= MOST)) & (capacity > 0)
        if wrong.any():
            raise InputError(where, f"expected prices from 0 to {MOST:g}", float(answer[wrong][0]))
        # Where there is no capacity nothing is sold: any price will do.
        return np.where(capacity > 0, answer, 0.0)
