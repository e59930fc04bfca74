"""Saying in one line how many jobs of a trace were kept, and which rule left out the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from oasis.model.instance import Instance
from oasis.traces.table import NEVER_SCHEDULED, NO_JOBS

STREAM = "jobs"
LABELS = ("virtual_cluster", "user", "partition", "queue", "qos")


def kept_sentence(kept: int, left_out: Iterable[tuple[int, str]]) -> str:
    """One line about the jobs of a trace.

    Parameters
    ----------
    kept : int
        Jobs that remain.
    left_out : iterable of (int, str)
        How many jobs each rule left out, and the rule with its values. Rules that left out none
        are not mentioned.

    Examples
    --------
    >>> kept_sentence(16, [(172, "by GPUs (1..)"), (0, "by duration"), (57, "outside the window")])
    'kept 16 of 245 jobs: 172 by GPUs (1..), 57 outside the window'
    >>> kept_sentence(3, [])
    'kept all 3 jobs'
    """
    rules = [(count, rule) for count, rule in left_out if count]
    total = kept + sum(count for count, _ in rules)
    if not rules:
        return f"kept all {total} jobs" if total != 1 else "kept the only job"
    reasons = ", ".join(f"{count} {rule}" for count, rule in rules)
    return f"kept {kept} of {total} job{'s' if total != 1 else ''}: {reasons}"


def malformed_counts(malformed: Mapping[str, Mapping[str, int]]) -> list[tuple[int, str]]:
    """How many jobs each kind of malformed row has cost, and the kind up to its first colon.

    Examples
    --------
    >>> malformed_counts({"never ran": {"count": 2, "first_row": 7}})
    [(2, 'never ran')]
    """
    counts: Counter[str] = Counter()
    for kind, found in malformed.items():
        if kind not in NO_JOBS:
            counts[kind.partition(":")[0]] += found["count"]
    return [(count, kind) for kind, count in counts.items()]


def kept_line(instance: Instance) -> str | None:
    """The line about the jobs of the trace that `instance` was imported from.

    It is made from the metadata alone, so that it can be said of an instance that was kept. None if
    the instance does not come from a trace.

    Examples
    --------
    >>> import oasis
    >>> from oasis.traces.account import kept_line
    >>> kept_line(oasis.generate("testbed", jobs=3, seed=1)) is None
    True
    """
    metadata = instance.metadata
    left_out, options = metadata.get("left_out"), metadata.get("options")
    if not isinstance(left_out, Mapping) or not isinstance(options, Mapping):
        return None
    if not all(type(count) is int for count in left_out.values()):
        return None
    return kept_sentence(len(instance.jobs), _rules(metadata, left_out, options))


def _rules(
    metadata: Mapping[str, Any], left_out: Mapping[str, int], options: Mapping[str, Any]
) -> Iterable[tuple[int, str]]:
    for stream, kinds in metadata.get("malformed", {}).items():
        if stream in (STREAM, "pods"):
            yield from malformed_counts(kinds)
    yield metadata.get("never_scheduled", 0), NEVER_SCHEDULED
    for rule, count in left_out.items():
        yield count, rule_text(rule, options, str(metadata.get("window_start", "")))


def rule_text(rule: str, options: Mapping[str, Any], start: str = "") -> str:
    """A rule that leaves out jobs, with its values.

    Parameters
    ----------
    rule : str
        Such as ``gpus`` or ``window``: a key of the metadata's ``left_out``.
    options : mapping
        The options of the importer.
    start : str
        Where the window begins.

    Examples
    --------
    >>> rule_text("gpus", {"min_gpus": 2, "max_gpus": 8})
    'by GPUs (2..8)'
    >>> rule_text("gpus", {"min_gpus": 1, "max_gpus": None}), rule_text("user", {"user": "ann"})
    ('by GPUs (1..)', 'by user (ann)')
    """
    if rule == "gpus":
        return f"by GPUs ({_range(options, 'gpus')})"
    if rule == "duration":
        return f"by duration ({_range(options, 'duration')} s)"
    if rule == "window":
        since = f" from {start}" if start else ""
        return f"outside the window ({options.get('arrival_slots')} slots{since})"
    if rule == "max_jobs":
        return f"by max_jobs ({options.get('max_jobs')}, {options.get('keep')})"
    return f"by {rule} ({options.get(rule)})"


def _range(options: Mapping[str, Any], what: str) -> str:
    ends = (options.get(f"min_{what}"), options.get(f"max_{what}"))
    return "..".join("" if end is None else f"{end:.10g}" for end in ends)
