"""Policies that are not in the registry: a class of any module or file, and its code."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oasis.model.errors import PolicyError
from oasis.scheduling.policy import Policy
from oasis.scheduling.policy_check import (
    TOOLKIT,
    check_policy,
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
    """Whether `name` has the form ``module:Name``."""
    return ":" in name


def import_policy(name: str) -> type[Policy]:
    """The class that ``module:Name`` or ``file.py:Name`` stands for.

    The module is looked for where Python looks, and last in the working directory.

    Parameters
    ----------
    name : str
        Such as ``"mine:LeastWork"`` or ``"mine.py:LeastWork"``, the class ``LeastWork`` of
        ``mine.py``.

    Raises
    ------
    ValueError
        If there is no such module, it cannot be imported, or it has no such policy.

    Examples
    --------
    >>> import_policy("baselines.fifo:FIFO")().name
    'fifo'
    >>> import_policy("baselines.fifo:LIFO")
    Traceback (most recent call last):
    ValueError: expected a policy in module baselines.fifo, got no LIFO
    """
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise ValueError(f"expected MODULE:NAME or FILE.py:NAME, got {name!r}")
    file = Path(module_name)
    if file.suffix == ".py" and not file.is_file():
        raise ValueError(f"expected a Python file, got no {module_name}")
    try:
        module = _loaded(file) if file.suffix == ".py" else _imported(module_name)
    except (Exception, SystemExit) as error:
        place = own_line(error)
        what = in_words(error) if place is None else f"{place}: {in_words(error)}"
        raise ValueError(f"expected a module that can be imported, got {what}") from error
    found = getattr(module, attribute, None)
    if found is None:
        raise ValueError(f"expected a policy in module {module_name}, got no {attribute}")
    if not (isinstance(found, type) and callable(getattr(found, "decide", None))):
        expected = f"expected {name} to be a class with a method decide (docs: own policy)"
        raise ValueError(expected)  # noqa: TRY004 (as for any other wrong value of an option)
    _check_constructor(name, found)
    return found


def maker_of(policy: type[Policy], options: Mapping[str, Any]) -> Callable[..., Policy]:
    """What makes an object of somebody's own class from its options.

    Parameters
    ----------
    policy : type
        The class.
    options : mapping
        Its options; a ValueError of its constructor about one of them, ``"quantum: expected ..."``,
        is left as it is.

    Returns
    -------
    callable
        It raises `PolicyError` with the line where the constructor fails, or if what it makes is no
        policy.
    """

    def make(**given: Any) -> Policy:
        try:
            made = policy(**given)
        except (Exception, SystemExit) as error:
            if isinstance(error, ValueError) and str(error).partition(": ")[0] in options:
                raise
            own = own_error(error, policy, "its constructor")
            if own is None and isinstance(error, TypeError):  # of the call itself
                own = PolicyError(policy.__name__, f"{line_of(policy)}{in_words(error)}")
            if own is None:
                raise
            raise own from error
        check_policy(made)
        return made

    return make


def code_files(policy: type) -> list[dict[str, str]]:
    """The files of somebody's own code that a policy is made of, with the digests of their bytes.

    These are the modules of the class and its bases, and all that they import in turn and that are
    part neither of the toolkit, nor of Python, nor of an installed package.

    Returns
    -------
    list of dict
        ``of``, the module; ``file``, relative to the working directory if it is inside;
        ``sha256``. In order of the modules' names.
    """
    found: dict[str, Path] = {}
    own = modules_of(policy)
    left = sorted(own)
    while left:
        name = left.pop()
        file = _file_of(name)
        if name in found or file is None or name.partition(".")[0] in TOOLKIT:
            continue
        if name in own or not is_installed(file):
            found[name] = file
            left += _imports(name, file)
    return [
        {
            "of": f"module {name.removeprefix(OF_A_FILE)}",
            "file": shown(found[name]),
            "sha256": _digest(found[name]),
        }
        for name in sorted(found)
    ]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _file_of(module: str) -> Path | None:
    """File of a module, also of one that is imported only later, in a function."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return None if file is None else Path(file)
    with _looking_at(Path.cwd()):
        try:
            spec = importlib.util.find_spec(module)
        except Exception:  # noqa: BLE001 (a parent that cannot be imported: nor can it be)
            return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _imports(module: str, file: Path) -> list[str]:
    """Names that may be modules, in all import statements of a source file."""
    if file.suffix != ".py":
        return []
    is_package = file.stem == "__init__"
    package = module if is_package else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parent * bool(node.level), *filter(None, [node.module])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    whole = {
        ".".join(parts[: k + 1])
        for parts in (name.split(".") for name in names)
        for k in range(len(parts))
    }
    return sorted(name for name in whole if name.partition(".")[0] not in sys.stdlib_module_names)


def _imported(name: str) -> Any:
    importlib.invalidate_caches()  # the file may be a moment old
    with _looking_at(Path.cwd()):
        return importlib.import_module(name)


def _loaded(file: Path) -> Any:
    """The module of a file; made anew if the file is another or has changed."""
    whole = file.resolve()
    # a name of its own, so that a file random.py is not taken for the module of Python
    name, state = f"{OF_A_FILE}{whole.stem}", (str(whole), _digest(whole))
    known = sys.modules.get(name)
    if known is not None and known.__dict__["__state__"] == state:
        return known
    spec = importlib.util.spec_from_file_location(name, whole)
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__state__"] = state
    sys.modules[name] = module
    try:
        with _looking_at(whole.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _looking_at(folder: Path) -> Iterator[None]:
    """Let imports find a folder, but never before what is installed."""
    here = str(folder)
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)


def _check_constructor(name: str, policy: type) -> None:
    try:
        parameters = inspect.signature(policy, eval_str=True).parameters.values()
    except Exception as error:
        what = f"{line_of(policy)}{in_words(error)}"
        raise ValueError(f"expected the types in the constructor of {name}, got {what}") from error
    needed = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed:
        expected = f"expected a default for each parameter of the constructor of {name}"
        raise ValueError(f"{line_of(policy)}{expected}, got none for {', '.join(needed)}")
