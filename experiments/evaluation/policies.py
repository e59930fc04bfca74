"""The one registry of policies, OASiS among them: name, options, how to make one.

A policy of `baselines` has an entry here as soon as it is in `baselines.ALL`; its options are
the parameters of its constructor. The command line, sweeps and figures read this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import getdoc
from pathlib import Path
from typing import Any

import baselines
import oasis
from experiments.evaluation.imported import code_files, import_policy, is_import_name, maker_of
from experiments.evaluation.options import (
    Option,
    OptionError,
    described,
    is_not_finite,
    no_such_option,
    options_of,
)
from experiments.evaluation.provenance import file_reference
from oasis.model.choices import choice
from oasis.model.validation import number
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.recourse import RecourseParams
from oasis.online.recourse.learned import learned_from
from oasis.online.search import Granularity, check_granularity
from oasis.scheduling import BasePolicy
from oasis.simulator import Policy, Scheduler

OASIS, RECOURSE = "oasis", "recourse"
SEED, LINE, FLOOR = "seed", "line", "min_utility_fraction"
PAPER_FLOOR = 1e-3  # utility floor of OASiS in the paper's figures, unless another is asked for


@dataclass(frozen=True, slots=True)
class OasisOptions:
    """Options of OASiS on an instance whose price bounds it may compute.

    Parameters
    ----------
    scale, min_utility_fraction, granularity, normalize
        As for `OASiS.from_instance`.
    bounds : str, optional
        File of learned prices (``oasis learn``) whose U and L take the place of the instance's.

    Raises
    ------
    ValueError
        Naming the option.
    """

    scale: float = described(1.0, "multiply U/L by this: mis-estimated prices (paper's Fig. 6)")
    min_utility_fraction: float = described(
        DEFAULT_MIN_UTILITY_FRACTION,
        "a completion worth less than this fraction of the job's best counts as worthless",
    )
    granularity: Granularity = described(  # noqa: RUF009 (a field)
        "worker-slot", "unit of work: worker-slot (exact) or chunk (as printed)"
    )
    normalize: bool = described(
        True,
        "price bounds (25)(26) are of shares of the cluster's totals, not of raw units",
        denial="--raw-units: price bounds (25)(26) in raw units as printed, not normalised",
    )

    bounds: str | None = described(
        None, "take U and L, and the two options above, from this file of `oasis learn`"
    )

    def __post_init__(self) -> None:
        number(self.scale, "scale", above=True)
        fraction = self.min_utility_fraction
        if not 0 <= fraction < 1:
            raise ValueError(f"min_utility_fraction: expected 0 <= fraction < 1, got {fraction:g}")
        check_granularity(self.granularity)
        learned = learned_from(self.bounds, "bounds")
        if learned is not None:
            own = learned.bounds.min_utility_fraction
            if fraction not in (DEFAULT_MIN_UTILITY_FRACTION, own):
                expected = f"expected none beside bounds, whose file has {own:g}"
                raise ValueError(f"min_utility_fraction: {expected}, got {fraction:g}")


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy of the registry.

    Parameters
    ----------
    name : str
        What users call it.
    options : mapping of str to Option
        What can be set.
    check : callable
        Is called with all options as keyword arguments, and raises ValueError for wrong ones.
    build : callable
        Makes a fresh policy from an instance and all options.
    summary : str
        One sentence on what it does.
    needs_instance : bool
        Whether it must know the instance; the others also run on plain traces.
    imported : type or None
        The class, if it is not one of the toolkit's registry but somebody's own.
    """

    name: str
    options: Mapping[str, Option]
    check: Callable[..., object]
    build: Callable[..., Policy | Scheduler]
    summary: str
    needs_instance: bool = False
    imported: type[Policy] | None = None

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options as plain data: those in `given`, and the defaults of the others.

        Raises
        ------
        OptionError
            If an option does not exist or has a wrong value.

        Examples
        --------
        >>> entry_of("fifo").resolve({"seed": 3})
        {'seed': 3, 'line': 'strict', 'placement': None}
        >>> entry_of("drf").resolve({"seed": 3})
        Traceback (most recent call last):
        experiments.evaluation.options.OptionError: drf.seed: no such option; drf has by, placement
        """
        values = self._values(given)
        return {name: _plain(value) for name, value in values.items()}

    def make(
        self, instance: oasis.Instance | None = None, given: Mapping[str, Any] | None = None
    ) -> Policy | Scheduler:
        """Make a fresh policy.

        Parameters
        ----------
        instance : Instance, optional
            The problem; a policy that does not need it runs on anything.
        given : mapping, optional
            Options that differ from their defaults.

        Raises
        ------
        OptionError
            If an option does not exist or has a wrong value.
        """
        return self.build(instance, **self._values(given or {}))

    def recorded(self, given: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
        """What a result keeps of the policy, so that the run can be made again from it.

        Parameters
        ----------
        given : mapping
            Options that differ from their defaults.
        told : mapping
            What the policy says of its parameters. Those of somebody's own class are completed by
            all its options, because it need not say them, and may say something else.

        Returns
        -------
        dict
            The ``parameters``. Of somebody's own class also ``policy_options``, the names of those
            that are options. If the run depends on files beside the instance, ``policy_files``: the
            code of somebody's own class, and what options name, with digests (`files`).

        Examples
        --------
        >>> entry_of("fifo").recorded({"seed": 3}, {"seed": 3, "line": "strict"})
        {'parameters': {'seed': 3, 'line': 'strict'}}
        """
        options = self.resolve(given)
        # a policy that an interruption came before has said nothing
        found: dict[str, Any] = {"parameters": dict(told) or options}
        if self.imported is not None:
            found = {"parameters": {**told, **options}, "policy_options": list(options)}
        files = self.files(given)
        return found | ({"policy_files": files} if files else {})

    def files(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Files that a run depends on: the code of somebody's own class, and what options name.

        Returns
        -------
        list of dict
            ``of``, a module or an option; ``file``; and the ``sha256`` of its bytes.
        """
        found: list[dict[str, Any]] = [] if self.imported is None else [*code_files(self.imported)]
        for name, value in self.resolve(given).items():
            # a word that is a default of the toolkit's own policies, such as strict, is no file
            names_file = self.imported is not None or value != self.options[name].default
            if isinstance(value, str) and names_file and Path(value).is_file():
                found.append({"of": f"option {name}", **file_reference(Path(value))})
        return found

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: option.default for name, option in self.options.items()}
        for name, value in given.items():
            if name not in self.options:
                raise OptionError(self.name, name, no_such_option(self.name, name, self.options))
            try:
                values[name] = self.options[name].check(value)
            except ValueError as error:
                raise OptionError(self.name, name, str(error)) from None
            if name == SEED and values[name] is not None and values[name] < 0:
                raise OptionError(self.name, name, f"expected an integer >= 0, got {value}")
        try:
            self.check(**values)
        except ValueError as error:
            head, _, rest = str(error).partition(": ")
            if head in self.options:
                raise OptionError(self.name, head, rest) from None
            raise OptionError(self.name, None, str(error)) from None
        return values


def _plain(value: Any) -> Any:
    """A value of an option as JSON can say it, and as the option reads it again."""
    if is_not_finite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _oasis(instance: oasis.Instance, **options: Any) -> oasis.OASiS:
    return oasis.OASiS.from_instance(instance, **options)


def _baseline(name: str, policy: Callable[..., Policy]) -> PolicyEntry:
    return PolicyEntry(
        name,
        options_of(policy),
        policy,
        lambda _, **options: policy(**options),
        _summary(policy),
    )


def _summary(source: object) -> str:
    """The first paragraph of a docstring, on one line; that of `BasePolicy` says nothing."""
    text = getdoc(source) or ""
    text = "" if text == getdoc(BasePolicy) else text
    return " ".join(text.partition("\n\n")[0].split()) or "not documented"


def _recourse(_: oasis.Instance | None = None, **options: Any) -> oasis.Recourse:
    """Recourse from its own options and those of its search, all in one mapping."""
    steering = {entry.name: options.pop(entry.name) for entry in fields(RecourseParams)}
    return oasis.Recourse(params=RecourseParams(**steering), **options)


RECOURSE_OPTIONS = {
    **options_of(oasis.Recourse, without=("rounds", "params")),
    **options_of(RecourseParams),
}

POLICIES: Mapping[str, PolicyEntry] = {
    OASIS: PolicyEntry(
        OASIS, options_of(OasisOptions), OasisOptions, _oasis, _summary(oasis.OASiS), True
    ),
    RECOURSE: PolicyEntry(
        RECOURSE, RECOURSE_OPTIONS, _recourse, _recourse, _summary(oasis.Recourse), True
    ),
    **{name: _baseline(name, policy) for name, policy in baselines.ALL.items()},
}
# Those that comparisons on instances take where none is named.
RIVALS = (OASIS, RECOURSE, *baselines.POLICIES)


def entry_of(name: str, among: Iterable[str] = tuple(POLICIES)) -> PolicyEntry:
    """Entry of a policy.

    Parameters
    ----------
    name : str
        Its name, in upper or lower case, or ``module:Name`` or ``file.py:Name`` for a class that is
        not in the registry.
    among : iterable of str
        Names that are allowed here, beside those of other modules.

    Raises
    ------
    ValueError
        If it is none of them; the message suggests what may be meant.

    Examples
    --------
    >>> list(entry_of("RRH").options)
    ['seed', 'threshold', 'discount', 'weight', 'placement']
    """
    if is_import_name(name):
        policy = import_policy(name)
        make = maker_of(policy, options_of(policy))
        entry = _baseline(name, policy)
        return replace(entry, check=make, build=lambda _, **given: make(**given), imported=policy)
    return POLICIES[choice(name, among)]


def make_policy(
    name: str, instance: oasis.Instance | None = None, **options: Any
) -> Policy | Scheduler:
    """Make a fresh policy by its name.

    Parameters
    ----------
    name : str
        A name of `POLICIES`.
    instance : Instance, optional
        The problem; OASiS needs it.
    **options
        Options of the policy that differ from their defaults.

    Raises
    ------
    ValueError
        If there is no such policy or option, or a value is wrong.

    Examples
    --------
    >>> make_policy("las", thresholds=[0.5, 2]).parameters
    {'seed': 0, 'line': 'strict', 'placement': None, 'thresholds': [0.5, 2.0], 'order': 'arrival'}
    """
    return entry_of(name).make(instance, options)


def having(option: str, names: Iterable[str] = tuple(POLICIES)) -> list[str]:
    """Policies among `names` that have this option.

    Examples
    --------
    >>> having("seed", ["oasis", "fifo", "drf"]), having("line", ["rrh", "las"])
    (['fifo'], ['las'])
    """
    return [name for name in names if option in entry_of(name).options]
