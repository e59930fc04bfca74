"""OASiS: online primal-dual scheduling of distributed training jobs on shared clusters.

A dozen names do most of the work: `read`, `generate`, `OASiS`, `Recourse`, `simulate`, `verify`,
`certify`, `dual_bound`, `best_schedule`, `solve`, `competitive_ratio` and `compare`. The public
names are those of `__all__`, the rivals, sweeps and pictures among them. Each is imported when it
is first used, so that ``import oasis`` takes little longer than ``import numpy``; some need an
extra then, such as `solve` the extra ``solve``.
"""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

from oasis import starting

starting.guard_command()  # before numpy is loaded

# The function `certify` has the name of its room: imported later, the room would take its place.
importlib.import_module("oasis.certify")
del certify  # noqa: F821 (the room, as an attribute)

from oasis.version import __version__  # noqa: E402, F401

ROOMS = ("model", "online", "scheduling", "simulator", "solvers", "traces", "workloads")
HOME = Path(__file__).resolve().parents[1]


@cache
def _modules() -> dict[str, str]:
    """Return the module that defines each public name, as `__init__.pyi` lists them."""
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _imported(module: str) -> Any:
    """Import a module of the toolkit, even if the user has a package of the same name.

    That package was found first. It keeps its own modules, and has ours behind them.
    """
    name = module.partition(".")[0]
    if (script := getattr(sys.modules["__main__"], "__file__", None)) and Path(script).stem == name:
        sys.modules.setdefault(name, sys.modules["__main__"])  # not run again by its import
    # All of them: what is imported imports from the others.
    for name_of_package in ("baselines", "experiments", "offline") if name != "oasis" else ():
        package: Any = importlib.import_module(name_of_package)
        home = str(HOME / name_of_package)
        if home not in (folders := [*getattr(package, "__path__", ())]):
            package.__path__ = [*folders, home]
    return importlib.import_module(module)


def __getattr__(name: str) -> Any:
    """Import a public name, or a subpackage in `ROOMS`, when it is first used."""
    if name == "__all__":
        return sorted(_modules())
    if not name.startswith("__") and name in _modules():
        value = getattr(_imported(_modules()[name]), name)
        globals()[name] = value
        return value
    if name in ROOMS:
        return importlib.import_module(f"oasis.{name}")
    raise AttributeError(f"module 'oasis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_modules())
