"""What a figure can be asked for: how many seeds, how large, which preset, which policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.policies import OASIS, POLICIES, check_policy
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.workloads import PRESETS

PAPER = (OASIS, "fifo", "drf", "rrh", "dorm")  # the policies of the paper, in its order


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reproduce a figure.

    Parameters
    ----------
    seeds : int
        Instances of each kind: seeds 0, 1, ...
    scale : float
        Numbers of jobs and servers are multiplied by this and rounded, for a quick look; 1 is
        the paper's size.
    jobs : tuple of int, optional
        Numbers of jobs, instead of the paper's.
    servers : int, optional
        Machines for workers, and as many for parameter servers, instead of the paper's 50.
    preset : str
        Of `oasis.generate`, where the figure is a simulation.
    policies : tuple of str, optional
        Which to compare; left out, those of the paper and then all others there are.
    min_utility_fraction : float
        phi of OASiS: completions worth less than this share of the job's best count for nothing.
    time_limit : float
        Seconds for each offline solve; inf is no limit.

    Raises
    ------
    ValueError
        Naming the option.
    """

    seeds: int = 5
    scale: float = 1.0
    jobs: tuple[int, ...] | None = None
    servers: int | None = None
    preset: str = "calibrated"
    policies: tuple[str, ...] | None = None
    min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION
    time_limit: float = 120.0

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"--seeds: expected at least 1, got {self.seeds}")
        if not 0 < self.scale <= 1:
            raise ValueError(f"--scale: expected 0 < scale <= 1, got {self.scale:g}")
        if self.jobs is not None and (not self.jobs or min(self.jobs) < 1):
            raise ValueError("--jobs: expected counts of at least 1")
        if self.servers is not None and self.servers < 1:
            raise ValueError(f"--servers: expected at least 1, got {self.servers}")
        if self.preset not in PRESETS:
            expected = ", ".join(PRESETS)
            raise ValueError(f"--preset: expected one of {expected}, got {self.preset!r}")
        if not 0 <= self.min_utility_fraction < 1:
            found = f"{self.min_utility_fraction:g}"
            raise ValueError(f"--min-utility-fraction: expected 0 <= fraction < 1, got {found}")
        if not self.time_limit >= 0:  # nor is NaN
            raise ValueError(f"--time-limit: expected seconds >= 0, or inf, got {self.time_limit}")
        for name in self.policies or ():
            check_policy(name, "--policies")

    @property
    def full_size(self) -> bool:
        """Whether there are as many jobs as in the paper, so that its numbers stand beside."""
        return self.scale == 1.0

    def describe(self) -> str:
        """One line for a picture: what was run, as far as it is not the paper's setting."""
        parts = [f"preset {self.preset}", f"{self.seeds} seeds"]
        if self.scale != 1.0:
            parts.append(f"scale {self.scale:g}")
        if self.servers is not None:
            parts.append(f"{self.servers} + {self.servers} servers")
        if self.min_utility_fraction != DEFAULT_MIN_UTILITY_FRACTION:
            parts.append(f"utility floor {self.min_utility_fraction:g}")
        return ", ".join(parts)

    def scaled(self, count: int) -> int:
        """A number of jobs or servers of the paper at this scale."""
        return max(1, round(self.scale * count))

    def job_counts(self, published: Sequence[int]) -> list[int]:
        """Numbers of jobs: those asked for, or the published ones at this scale."""
        return list(dict.fromkeys(self.jobs or map(self.scaled, published)))

    def machines(self) -> dict[str, Any]:
        """Numbers of machines of the simulations, as an instance of a sweep."""
        servers = self.servers or self.scaled(50)
        return {"worker_servers": servers, "ps_servers": servers}

    def names(self) -> list[str]:
        """Names of the policies to compare."""
        if self.policies is not None:
            return list(dict.fromkeys(self.policies))
        first = [name for name in PAPER if name in POLICIES]
        return [*first, *(name for name in POLICIES if name not in first)]

    def oasis(self, **axes: Any) -> dict[str, Any]:
        """OASiS as a policy of a sweep."""
        return {"name": OASIS, "min_utility_fraction": self.min_utility_fraction, **axes}

    def rivals(self) -> list[dict[str, Any]]:
        """The policies to compare, as those of a sweep."""
        names = self.names()
        others = [name for name in names if name != OASIS]
        first = [self.oasis()] if OASIS in names else []
        return first + ([{"name": others}] if others else [])

    def grid(
        self, instances: Sequence[dict[str, Any]], policies: Sequence[dict[str, Any]], **task: Any
    ) -> dict[str, Any]:
        """Configuration of the sweep behind the figure."""
        return {
            "instances": list(instances),
            "policies": list(policies),
            "seeds": {"first": 0, "count": self.seeds},
            "task": task,
        }
