"""Parameters of methods: named, documented, checked, and plain data in every result.

Each method has one frozen dataclass of them; what nobody sets is a constant beside the code that
uses it. What is called a limit is in seconds, or in units of work where the solve is limited in
work (`work_limit`); a share is a part of something, from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from oasis.model.errors import InputError, located_at


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a parameter may take."""

    least: float
    most: float = math.inf
    is_integer: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.is_integer else "a number"
        if math.isinf(self.most):
            return f"{kind} >= {self.least:g}"
        return f"{kind} from {self.least:g} to {self.most:g}"

    def allows(self, value: object) -> bool:
        """Return whether `value` is a number in the range; true and false are not numbers."""
        kinds = (int,) if self.is_integer else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return math.isfinite(value) and self.least <= value <= self.most


Share = Annotated[float, Range(0.0, 1.0)]
Amount = Annotated[float, Range(0.0)]
Count = Annotated[int, Range(0, is_integer=True)]
Number = Annotated[int, Range(1, is_integer=True)]


@dataclass(frozen=True, slots=True)
class Params:
    """Base of parameters of methods: checks, and conversion to and from plain data.

    Raises
    ------
    InputError
        For a value that its field does not allow, by the name of the field.

    Examples
    --------
    >>> from offline import CompactParams
    >>> CompactParams.from_dict({"presolve": False}).to_dict()
    {'presolve': False}
    >>> CompactParams.from_dict({"presolve": "off"})
    Traceback (most recent call last):
    oasis.model.errors.InputError: presolve: expected true or false, got 'off'
    """

    def __post_init__(self) -> None:
        for name, hint in hints_of(type(self)).items():
            _check(name, hint, getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, nested as the parameters are."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild parameters from `to_dict`; what is left out has its default.

        Raises
        ------
        InputError
            For an unknown name, or a value that is not allowed.
        """
        return cls().changed(data)

    def changed(self, data: Mapping[str, Any]) -> Self:
        """Return a copy with the values in `data`, nested as the parameters are."""
        names = [entry.name for entry in fields(self)]
        if not isinstance(data, Mapping):
            raise InputError("", f"expected parameters by name: {', '.join(names)}", data)
        new = {}
        for name, value in data.items():
            if name not in names:
                expected = f"one of {', '.join(names)}" if names else "none, for there are none"
                raise InputError(name, f"no such parameter; expected {expected}")
            with located_at(name):
                new[name] = _rebuilt(getattr(self, name), value)
        return replace(self, **new)


def hints_of(kind: type[Params]) -> dict[str, Any]:
    """Return the types of the fields, in their order, with the range of each number."""
    hints = get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


def _check(name: str, hint: Any, value: Any) -> None:
    if get_origin(hint) is Annotated:
        allowed: Range = get_args(hint)[1]
        if not allowed.allows(value):
            raise InputError(name, f"expected {allowed}", value)
    elif get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            raise InputError(name, "expected several numbers", value)
        for entry in value:
            _check(name, get_args(hint)[0], entry)
    elif not isinstance(value, hint):
        expected = "true or false" if hint is bool else hint.__name__
        raise InputError(name, f"expected {expected}", value)


def _plain(value: Any) -> Any:
    if isinstance(value, Params):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def _rebuilt(default: Any, value: Any) -> Any:
    """Convert a value of plain data to the type that its field has: that of `default`."""
    if isinstance(default, Params) and not isinstance(value, Params):
        return default.changed(value)
    return tuple(value) if isinstance(default, tuple) and isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class CompactParams(Params):
    """Parameters of HiGHS on the compact model.

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


@dataclass(frozen=True, slots=True)
class EnumerationParams(Params):
    """Limits on the size of instances that are enumerated.

    Parameters
    ----------
    max_steps : int
        Most steps, each a vector of counts that is tried.

    Examples
    --------
    >>> from offline import EnumerationParams
    >>> EnumerationParams(max_steps=1000).to_dict()
    {'max_steps': 1000}
    """

    max_steps: Number = 2_000_000


@dataclass(frozen=True, slots=True)
class ColumnGenerationParams(Params):
    """Parameters of the configuration LP.

    Parameters
    ----------
    tolerance : float
        Relative difference of bound and restricted master at which the LP counts as solved.
    classes : tuple of int
        Most classes of servers a group, from coarse to fine; identical servers come last.

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


@dataclass(frozen=True, slots=True)
class ConfigurationParams(Params):
    """Division of time in the method "colgen".

    Parameters
    ----------
    start_share : float
        Share of the limit for the search in windows before the bound or beside it.
    bound_share : float
        Share of the limit for the bound.
    cutting_share : float
        Share of what is left after the bound, for cuts.
    first_turn : float
        Limit of the first turn of the final search, after which it takes up what a process found.
    second_process : bool
        Whether a second process looks for schedules from the start, beside the bound, where there
        is a second core and unless work is limited.
    process_limit : float
        Such a process is only started if more seconds than these are left.

    Examples
    --------
    >>> from offline import ConfigurationParams
    >>> ConfigurationParams(bound_share=0.5).to_dict()["bound_share"]
    0.5
    """

    start_share: Share = 0.05
    bound_share: Share = 0.25
    cutting_share: Share = 0.4
    first_turn: Amount = 30.0
    second_process: bool = True
    process_limit: Amount = 5.0


@dataclass(frozen=True, slots=True)
class BendersParams(Params):
    """Sizes and division of time in the method "benders".

    Parameters
    ----------
    search_limit : float
        Most seconds (or units of work) for the search in windows at first, also without a limit.
    patch_limit : float
        Limit of searches between two looks at a running master.
    pays : float
        Share of the difference of bound and incumbent; searches that close as much go on,
        whether a master runs or not.
    window : int
        Slots that a job may complete later than in the plan of a master.
    whole_size : int
        Slots in which jobs can run, over all jobs, up to which whole counts are tried at once.
    span : int
        Slots whose counts may change in a neighbourhood of the best schedules. A longer horizon is
        bounded in periods.
    period : int
        Approximate length of a period in slots. There are at least two periods.
    second_process : bool
        Whether schedules are looked for in a process of its own beside the masters of a large
        problem, where there is a second core and unless work is limited.
    process_limit : float
        Such a process is not started with fewer seconds left.

    Examples
    --------
    >>> from offline import BendersParams
    >>> BendersParams.from_dict({"window": 3}).window
    3
    """

    search_limit: Amount = 5.0
    patch_limit: Amount = 3.0
    pays: Amount = 0.02
    window: Count = 2
    whole_size: Count = 300
    span: Number = 25
    period: Number = 33
    second_process: bool = True
    process_limit: Amount = 5.0


@dataclass(frozen=True, slots=True)
class AutoParams(Params):
    """Choice of the method "auto".

    Parameters
    ----------
    compact_size : int
        Servers times the slots that each form of a job has from its arrival on, summed, up to
        which the compact model is as fast as the decomposition.
    counts_size : int
        Squares of the slots that each form has from its arrival on, summed, up to which
        the decomposition is better than column generation, however long the solve may take. For a
        solve of three minutes at most it is better up to `offline.solve.LONG_COUNTS`.
    milp : CompactParams
        Parameters of the compact model, if that is chosen.
    benders : BendersParams
        Parameters of the decomposition, if that is chosen.
    colgen : ConfigurationParams
        Parameters of the configuration LP with heuristics, if that is chosen.

    Examples
    --------
    Let the decomposition solve everything, however small:

    >>> import oasis
    >>> from offline import AutoParams, solve
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> solve(instance, params=AutoParams(compact_size=0)).method
    'benders'
    """

    compact_size: Count = 500
    counts_size: Count = 1_000_000
    milp: CompactParams = field(default_factory=CompactParams)
    benders: BendersParams = field(default_factory=BendersParams)
    colgen: ConfigurationParams = field(default_factory=ConfigurationParams)
