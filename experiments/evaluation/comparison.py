"""Policies side by side, on one instance or on one trace; and a policy beside the optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import oasis
from experiments.evaluation.intervals import COUNTS, interval_of, read_interval, scale_of
from experiments.evaluation.policies import POLICIES, entry_of
from oasis.model import document
from oasis.model.document import Reader, count, entry, list_of, mapping, object_of, real, text
from oasis.model.errors import InputError, InstanceError, describe, located_at
from oasis.model.files import frame
from oasis.model.instance import Instance, expect_instance
from oasis.model.summary import Facts, Summarised
from oasis.scheduling.policy import left_out
from oasis.scheduling.policy_check import parameters_of, report_of
from oasis.simulator import Outcome, Policy, Workload, replay
from oasis.simulator.outcome import figure_reader
from oasis.simulator.result import Run, read_latency
from oasis.solvers import Status

if TYPE_CHECKING:
    from experiments.evaluation.competitive_ratio import CompetitiveRatio
    from offline.result import OfflineResult


SLOT_SECONDS = 600.0  # length of the slots of OASiS and recourse on elastic jobs
# Figures of the finished jobs only: where jobs did not, every page and plot marks them.
OF_FINISHED = ("mean_completion", "median_completion", "p95_completion")
# Where jobs did not finish, these may look good, too: a job does not wait any more once it is
# rejected, and what jobs hold that never run counts as used.
MARKED = (*OF_FINISHED, "mean_waiting", "gpu_utilisation", "use")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Summarised):
    """Figures of several policies on the same jobs.

    Parameters
    ----------
    kind : {"compare", "replay"}
        On an instance, each run verified; or on a trace.
    policies : mapping of str to mapping
        For each policy, in the order asked for, the figures of the table, its parameters and what
        it reports of its own run.
    about : mapping
        What they ran on: the number of ``jobs``, the ``version`` of the package, and what else the
        document says.
    """

    kind: str
    policies: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any]

    @property
    def unfinished(self) -> dict[str, float]:
        """Number of unfinished jobs by policy, rejected ones included; means over seeds."""
        jobs = self.about.get("jobs", 0)  # for results of versions that did not count them
        return {
            name: row["unfinished"] if "unfinished" in row else jobs - row.get("finished", jobs)
            for name, row in self.policies.items()
        }

    @property
    def missing(self) -> list[str]:
        """Requested policies without a result because Ctrl-C ended the comparison."""
        return list(self.about.get(MISSING, ()))

    def summary(self) -> tuple[str, Facts]:
        """Return a title and facts: number of jobs, and how many the first policies finished."""
        most = 4
        rows = list(self.policies.items())
        done = [(name, f"finished {row.get('finished', 0):.6g}") for name, row in rows[:most]]
        more = [("and", f"{len(rows) - most} more policies")] if len(rows) > most else []
        return "Comparison", [("jobs", f"{self.about.get('jobs')}"), *done, *more]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: one row per policy, one column per numeric figure."""
        rows = [{"policy": name, **row} for name, row in self.policies.items()]
        first = next(iter(self.policies.values()), {})
        numbers = [name for name, value in first.items() if not isinstance(value, Mapping)]
        return frame(rows, {"policy": "string", **dict.fromkeys(numbers, "float64")})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which `from_dict` reads."""
        policies = {name: dict(row) for name, row in self.policies.items()}
        return {"kind": self.kind, "policies": policies, **self.about}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Comparison:
        """Make a comparison from the data of `to_dict`, also as read from JSON."""
        read = object_of(lambda row: {key: entry(row, key, _reader(key)) for key in mapping(row)})
        policies = entry(data, "policies", read)
        rows = {name: ReadRow(name, row) for name, row in policies.items()}
        about = {name: value for name, value in data.items() if name not in ("kind", "policies")}
        if "optimum" in about:
            entry(about, "optimum", document.optional(document.record(dict, **_OPTIMUM)))
        return cls(entry(data, "kind", text), rows, about)


class ReadRow(dict[str, Any]):
    """Figures of a policy as read from a document; reading a missing figure raises `InputError`."""

    def __init__(self, policy: str, figures: Mapping[str, Any]) -> None:
        super().__init__(figures)
        self._policy = policy

    def __missing__(self, name: str) -> Any:
        raise InputError(f"policies.{self._policy}.{name}", "missing; this key is required")


def _reader(name: str) -> Reader[Any]:
    """Return the function that checks a row's entry of this name; an unknown one is not checked."""
    if name in FIGURES or name in SUMS:
        return figure_reader(name)
    return _READERS.get(name, lambda value: value)


def _over_seeds(data: Any) -> dict[str, Any]:
    """Check the entry of a policy on its seeds: a value for each seed, and intervals."""
    figures = entry(data, "figures", object_of(read_interval))
    seeds = entry(data, "seeds", list_of(count))
    with located_at("figures"):
        earned = entry(figures, PAIRED, lambda figure: entry(figure, "values", list_of(real)))
    if len(earned) != len(seeds):
        expected = f"expected a value for each of {len(seeds)} seeds"
        raise InstanceError(f"figures.{PAIRED}.values", expected, len(earned))
    return {**mapping(data), "seeds": seeds, "figures": figures}


PAIRED = "total_utility"  # the figure by which two policies are compared seed by seed
MISSING = "missing"  # key of a comparison that was interrupted: names of policies without figures


def until_interrupted(
    kind: str,
    names: Collection[str],
    run: Callable[[str], dict[str, Any]],
    about: Mapping[str, Any],
) -> Comparison:
    """Call `run` for each policy's row; after Ctrl-C, the result lists the policies without one."""
    rows: dict[str, dict[str, Any]] = {}
    try:
        for name in names:
            rows[name] = run(name)
    except KeyboardInterrupt:
        if not rows:
            raise
    missing = [name for name in names if name not in rows]
    return Comparison(kind, rows, {**about, **({MISSING: missing} if missing else {})})


Figure = Callable[[Outcome], Any]


def _of_jobs(part: str, fold: Callable[[list[Any]], Any]) -> Figure:
    """Return the figure that `fold` makes of `part` of all jobs, such as their waiting times."""
    return lambda outcome: fold(list(map(attrgetter(part), outcome.jobs)))


# What each figure is, whatever it is compared on; times are in slots on an instance, and in seconds
# on traces and elastic jobs. Comparisons differ in which of them they show (`measured`).
OF_THE_OUTCOME = (
    *("unfinished", "mean_completion", "median_completion", "makespan", "given_up_after_start"),
    *("wasted_share", "utilisation", "use", "policy_seconds", "simulator_seconds"),
)
FIGURES: Mapping[str, Figure] = {
    **{name: attrgetter(name) for name in OF_THE_OUTCOME},
    **{
        f"mean_{part}": _of_jobs(part, lambda times: math.fsum(times) / len(times))
        for part in ("waiting", "running", "overhead", "stalled")
    },
    **{name: _of_jobs(name, sum) for name in ("restarts", "resizes", "migrations")},
    "finished": lambda outcome: len(outcome.completions),
    "rejected": lambda outcome: sum(job.refusal is not None for job in outcome.jobs),
    "p95_completion": lambda outcome: outcome.completion_quantile(0.95),
    "gpu_utilisation": lambda outcome: outcome.use.get("gpu"),
    "policy_calls": lambda outcome: outcome.calls,
}


def measured(outcome: Outcome, *names: str) -> dict[str, Any]:
    """Compute the figures of `FIGURES` with these names from the outcome of a run."""
    return {name: FIGURES[name](outcome) for name in names}


def figures(run: Run) -> dict[str, Any]:
    """Return a run's figures for comparisons, as plain data; measured times come last."""
    outcome = run.outcome
    if outcome is None:
        raise InputError(run.policy, "expected a simulated run")
    return {
        "total_utility": run.total_utility,
        "admitted": run.admitted,
        "rejected": run.rejected,
        **measured(outcome, *ON_INSTANCES),
        "decision_seconds": run.latency,
        **measured(outcome, "policy_seconds", "simulator_seconds"),
    }


ON_INSTANCES = (
    *("finished", "unfinished", "mean_completion", "p95_completion", "makespan"),
    *("given_up_after_start", "wasted_share", "utilisation"),
)


def compare(
    instance: Instance,
    policies: Mapping[str, Callable[..., Policy]],
    seeds: Mapping[str, Sequence[int]] | None = None,
    *,
    on_decision: Callable[[str], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> Comparison:
    """Run each policy on `instance` and verify its schedules.

    Ctrl-C ends it with the policies that are done; `Comparison.missing` has the others.

    Parameters
    ----------
    instance : Instance
        The problem.
    policies : mapping of str to callable
        Makes a fresh policy, from a seed if it has some in `seeds`.
    seeds : mapping of str to sequence of int, optional
        Seeds of policies that draw: one run for each, figures are means over them.
    on_decision : callable, optional
        Called with the name of the policy once for each job whose fate is known, for progress.
    on_run : callable, optional
        Called with each run after it is verified.

    Raises
    ------
    TypeError
        If an argument is something else, such as a path or a policy in place of what makes one.
    PolicyError
        If a policy asks for what cannot run.
    VerificationError
        If a schedule breaks a constraint of the model.

    Examples
    --------
    >>> from baselines import DRF, FIFO
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> found = compare(instance, {"fifo": FIFO, "drf": DRF})
    >>> {name: row["admitted"] for name, row in found.policies.items()}
    {'fifo': 4, 'drf': 4}
    """
    expect_instance(instance)
    expected = "expected a mapping of names to what makes a policy, such as {'fifo': FIFO}"
    if not isinstance(policies, Mapping):
        raise TypeError(f"policies: {expected}, got {describe(policies)}")
    for name, make in policies.items():
        if not callable(make):
            message = f"policies[{name!r}]: expected what makes a fresh policy, such as FIFO"
            raise TypeError(f"{message} or lambda: FIFO(seed=1), got {describe(make)}")
    seeds = {} if seeds is None else seeds

    def one(name: str, *seed: int) -> dict[str, Any]:
        listener = None if on_decision is None else lambda _: on_decision(name)
        run = oasis.simulate(instance, policies[name](*seed), on_decision=listener)
        oasis.verify(instance, run)
        if on_run is not None:
            on_run(run)
        return figures(run) | {"parameters": dict(run.parameters), "report": dict(run.report)}

    def run(name: str) -> dict[str, Any]:
        if not seeds.get(name):
            return one(name)
        rows = [one(name, seed) for seed in seeds[name]]
        return _merged(rows, seeds[name], len(instance.jobs))

    about = {
        "jobs": len(instance.jobs),
        "slot_seconds": instance.slot_seconds,
        "seed": instance.metadata.get("seed"),
        "version": oasis.__version__,
    }
    return until_interrupted("compare", policies, run, about)


PLAIN = tuple(name for name, entry in POLICIES.items() if not entry.needs_instance)
# Those that `oasis whatif` runs where none is named.
CHOSEN = tuple(name for name in PLAIN if not left_out(POLICIES[name].policy))


def left_out_note(policies: Sequence[str]) -> str:
    """Say which policies run only if they are named, and why."""
    reasons: dict[str, list[str]] = {}
    for name in PLAIN:
        if name not in CHOSEN and name not in policies:
            reasons.setdefault(left_out(POLICIES[name].policy), []).append(name)
    parts = [f"{', '.join(some)} ({reason})" for reason, some in reasons.items()]
    return f"not run unless --policies names them: {'; '.join(parts)}"


# How often jobs were changed, and what that cost them.
CHANGES = (
    *("mean_running", "mean_overhead", "mean_stalled"),
    *("restarts", "resizes", "migrations", "use"),
)


ON_TRACES = (
    *("finished", "unfinished", "rejected", "mean_completion", "median_completion"),
    *("p95_completion", "mean_waiting", "makespan", "gpu_utilisation", "policy_calls"),
    *("policy_seconds", "simulator_seconds"),
)


def _plain_policy(name: str, options: Mapping[str, Any]) -> Policy:
    return entry_of(name, PLAIN).make(None, options)


def replay_each(
    workload: Workload,
    policies: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, Any] | None = None,
    *,
    kind: str = "replay",
    make: Callable[[str, Mapping[str, Any]], Policy] = _plain_policy,
    more: Callable[[Outcome], dict[str, Any]] = lambda _: {},
    on_settled: Callable[[], None] | None = None,
) -> Comparison:
    """Run each policy on `workload`; rows have figures in seconds, and those of `more(outcome)`."""
    schedulers = {name: make(name, options) for name, options in policies.items()}
    listener = None if on_settled is None else lambda _: on_settled()
    # Jobs of a trace are rigid: nothing is said of their changes.
    names = ON_TRACES if workload.recorded else (*ON_TRACES, *CHANGES)

    def run(name: str) -> dict[str, Any]:
        policy = schedulers[name]
        outcome = replay(workload, policy, on_settled=listener)
        seconds = outcome.policy_seconds + outcome.simulator_seconds
        row = {
            **measured(outcome, *names),
            "jobs_per_second": len(outcome.jobs) / seconds if seconds else None,
            "parameters": parameters_of(policy),
            "report": report_of(policy),
        }
        return row | more(outcome) | entry_of(name).recorded(policies[name], row["parameters"])

    about = {"jobs": len(workload.jobs), **(about or {})}
    return until_interrupted(kind, schedulers, run, about)


OVER_SEEDS = "over_seeds"
SHARES = ("certified_share_lower", "certified_share_upper")
# Figures of no outcome alone.
SUMS = ("total_utility", "admitted", "of_bound", "jobs_per_second", *SHARES)
_READERS: Mapping[str, Reader[Any]] = {
    "decision_seconds": read_latency,
    "parameters": mapping,
    "report": mapping,
    "policy_options": list_of(text),
    "policy_files": list_of(mapping),
    OVER_SEEDS: _over_seeds,
}
_OPTIMUM: Mapping[str, Reader[Any]] = {
    "proven": document.flag,
    "objective": real,
    "upper_bound": document.optional(real),
    "status": text,
    "bound_by": document.optional(text),
}
AVERAGED = (
    *("total_utility", "admitted", "rejected", "finished", "mean_completion", "p95_completion"),
    *("unfinished", "makespan", "given_up_after_start", "wasted_share"),
)  # figures that get an interval


def _merged(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], jobs: int) -> dict[str, Any]:
    """Average the rows of a policy over `seeds`; add intervals of the figures in `AVERAGED`."""
    same = ("parameters", "report")
    means = {k: v if k in same else _mean_row([row[k] for row in rows]) for k, v in rows[0].items()}
    intervals = {}
    for figure in AVERAGED:
        values = [row[figure] for row in rows]
        numbers = [float(value) for value in values if value is not None]
        interval = interval_of(numbers, scale_of(figure), jobs if figure in COUNTS else math.inf)
        intervals[figure] = interval.to_dict() | {"values": values}
    return means | {OVER_SEEDS: {"seeds": list(seeds), "figures": intervals}}


def _mean_row(values: Sequence[Any]) -> Any:
    """Mean of the numbers, of mappings key by key; None values are left out, None if all are."""
    if isinstance(values[0], Mapping):
        return {key: _mean_row([value[key] for value in values]) for key in values[0]}
    # A mean of what is known: of a policy under which no job finishes, no completion time is.
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def with_optimum(comparison: Comparison, offline: OfflineResult) -> Comparison:
    """Add to each policy the bounds of its share of the optimum that are certain.

    Parameters
    ----------
    comparison : Comparison
        Comparison on an instance.
    offline : OfflineResult
        Of one solve of the same instance. It must not be worse than any of the runs: start it from
        the best of them (``warm_start``).

    Returns
    -------
    Comparison
        Each row has ``certified_share_lower`` and ``certified_share_upper``: total utility divided
        by the upper bound of the optimum, and by the best schedules known. They are equal where
        the optimum is proven, and None where there is nothing to earn. `about` has the ``optimum``.

    Examples
    --------
    >>> import oasis
    >>> from baselines import DRF, FIFO
    >>> from offline import solve
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> found = with_optimum(compare(instance, {"fifo": FIFO, "drf": DRF}), solve(instance))
    >>> {name: round(row["certified_share_lower"], 2) for name, row in found.policies.items()}
    {'fifo': 0.25, 'drf': 0.18}
    """
    solved, proven = offline.to_dict(), offline.status is Status.OPTIMAL
    optimum = {"proven": proven} | {name: solved[name] for name in OF_THE_OPTIMUM}
    # Of a proven optimum the bound differs from the objective by the solver's tolerance alone.
    highest = offline.objective if proven else offline.upper_bound
    return _with_shares(comparison, offline.objective, highest, optimum=optimum)


OF_THE_OPTIMUM = (
    *("status", "objective", "upper_bound", "gap", "objective_by", "bound_by", "method"),
    *("parameters", "seconds"),
)


def with_best_known(comparison: Comparison) -> Comparison:
    """Add shares as `with_optimum` does, on elastic jobs, from the best policy and the bound."""
    best = max((row["total_utility"] for row in comparison.policies.values()), default=0.0)
    return _with_shares(comparison, best, comparison.about["bound"])


def _with_shares(comparison: Comparison, lowest: float, highest: float, **more: Any) -> Comparison:
    """Add each policy's shares of an optimum in `lowest` to `highest`, and `more` in `about`."""
    rows = {name: dict(row) for name, row in comparison.policies.items()}
    for row in rows.values():
        for share, end in zip(SHARES, (highest, lowest), strict=True):
            row[share] = row["total_utility"] / end if end > 0 else None
    return replace(comparison, policies=rows, about={**comparison.about, **more})


TAKEN_BY = ("offline", "online", "both", "neither")


@dataclass(frozen=True, slots=True)
class Finish:
    """Completion slot and utility of a job, in either the online or the offline schedules."""

    completion: int
    utility: float


@dataclass(frozen=True, slots=True)
class JobComparison:
    """Results of a job in the online run and in the offline solution; None where not admitted."""

    job_id: str
    arrival: int
    online: Finish | None
    offline: Finish | None

    @property
    def taken_by(self) -> str:
        """Which of the two solutions admits the job: one of `TAKEN_BY`."""
        if self.online is None:
            return "neither" if self.offline is None else "offline"
        return "online" if self.offline is None else "both"

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data for JSON."""
        return asdict(self) | {"taken_by": self.taken_by}


def compare_jobs(instance: Instance, result: CompetitiveRatio) -> list[JobComparison]:
    """Compare online and offline schedules of `result` job by job, in the order of the instance."""
    rows = []
    for job in instance.jobs:
        found = (side.schedules.get(job.id) for side in (result.run, result.offline))
        ends = [None if schedule is None else schedule.completion for schedule in found]
        sides = (t if t is None else Finish(t, float(job.utility(t - job.arrival))) for t in ends)
        rows.append(JobComparison(job.id, job.arrival, *sides))
    return rows


def totals(rows: list[JobComparison]) -> dict[str, dict[str, float]]:
    """Number of jobs and both total utilities, by the value of `JobComparison.taken_by`."""
    groups = {name: [row for row in rows if row.taken_by == name] for name in TAKEN_BY}
    return {
        name: {
            "jobs": len(group),
            "online_utility": math.fsum(row.online.utility for row in group if row.online),
            "offline_utility": math.fsum(row.offline.utility for row in group if row.offline),
        }
        for name, group in groups.items()
    }
