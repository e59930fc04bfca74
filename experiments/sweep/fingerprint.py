"""A fingerprint of the code behind results, so that no old result passes for a new one.

The version alone does not tell two states of a checkout apart.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oasis.model.errors import InputError

SOURCES = (
    *("oasis", "offline", "baselines"),
    *("experiments.sweep", "experiments.evaluation"),
)
LENGTH = 16


@cache
def fingerprint(function: Callable[..., Any]) -> str:
    """Hash of the sources that compute, and of the module that `function` is from."""
    digest = hashlib.sha256()
    for name in SOURCES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        origin = Path(spec.origin)
        root = origin.parent
        paths = [origin] if spec.submodule_search_locations is None else root.rglob("*.py")
        # Sorted, because file systems list names in
        # different orders; names count, because moves do.
        for path in sorted(paths, key=Path.as_posix):
            digest.update(f"{name}/{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    source = inspect.getsourcefile(function)
    if source is None:
        raise InputError(f"task {function.__qualname__}", "expected a function of a module")
    digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:LENGTH]
