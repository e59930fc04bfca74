"""Policies that are not in the registry: ``module:Name``, a class of any module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oasis.scheduling.policy import Policy


def is_import_name(name: str) -> bool:
    """Whether `name` has the form ``module:Name``."""
    return ":" in name


def import_policy(name: str) -> Callable[..., Policy]:
    """The class that ``module:Name`` stands for.

    The module is looked for where Python looks, and last in the working directory.

    Parameters
    ----------
    name : str
        Such as ``"mine:LeastWork"``, the class ``LeastWork`` of ``mine.py``.

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
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ValueError(f"expected MODULE:NAME, got {name!r}")
    with _working_directory_last():
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"expected a module that can be imported, got {what}") from error
    found = getattr(module, attribute, None)
    if found is None:
        raise ValueError(f"expected a policy in module {module_name}, got no {attribute}")
    if not callable(getattr(found, "decide", None)) or not callable(found):
        expected = f"expected {name} to be a class with a method decide (docs: own policy)"
        raise ValueError(expected)  # noqa: TRY004 (as for any other wrong value of an option)
    policy: Callable[..., Any] = found
    return policy


@contextmanager
def _working_directory_last() -> Iterator[None]:
    """Let imports find the working directory, but never before what is installed."""
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)
