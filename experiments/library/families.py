"""The instances of the library: families of settings, one instance for each setting and seed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

from oasis.model.choices import choice
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.utility import Deadline, Piecewise, Sigmoid, Utility
from oasis.workloads import generate
from oasis.workloads.presets import MIX

# kind of utilities -> the generator's mix, and what becomes of its sigmoids
UTILITIES: Mapping[str, tuple[tuple[float, float, float], Callable[[Sigmoid], Utility]]] = {
    "mixed": (MIX, lambda drawn: drawn),
    "critical": ((0.0, 0.0, 1.0), lambda drawn: drawn),
    # the whole priority up to the target, and nothing after it
    "deadline": (MIX, lambda drawn: Deadline(drawn.priority, drawn.target)),
    # from the priority at delay 0 in a straight line down to 0 at twice the target
    "linear": (MIX, lambda drawn: Piecewise((0.0, 2 * drawn.target), (drawn.priority, 0.0))),
}


def with_utilities(instance: Instance, kind: str) -> Instance:
    """Return the instance with utilities of this kind; all else stays the same."""
    _, change = UTILITIES[kind]
    drawn: Any = (job.utility for job in instance.jobs)  # sigmoids, as the generator draws them
    pairs = zip(instance.jobs, map(change, drawn), strict=True)
    jobs = tuple(replace(job, utility=utility) for job, utility in pairs)
    return replace(instance, jobs=jobs, metadata={**instance.metadata, "utilities": kind})


@dataclass(frozen=True, slots=True)
class Problem:
    """The settings of one instance; its name contains all of them.

    Parameters
    ----------
    family : str
        What it has in common with its neighbours in the table.
    preset : str
        Of `oasis.generate`.
    horizon, worker_servers, ps_servers, jobs : int
        T, H, K and I.
    utilities : str
        One of `experiments.library.families.UTILITIES`.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> from experiments.library import PROBLEMS
    >>> problem = PROBLEMS["testbed-t10-w7-p2-j12-mixed-s4"]
    >>> problem.family, len(problem.instance().jobs)
    ('testbed', 12)
    """

    family: str
    preset: str
    horizon: int
    worker_servers: int
    ps_servers: int
    jobs: int
    utilities: str
    seed: int

    @property
    def name(self) -> str:
        """Name made of preset, slots, servers, jobs, kind of utilities and seed."""
        servers = f"w{self.worker_servers}-p{self.ps_servers}"
        return f"{self.preset}-t{self.horizon}-{servers}-j{self.jobs}-{self.utilities}-s{self.seed}"

    def instance(self) -> Instance:
        """Generate the instance, which is stored nowhere."""
        instance = generate(
            self.preset,
            jobs=self.jobs,
            worker_servers=self.worker_servers,
            ps_servers=self.ps_servers,
            horizon=self.horizon,
            seed=self.seed,
            mix=UTILITIES[self.utilities][0],
        )
        return with_utilities(instance, self.utilities)


TABLE = Path(__file__).parent / "data" / "families.csv"
SIZES = ("slots", "worker_servers", "ps_servers", "jobs")


def _problems() -> Iterator[Problem]:
    """Yield the problems of each family, one kind of utilities after the other."""
    with TABLE.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            family, preset = row["family"], row["preset"]
            slots, workers, ps, jobs = (int(row[name]) for name in SIZES)
            for utilities in row["utilities"].split():
                for seed in range(int(row["first_seed"]), int(row["last_seed"]) + 1):
                    yield Problem(family, preset, slots, workers, ps, jobs, utilities, seed)


PROBLEMS: Mapping[str, Problem] = MappingProxyType({one.name: one for one in _problems()})


def problem_named(name: str) -> Problem:
    """Return the problem with this name.

    Raises
    ------
    OasisError
        If there is none.

    Examples
    --------
    >>> from experiments.library.families import problem_named
    >>> problem_named("calibrated-t20-w10-p10-j20-deadline-s1").utilities
    'deadline'
    """
    return PROBLEMS[choice(name, PROBLEMS, expected="an instance that 'oasis library list' names")]


def problems_like(patterns: Iterable[str]) -> list[Problem]:
    """Return problems whose name or family matches a pattern; all without patterns.

    Parameters
    ----------
    patterns : iterable of str
        With ``*`` for any characters and ``?`` for one.

    Raises
    ------
    OasisError
        If nothing is like one of them.

    Examples
    --------
    >>> from experiments.library.families import problems_like
    >>> len(problems_like([])), len(problems_like(["testbed", "*-t300-*-j400-*"]))
    (200, 19)
    """
    everything = PROBLEMS.values()
    like = {
        glob: [p for p in everything if fnmatchcase(p.name, glob) or fnmatchcase(p.family, glob)]
        for glob in patterns
    }
    for glob, alike in like.items():
        if not alike:
            nothing = f"no instance and no family is like {glob!r}"
            raise InputError("", f"{nothing}; see 'oasis library list'")
    return [p for p in everything if not like or any(p in alike for alike in like.values())]
