"""Input and output of a task of a sweep.

A task is a function in an importable module: workers get it by its name. It returns flat plain
data; figures that are measured times start with ``measured.``, because they do not repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeAlias

import oasis
from experiments.evaluation.comparison import figures
from experiments.evaluation.options import check_known, options_of
from oasis.model.errors import located_at
from oasis.online.prices import PriceBounds
from oasis.simulator import Policy
from oasis.simulator.result import Run

MEASURED = "measured."
Scalar: TypeAlias = bool | int | float | str | None
Figures: TypeAlias = dict[str, Scalar | Sequence[Scalar]]


@dataclass(frozen=True)
class Options:
    """Base of the options of a task, frozen dataclasses; by itself, that of one without options.

    Each field has a default, and a type that text can express (`experiments.evaluation.options`).
    """

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Check the options that a configuration sets; errors name the option."""
        options = options_of(cls)
        check_known(table, options)
        values = {}
        for name, value in table.items():
            with located_at(name):
                values[name] = options[name].check(value)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """One cell, ready to run.

    Parameters
    ----------
    instance : Instance
        The problem; what the source of the cell makes, if that is no instance.
    make_policy : callable
        Makes a fresh policy for it.
    seed : int
        Seed of the cell; instance and policy have it already.
    options : Options
        Options of the task.
    shared : mapping
        Figures of the task that the cells of an instance and seed share, if there is one.
    """

    instance: Any
    make_policy: Callable[[], Policy]
    seed: int
    options: Any
    shared: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellTask:
    """Something to do with each cell.

    Parameters
    ----------
    name : str
        Name in configurations.
    function : callable
        From a `Case` to its figures; top-level in an importable module.
    options : type of Options
        Options that a configuration may set.
    headline : tuple of str
        Figures that a summary shows.
    shared : CellTask, optional
        Is run once for all cells of an instance and seed, before them and without a policy. It
        has the same options; its figures are in ``case.shared``.
    modules : tuple of str
        Modules that it imports only when it runs: a Dask worker must show that it has them.
    """

    name: str
    function: Callable[[Case], Figures]
    options: type[Options] = Options
    headline: tuple[str, ...] = ("total_utility", "finished", "mean_completion")
    shared: CellTask | None = None
    modules: tuple[str, ...] = ()


def simulated(case: Case) -> Run:
    """Run the policy of the case and verify its schedules."""
    run = oasis.simulate(case.instance, case.make_policy())
    oasis.verify(case.instance, run)
    return run


def run_figures(run: Run) -> Figures:
    """Utility, jobs, completion times in slots, shares of capacity used, and measured times."""
    row = figures(run)
    row["jobs"] = len(run.decisions)
    row["alpha"] = run.bounds.alpha if isinstance(run.bounds, PriceBounds) else None
    for name in [name for name in row if name.endswith("_seconds")]:
        row[MEASURED + name] = row.pop(name)
    return _flat(row)


def _flat(data: Mapping[str, Any], prefix: str = "") -> Figures:
    """Flatten nested mappings; the names are joined by dots."""
    flat: Figures = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
