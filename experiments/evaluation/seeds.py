"""Policies that draw at random, side by side over several seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from experiments.evaluation.comparison import Comparison, compare, until_interrupted
from experiments.evaluation.intervals import interval_of, scale_of
from oasis.model.instance import Instance
from oasis.simulator import Policy, Scheduler

OVER_SEEDS = "over_seeds"
AVERAGED = (
    *("total_utility", "admitted", "rejected", "finished", "mean_completion", "p95_completion"),
    *("unfinished", "makespan", "given_up_after_start", "wasted_share"),
)  # figures that get an interval


def compare_over_seeds(
    instance: Instance,
    policies: Mapping[str, Callable[[int | None], Policy | Scheduler]],
    seeds: Mapping[str, Sequence[int]],
    *,
    on_decision: Callable[[str], None] | None = None,
    keep_interrupted: bool = False,
) -> Comparison:
    """Run each policy once, or once for each of its seeds; figures are then means over them.

    Parameters
    ----------
    instance : Instance
        The problem.
    policies : mapping of str to callable
        Makes a fresh policy with this seed, or with none where it does not draw at random.
    seeds : mapping of str to sequence of int
        Seeds of each policy that draws at random, by its name.
    on_decision : callable, optional
        As for `experiments.evaluation.comparison.compare`.
    keep_interrupted : bool
        Whether Ctrl-C keeps the policies that are done, as `until_interrupted` does.

    Returns
    -------
    Comparison
        The row of a policy with seeds holds means, of those runs that have the figure at all;
        parameters and report are those of the first seed. Its entry ``over_seeds`` has the
        ``seeds``, and under ``figures`` for each figure the ``values`` and the
        `experiments.evaluation.intervals.Interval` of their mean.

    Raises
    ------
    PolicyError, VerificationError
        As `experiments.evaluation.comparison.compare`.

    Examples
    --------
    >>> import oasis
    >>> from baselines import DRF, FIFO
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> makers = {"fifo": lambda seed: FIFO(seed=seed), "drf": lambda _: DRF()}
    >>> found = compare_over_seeds(instance, makers, {"fifo": [0, 1, 2]})
    >>> found.policies["fifo"]["over_seeds"]["figures"]["finished"]["values"]
    [1, 1, 1]
    """
    about: Mapping[str, Any] = {}

    def run(name: str) -> dict[str, Any]:
        nonlocal about
        drawn: Sequence[int | None] = seeds.get(name) or [None]
        found = [
            compare(instance, {name: partial(policies[name], seed)}, on_decision=on_decision)
            for seed in drawn
        ]
        about = found[0].about
        each = [one.policies[name] for one in found]
        return dict(each[0]) if name not in seeds else _merged(each, list(seeds[name]))

    rows, missing = until_interrupted(policies, run, keep=keep_interrupted)
    return Comparison("compare", rows, {**about, **missing})


def _merged(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> dict[str, Any]:
    kept = ("parameters", "report", "policy_options", "policy_files")
    means = {k: v if k in kept else _mean([row[k] for row in rows]) for k, v in rows[0].items()}
    found = {}
    for figure in AVERAGED:
        values = [row[figure] for row in rows]
        known = [float(value) for value in values if value is not None]
        found[figure] = interval_of(known, scale_of(figure)).to_dict() | {"values": values}
    return means | {OVER_SEEDS: {"seeds": list(seeds), "figures": found}}


def _mean(values: Sequence[Any]) -> Any:
    """Mean of numbers, also inside of mappings; None where no run has one."""
    if isinstance(values[0], Mapping):
        return {key: _mean([value[key] for value in values]) for key in values[0]}
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
