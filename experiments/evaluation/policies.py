"""The one registry of policies, OASiS among them: name, options, how to make one.

A policy of `baselines` has an entry here as soon as it is in `ALL`; its options are the
parameters of its constructor. The command line, sweeps and figures read this registry.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.metadata import entry_points
from inspect import getdoc
from itertools import accumulate
from pathlib import Path
from typing import Any

import oasis
from baselines.registry import ALL
from baselines.registry import POLICIES as OF_INSTANCES
from experiments.evaluation.provenance import file_reference
from experiments.options import (
    Option,
    described,
    is_not_finite,
    no_such_option,
    options_of,
)
from oasis.model.choices import choice, did_you_mean
from oasis.model.errors import InputError, PolicyError, located_at
from oasis.model.validation import integer, number
from oasis.online.own_prices import refuse_beside
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.recourse import RecourseParams
from oasis.online.recourse.learned import learned_from
from oasis.online.search import Granularity, check_granularity
from oasis.scheduling.policy import BasePolicy, Policy
from oasis.scheduling.policy_check import (
    TOOLKIT,
    check_interface,
    in_words,
    is_installed,
    line_of,
    modules_of,
    own_error,
    own_line,
    shown,
)

OF_A_FILE = "policy file "  # before the name of a module that is named by its file


def is_import_name(name: str) -> bool:
    """Return whether `name` has the form ``module:Name``."""
    return ":" in name


def import_policy(name: str) -> type[Policy]:
    """Import the policy class that ``module:Name`` or ``file.py:Name`` names."""
    policy: type[Policy] = _import_class(name, "a policy", "decide", "decide (docs: own policy)")
    return policy


def import_prices(name: str) -> Any:
    """Import the class of prices that ``module:Name`` or ``file.py:Name`` names."""
    return _import_class(name, "prices", "at", "at(used, capacity) (docs: own prices)")


def _import_class(name: str, what: str, method: str, wanted: str) -> Any:
    """Import a class with this method; `what` and `wanted` describe it in error messages."""

    def is_one(value: object) -> bool:
        return isinstance(value, type) and callable(getattr(value, method, None))

    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise InputError("", "expected MODULE:NAME or FILE.py:NAME", name)
    file = Path(module_name)
    if file.suffix == ".py" and not file.is_file():
        raise InputError("", f"expected a Python file, got no {module_name}")
    importlib.invalidate_caches()  # the file may be a moment old
    try:
        if file.suffix == ".py":
            module = _loaded(file)
        else:
            with _import_path(Path.cwd()):
                module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        place = own_line(error)
        reason = in_words(error) if place is None else f"{place}: {in_words(error)}"
        raise InputError("", f"expected a module that can be imported, got {reason}") from error
    imported = getattr(module, attribute, None)
    if imported is None:
        classes = [each for each, value in vars(module).items() if is_one(value)]
        hint = did_you_mean(attribute, classes) or f"; it has {', '.join(classes) or 'none'}"
        expected = f"expected {what} in module {module_name}, got no {attribute}{hint}"
        raise InputError("", expected)
    if not is_one(imported):
        raise InputError("", f"expected {name} to be a class with a method {wanted}")
    try:
        parameters = inspect.signature(imported, eval_str=True).parameters.values()
    except Exception as error:
        got = f"got {line_of(imported)}{in_words(error)}"
        raise InputError("", f"expected the types in the constructor of {name}, {got}") from error
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
    if needed:
        expected = f"expected a default for each parameter of the constructor of {name}"
        got = f"got none for {', '.join(needed)}"
        raise InputError("", f"{line_of(imported)}{expected}, {got}")
    return imported


def maker_of(policy: type[Policy], options: Mapping[str, Any]) -> Callable[..., Policy]:
    """Return a function that makes a user's policy; its errors are raised as `PolicyError`."""

    def make(**arguments: Any) -> Policy:
        try:
            scheduler = policy(**arguments)
        except (Exception, SystemExit) as error:
            if isinstance(error, InputError) and error.field in options:
                raise
            own = own_error(error, policy, "its constructor")
            if own is None and isinstance(error, TypeError):  # of the call itself
                own = PolicyError(policy.__name__, f"{line_of(policy)}{in_words(error)}")
            if own is None:
                raise
            raise own from error
        check_interface(scheduler)
        return scheduler

    return make


def code_files(policy: type) -> list[dict[str, Any]]:
    """References to source files of a user's class and its imports, installed packages excluded."""
    files: dict[str, Path] = {}
    own = modules_of(policy)
    queue = sorted(own)
    while queue:
        name = queue.pop()
        file = _file_of(name)
        if name in files or file is None or name.partition(".")[0] in TOOLKIT:
            continue
        if name in own or not is_installed(file):
            files[name] = file
            for imported in _imports(name, file):  # and the packages that it is in
                queue += accumulate(imported.split("."), "{}.{}".format)
    return [
        {"of": f"module {name.removeprefix(OF_A_FILE)}", **file_reference(Path(shown(files[name])))}
        for name in sorted(files)
    ]


def _file_of(module: str) -> Path | None:
    """Return the source file of a module that may not be imported yet; None if none is found."""
    with _import_path(Path.cwd()):
        try:
            spec = importlib.util.find_spec(module)
        except Exception:  # noqa: BLE001 (its parent cannot be imported, or Python was given it)
            return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _imports(module: str, file: Path) -> Iterator[str]:
    """Yield the names, possibly of modules, in all import statements of a source file."""
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    tree = ast.parse(file.read_bytes() if file.suffix == ".py" else b"")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package itself, and each further one goes up by one.
            parent = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parent * bool(node.level), *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _loaded(file: Path) -> Any:
    """Return the module of a file, loaded anew if the file has changed since the last time."""
    whole = file.resolve()
    # a name of its own, so that a file random.py is not taken for the module of Python
    name, state = f"{OF_A_FILE}{whole.stem}", file_reference(whole)
    known = sys.modules.get(name)
    if known is not None and known.__dict__["__state__"] == state:
        return known
    spec: Any = importlib.util.spec_from_file_location(name, whole)  # not None: it ends in .py
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__state__"] = state
    sys.modules[name] = module
    try:
        with _import_path(whole.parent):
            spec.loader.exec_module(module)
    # What failed half-way must not be found by the next import; also after Ctrl-C.
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _import_path(folder: Path) -> Iterator[None]:
    """Add `folder` at the end of `sys.path` for the duration of a ``with`` block."""
    entry = str(folder)
    added = entry not in sys.path
    if added:
        sys.path.append(entry)
    try:
        yield
    finally:
        if added:
            sys.path.remove(entry)


OASIS, RECOURSE = "oasis", "recourse"
SEED, LINE, FLOOR = "seed", "line", "min_utility_fraction"
PRINTED_FLOOR = 0.0  # the paper has no utility floor


@dataclass(frozen=True, slots=True)
class OasisOptions:
    """Options of OASiS for an instance; unless a file is named, U and L are computed from it."""

    scale: float = described(
        1.0, "multiply U/L, the range of prices, by this: wrong estimates (paper's Fig. 6)"
    )
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
        None, "take U, L, --min-utility-fraction and --raw-units from this file of `oasis learn`"
    )
    prices: str | None = described(
        None,
        "prices of your own in place of (22): FILE.py:CLASS with a method at (docs: own prices)",
    )
    trust: float = described(
        0.0, "weight of the learned prices of --bounds in the price, 0 (none) to 1 (they alone)"
    )

    def __post_init__(self) -> None:
        if not 0 <= self.trust <= 1:
            raise InputError("trust", f"expected 0 <= trust <= 1, got {self.trust:g}")
        if self.trust and self.bounds is None:
            raise InputError("trust", "expected bounds beside it, a file of `oasis learn`")
        if self.prices is not None:
            with located_at("prices"):
                import_prices(self.prices)
            refuse_beside((self.bounds, self.scale, self.normalize, self.trust))
        number(self.scale, "scale", above=True)
        fraction = self.min_utility_fraction
        if not 0 <= fraction < 1:
            raise InputError(FLOOR, f"expected 0 <= fraction < 1, got {fraction:g}")
        check_granularity(self.granularity)
        learned = learned_from(self.bounds, "bounds")
        if learned is not None:
            own = learned.bounds.min_utility_fraction
            # An option at its default was not asked for, so the one of the file may take its place.
            if fraction not in (DEFAULT_MIN_UTILITY_FRACTION, own):
                expected = f"expected none beside bounds, whose file has {own:g}"
                raise InputError(FLOOR, f"{expected}, got {fraction:g}")


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy of the registry: its name, its options, and how it is made."""

    name: str
    policy: Callable[..., Policy]
    options: Mapping[str, Option]
    check: Callable[..., object]  # of all options; raises ValueError for wrong ones
    build: Callable[..., Policy]  # from an instance and all options
    needs_instance: bool = True  # the others also run on plain traces
    imported: type[Policy] | None = None  # somebody's own class

    @property
    def summary(self) -> str:
        """First paragraph of the policy's docstring on one line, or ``not documented``."""
        text = getdoc(self.policy) or ""
        text = "" if text == getdoc(BasePolicy) else text
        return " ".join(text.partition("\n\n")[0].split()) or "not documented"

    def resolve(self, options: Mapping[str, Any], *, named: bool = True) -> dict[str, Any]:
        """Values of all options as plain data, defaults too; errors name the policy if `named`."""
        with located_at(self.name if named else ""):
            values = self._values(options)
        # JSON has no infinite number, but an option reads its text.
        plain = {name: str(v) if is_not_finite(v) else v for name, v in values.items()}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}

    def make(
        self, instance: oasis.Instance | None = None, options: Mapping[str, Any] | None = None
    ) -> Policy:
        """Make a fresh policy with `options`; OASiS needs the instance."""
        with located_at(self.name):
            values = self._values(options or {})
        return self.build(instance, **values)

    def recorded(self, chosen: Mapping[str, Any], reported: Mapping[str, Any]) -> dict[str, Any]:
        """Entries of a result that make its run repeatable: parameters, and digests of files."""
        options = self.resolve(chosen)
        # a policy that an interruption came before has said nothing
        record: dict[str, Any] = {"parameters": dict(reported) or options}
        if self.imported is not None:
            record = {"parameters": {**reported, **options}, "policy_options": list(options)}
        return record | ({"policy_files": files} if (files := self.files(chosen)) else {})

    def files(self, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """References to files a run depends on: code of a user's class, files named by options."""
        files = [] if self.imported is None else code_files(self.imported)
        for name, value in self.resolve(options).items():
            # a word that is a default of the toolkit's own policies, such as strict, is no file
            names_file = self.imported is not None or value != self.options[name].default
            if self.name == OASIS and name == "prices" and value is not None:
                files += code_files(import_prices(value))
            elif isinstance(value, str) and names_file and Path(value).is_file():
                files.append({"of": f"option {name}", **file_reference(Path(value))})
        return files

    def _values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check `options` and return the values of all options; raise an error for wrong ones."""
        values = {name: option.default for name, option in self.options.items()}
        for name, value in options.items():
            if name not in self.options:
                raise InputError(name, no_such_option(self.name, name, self.options))
            with located_at(name):
                values[name] = self.options[name].check(value)
            if name == SEED and values[name] is not None:
                integer(value, name)
        self.check(**values)
        return values


def _oasis(instance: oasis.Instance, prices: str | None = None, **options: Any) -> oasis.OASiS:
    if prices is None:
        return oasis.OASiS.from_instance(instance, **options)
    try:
        own = import_prices(prices)()
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError):
            raise
        expected = f"{own_line(error) or prices}: {in_words(error)} in its constructor"
        raise InputError("prices", expected) from error
    named = oasis.OwnPrices(own, own, options[FLOOR], name=prices)
    return oasis.OASiS.from_instance(instance, **options, prices=named)


def _baseline(name: str, policy: Callable[..., Policy]) -> PolicyEntry:
    options = options_of(policy)
    return PolicyEntry(
        name, policy, options, policy, lambda _, **values: policy(**values), needs_instance=False
    )


def recourse_of(
    _: oasis.Instance | None = None,
    make: Callable[..., oasis.Recourse] = oasis.Recourse,
    **options: Any,
) -> oasis.Recourse:
    """Make recourse with `make`; `options` has its options and the fields of `RecourseParams`."""
    steering = {entry.name: options.pop(entry.name) for entry in fields(RecourseParams)}
    return make(params=RecourseParams(**steering), **options)


RECOURSE_OPTIONS = {
    **options_of(oasis.Recourse, without=("rounds", "params")),
    **options_of(RecourseParams),
}

POLICIES: Mapping[str, PolicyEntry] = {
    OASIS: PolicyEntry(OASIS, oasis.OASiS, options_of(OasisOptions), OasisOptions, _oasis),
    RECOURSE: PolicyEntry(RECOURSE, oasis.Recourse, RECOURSE_OPTIONS, recourse_of, recourse_of),
    **{name: _baseline(name, policy) for name, policy in ALL.items()},
}
# What installed packages add under a name of their own, as ``module:Name``; ours keep theirs.
INSTALLED = {
    one.name: one.value
    for one in entry_points(group="oasis.policies")
    if one.name.casefold() not in POLICIES and is_import_name(one.value)
}
# Those that comparisons on instances take where none is named.
RIVALS = (OASIS, RECOURSE, *OF_INSTANCES)


def entry_of(name: str, among: Iterable[str] = tuple(POLICIES)) -> PolicyEntry:
    """Return the entry of a policy of `among` or an installed one, or make that of a class."""
    if name.endswith(".py"):
        raise InputError("", f"expected FILE.py:CLASS, such as {name}:MyPolicy", name)
    chosen = name if is_import_name(name) else choice(name, (*among, *INSTALLED))
    place = INSTALLED.get(chosen, chosen)
    if is_import_name(place):
        policy = import_policy(place)
        make = maker_of(policy, options_of(policy))
        entry = _baseline(chosen, policy)
        return replace(entry, check=make, build=lambda _, **values: make(**values), imported=policy)
    return POLICIES[chosen]


def make_policy(name: str, instance: oasis.Instance | None = None, **options: Any) -> Policy:
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
    {'seed': 0, 'thresholds': [0.5, 2.0], 'order': 'arrival', 'line': 'strict', 'placement': None}
    """
    return entry_of(name).make(instance, options)


def having(option: str, names: Iterable[str] = tuple(POLICIES)) -> list[str]:
    """Return the names of those policies in `names` which have the option `option`."""
    return [name for name in names if option in entry_of(name).options]
