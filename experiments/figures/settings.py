"""Settings of a figure: number of seeds, scale, preset, policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.evaluation.policies import FLOOR, OASIS, PRINTED_FLOOR, RIVALS, entry_of
from oasis.model.choices import choice
from oasis.model.errors import InputError, located_at
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.workloads import PRESETS

PAPER = (OASIS, "fifo", "drf", "rrh", "dorm")  # the policies of the paper, in its order
SHOWN = (*PAPER, *(name for name in RIVALS if name not in PAPER))  # those that its figures show

# The forms of OASiS that the figures show side by side, with the utility floor of each.
PRINTED = f"{OASIS}-printed"
FORMS: Mapping[str, float] = {PRINTED: PRINTED_FLOOR, OASIS: DEFAULT_MIN_UTILITY_FRACTION}
FORMS_REMARK = ", ".join(f"{name}: utility floor {floor:g}" for name, floor in FORMS.items())
# What RRH earns beside the published numbers: docs/figures.
RRH_REMARK = "rrh: this project's reading of its source, stronger than the paper's RRH"


def policy_label(name: str, floor: float | None) -> str:
    """Return a policy's name in the figures; OASiS has a name for each utility `floor`."""
    if name != OASIS:
        return name
    forms = [form for form, own in FORMS.items() if own == floor]
    return forms[0] if forms else f"{OASIS}-floor-{floor:g}"


@dataclass(frozen=True, slots=True)
class FigureSettings:
    """Settings with which a figure is reproduced.

    Parameters
    ----------
    seeds : int
        Instances of each kind.
    first_seed : int
        Seed of the first; the others follow it.
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
    time_limit : float
        Seconds for each offline solve; inf is no limit.
    no_improvement : float, optional
        Seconds without improvement that end such a solve too, as in `offline.solve`.
    policy_options : mapping of str to mapping
        Options of policies that differ from their defaults, by name of the policy.
    trace : str, optional
        File with the jobs, for a figure that can take them from a trace.

    Raises
    ------
    ValueError
        Naming the setting.

    Examples
    --------
    >>> FigureSettings(seeds=2, scale=0.1).job_counts((100, 400))
    [10, 40]
    """

    seeds: int = 5
    first_seed: int = 0
    scale: float = 1.0
    jobs: tuple[int, ...] | None = None
    servers: int | None = None
    preset: str = "calibrated"
    policies: tuple[str, ...] | None = None
    time_limit: float = 120.0
    policy_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trace: str | None = None
    no_improvement: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("seeds", 1), ("first_seed", 0), ("servers", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(name, f"expected at least {least}", value)
        if not 0 < self.scale <= 1:
            raise InputError("scale", f"expected 0 < scale <= 1, got {self.scale:g}")
        if self.jobs is not None and (not self.jobs or min(self.jobs) < 1):
            raise InputError("jobs", "expected counts of at least 1")
        object.__setattr__(self, "preset", choice(self.preset, PRESETS, "preset"))
        for name in ("time_limit", "no_improvement"):
            value = getattr(self, name)
            if value is not None and not value >= 0:  # nor is NaN
                raise InputError(name, f"expected seconds >= 0, or inf, got {value}")
        _check_distinct("jobs", self.jobs or ())
        _check_distinct("policies", self.policies or ())
        for name in self.policies or ():
            with located_at("policies"):
                entry_of(name)
        for name, options in self.policy_options.items():
            entry_of(name).resolve(options)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite time limit is None."""
        plain = asdict(self) | self.limits()
        if "no_improvement" not in self.limits():
            del plain["no_improvement"]
        return plain

    def limits(self) -> dict[str, float | None]:
        """Return given limits of each offline solve; None stands for no limit."""
        limits = {"time_limit": self.time_limit}
        if self.no_improvement is not None:
            limits["no_improvement"] = self.no_improvement
        return {name: None if limit == math.inf else limit for name, limit in limits.items()}

    def refuse(self, why: str, *names: str) -> None:
        """Raise `InputError`, with the reason `why`, if one of the settings `names` is given."""
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(name, f"expected none, {why}")

    @property
    def full_size(self) -> bool:
        """Whether the scale is 1, so that the paper's numbers are comparable."""
        return self.scale == 1.0

    def describe(self) -> str:
        """Return one line for a picture: preset, seeds, and settings other than the paper's."""
        parts = [f"preset {self.preset}", f"{self.seeds} seeds"]
        if self.first_seed:
            parts[-1] += f" from {self.first_seed} on"
        if self.scale != 1.0:
            parts.append(f"scale {self.scale:g}")
        if self.servers is not None:
            parts.append(f"{self.servers} + {self.servers} servers")
        for name, options in self.policy_options.items():
            parts += [f"{name}.{option} {value}" for option, value in options.items()]
        return ", ".join(parts)

    def scaled(self, count: int) -> int:
        """Multiply a number of the paper by the scale and round it, at least 1."""
        return max(1, round(self.scale * count))

    def job_counts(self, published: Sequence[int]) -> list[int]:
        """Return the requested numbers of jobs, or else the scaled `published` ones."""
        # At a small scale two counts may round to one, which is run once.
        return list(dict.fromkeys(self.jobs or map(self.scaled, published)))

    def instances(self, jobs: Sequence[int], horizon: int, **more: Any) -> dict[str, Any]:
        """Return the axes of a sweep's instances, with scaled jobs and servers."""
        servers = self.servers or self.scaled(50)
        machines = {"worker_servers": servers, "ps_servers": servers}
        jobs_of = {"preset": self.preset, "jobs": self.job_counts(jobs), **more}
        return {**jobs_of, **machines, "horizon": horizon}

    def names(self) -> list[str]:
        """Return the requested policies, or else all policies that figures show."""
        return list(SHOWN if self.policies is None else self.policies)

    def oasis(self, **axes: Any) -> dict[str, Any]:
        """Return OASiS as an entry of a sweep; `axes` are options that the figure varies.

        Raises
        ------
        ValueError
            If `policy_options` set one of these too.
        """
        chosen = self.policy_options.get(OASIS, {})
        for option in axes:
            if option in chosen:
                raise InputError("policy_options", f"the figure varies {OASIS}.{option} itself")
        return {"name": OASIS, **chosen, **axes}

    def forms(self, **axes: Any) -> list[dict[str, Any]]:
        """Return OASiS as printed and with the default floor, or once with a given floor."""
        if FLOOR in self.policy_options.get(OASIS, {}):
            return [self.oasis(**axes)]
        return [self.oasis(**{FLOOR: floor}, **axes) for floor in FORMS.values()]

    def compared(self) -> list[dict[str, Any]]:
        """Return the entries of the policies to compare in a sweep, OASiS first."""
        names = self.names()
        rivals = [name for name in names if name != OASIS]
        first = self.forms() if OASIS in names else []
        return first + [{"name": name, **self.policy_options.get(name, {})} for name in rivals]

    def grid(
        self, instances: Sequence[dict[str, Any]], policies: Sequence[dict[str, Any]], **task: Any
    ) -> dict[str, Any]:
        """Return the configuration of the sweep behind the figure; `task`: name and options.

        Raises
        ------
        ValueError
            If `policy_options` are of a policy that is not among `policies`.
        """
        run = list(dict.fromkeys(policy["name"] for policy in policies))
        for name in self.policy_options:
            if name not in run:
                raise InputError(
                    "policy_options", f"expected options of {', '.join(run)}, got {name}"
                )
        return {
            "instances": list(instances),
            "policies": list(policies),
            "seeds": {"first": self.first_seed, "count": self.seeds},
            "task": task,
        }


def _check_distinct(setting: str, values: Sequence[Any]) -> None:
    for k, value in enumerate(values):
        if value in values[:k]:
            raise InputError(setting, f"expected each once, got {value} again")
