"""Checking a policy before its run, and saying where in its author's code an error is.

A policy that somebody writes may lack an attribute or raise anything. That is bad input, and its
author needs the line; an error of the toolkit's own code is a fault of the program and stays as it
is, with its traceback.
"""

from __future__ import annotations

import inspect
import math
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oasis.model.errors import PolicyError, describe

TOOLKIT = frozenset(("oasis", "offline", "baselines", "experiments"))
MISSING = object()
LONGEST = 300  # characters of an error's own message
# What each attribute must be, and what it is for.
ATTRIBUTES: Mapping[str, tuple[type, str]] = {
    "name": (str, "text, what results call it"),
    "slotted": (bool, "True or False, whether it is called at the beginning of every slot"),
    "told_remaining": (bool, "True or False, whether it uses how much work jobs have"),
    "parameters": (Mapping, "a mapping, its options as plain data"),
}
LATER: Mapping[str, Callable[[Any], bool]] = {
    "a coroutine (async def)": inspect.iscoroutinefunction,
    "a generator (yield)": inspect.isgeneratorfunction,
}
METHODS = {"reset": "reset(site), which begins a run", "decide": "decide(view), which gives a Plan"}


def check_interface(policy: Any) -> None:
    """Raise an error for an object that is no `Policy` or has a wrong attribute."""
    # The class instead of an object is the usual slip: it has all the methods, too.
    if isinstance(policy, type) or _attribute(policy, "decide") is MISSING:
        raise _no_policy(policy)
    for method, expected in METHODS.items():
        _check_method(policy, method, expected)
    for attribute, (kind, expected) in ATTRIBUTES.items():
        value = _attribute(policy, attribute)
        if value is MISSING:
            # Silence means no: knowing the work left is an advantage that a policy has to declare.
            if attribute == "told_remaining":
                continue  # not declared: it is not told
            hint = "; oasis.scheduling.BasePolicy has a default"
            raise _error(policy, f"{attribute}: missing; expected {expected}{hint}")
        is_line = not isinstance(value, str) or (value and value.isprintable())  # of a table
        if not isinstance(value, kind) or not is_line:
            hint = "; is @property missing?" if inspect.ismethod(value) else ""
            raise _error(policy, f"{attribute}: expected {expected}, got {describe(value)}{hint}")
    parameters_of(policy)


def _no_policy(value: object) -> TypeError:
    """Return the error for an argument that is no policy; it says how to make one."""
    got = describe(value)
    if isinstance(value, type):
        how = f"{value.__name__}()" if "decide" in dir(value) else ""
        if "submit" in dir(value):
            how = f"{value.__name__}.from_instance(instance)"
        got = f"the class {value.__name__}" + (f"; {how} makes one" if how else "")
    elif isinstance(value, str):
        known = {"oasis": "oasis.OASiS.from_instance(instance)", "recourse": "oasis.Recourse()"}
        got += f"; {known.get(value, f'baselines.make({value!r})')} makes one by its name"
    elif hasattr(value, "jobs"):  # an instance or a workload
        got += "; the policy comes second"
    expected = "expected a policy, such as oasis.Recourse() or baselines.FIFO()"
    return TypeError(f"policy: {expected}, got {got}")


def parameters_of(policy: Any) -> dict[str, Any]:
    """Return `parameters` of a policy; `PolicyError` if they are not plain data."""
    return _plain_mapping(policy, "parameters")


def report_of(policy: Any) -> dict[str, Any]:
    """Return `report` of a policy, plain data on its run; empty if it has none."""
    return _plain_mapping(policy, "report")


def own_error(
    error: BaseException, policy: Any, where: str, time: float | None = None
) -> PolicyError | None:
    """Turn an error into one that names the innermost line of the author's code, and `where`.

    None if that code has no part in it. `policy` may be the class whose constructor failed.
    """
    made_by = policy if isinstance(policy, type) else type(policy)
    # An error in one of our own policies is a fault of the program and keeps its traceback.
    if _is_toolkit(made_by.__module__):
        return None
    place = own_line(error, modules_of(made_by))
    if place is None:
        return None
    if isinstance(error, PolicyError):
        places = error.places() | {"time": time}
        return PolicyError(error.policy, f"{place}: {error.detail} in {where}", **places)
    return PolicyError(_name(policy), f"{place}: {in_words(error)} in {where}", time=time)


@contextmanager
def naming_own_line(policy: Any, where: str, time: float | None = None) -> Iterator[None]:
    """Turn an exception of the policy author's code in the block into that of `own_error`."""
    try:
        yield
    except (Exception, SystemExit) as error:  # no policy ends the program unsaid
        own = own_error(error, policy, where, time)
        if own is None:
            raise
        raise own from error


def in_words(error: BaseException) -> str:
    """Return class and message of an error in one line, cut to `LONGEST` characters."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    message = " ".join(message.split())
    message = message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."
    return type(error).__name__ + (f": {message}" if message else "")


def own_line(error: BaseException, modules: frozenset[str] = frozenset()) -> str | None:
    """Return the innermost line outside the toolkit where an error passed, as ``file.py:12``.

    None if there is none; code of `modules` counts as outside even if it is installed.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f"{shown(error.filename)}:{error.lineno}"
    place = None
    # From the outermost call to the innermost: the last line that
    # is the author's own is the one to name.
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if not _is_toolkit(module) and (module in modules or not is_installed(file)):
            place = f"{shown(file)}:{line}"
    return place


def modules_of(policy: type) -> frozenset[str]:
    """Return the names of modules of a class and its bases, except those of the toolkit."""
    modules = {base.__module__ for base in policy.__mro__} - {"builtins", "abc", "typing"}
    return frozenset(module for module in modules if not _is_toolkit(module))


def shown(file: str | os.PathLike[str]) -> str:
    """Return the path of a file; relative to the working directory if it is in there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def line_of(source: Any) -> str:
    """Return the place of a class or function as ``file.py:12: ``; empty without a file."""
    try:
        return f"{shown(inspect.getfile(source))}:{inspect.getsourcelines(source)[1]}: "
    except (OSError, TypeError):
        return ""  # made at Python's prompt


def is_installed(file: str | os.PathLike[str]) -> bool:
    """Return whether a source file is part of Python or of an installed package."""
    name = os.fspath(file)
    if name.startswith("<frozen "):
        return True
    folders = (sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(Path(name).is_relative_to(folder) for folder in folders)


def _is_toolkit(module: str) -> bool:
    return module.partition(".")[0] in TOOLKIT


def _name(policy: Any) -> str:
    name = inspect.getattr_static(policy, "name", None)
    made_by = policy if isinstance(policy, type) else type(policy)
    return name if isinstance(name, str) and name else made_by.__name__


def _error(policy: Any, detail: str, source: Any = None) -> PolicyError:
    """Return an error that names the line of `source`, such as a method, or of the class."""
    return PolicyError(_name(policy), f"{line_of(source or type(policy))}{detail}")


def _check_method(policy: Any, method: str, expected: str) -> None:
    function = _attribute(policy, method)
    if not callable(function):
        got = "missing" if function is MISSING else f"got {describe(function)}"
        raise _error(policy, f"{method}: expected a method {expected}, {got}")
    try:
        # One argument besides self; found out here, not in the middle of a long run.
        inspect.signature(function).bind(None)
    except ValueError:
        return  # of something that Python cannot look into
    except TypeError as error:
        source = function if inspect.isroutine(function) else None
        raise _error(policy, f"{method}: expected {expected}: {error}", source) from None
    for kind, is_kind in LATER.items():
        if is_kind(function):  # its call does nothing but make an object
            raise _error(policy, f"{method}: expected {expected}, got {kind}", function)


def _attribute(candidate: Any, name: str) -> Any:
    """Return an attribute, or `MISSING`; an error of its own code becomes a `PolicyError`."""
    try:
        with naming_own_line(candidate, name):
            return getattr(candidate, name)
    # A property runs the author's code, which may raise anything, an AttributeError included.
    except (Exception, SystemExit):
        # Asked without running it: an AttributeError of the author's
        # own property is no missing attribute.
        if inspect.getattr_static(candidate, name, MISSING) is MISSING:
            return MISSING
        raise


def _plain_mapping(policy: Any, name: str) -> dict[str, Any]:
    value = _attribute(policy, name)
    if value is MISSING:
        return {}
    if not isinstance(value, Mapping):
        raise _error(policy, f"{name}: expected a mapping, got {describe(value)}")
    _check_plain(policy, value, name)
    return dict(value)


def _check_plain(policy: Any, value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise _error(policy, f"{path}: expected texts as keys, got {describe(key)}")
            _check_plain(policy, entry, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for k, entry in enumerate(value):
            _check_plain(policy, entry, f"{path}[{k}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise _error(policy, f"{path}: expected a finite number, got {value}")
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        raise _error(policy, f"{path}: expected plain data, got {describe(value)}")
