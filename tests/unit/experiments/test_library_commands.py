"""Messages of ``oasis library improve`` on each instance, and its table."""

from __future__ import annotations

from dataclasses import replace

from experiments.cli.commands.library import _line, _plain, _row
from experiments.library import LibraryEntry
from experiments.library.improve import Improvement
from oasis.solvers import Status

KNOWN = LibraryEntry(
    *("n", "f", "0" * 16, 8.0, 10.0, "recourse", "2026-01-31"),
    *("benders: configuration LP", "2026-01-31", "1" * 16),
)


def test_a_line_says_what_has_become_of_an_instance() -> None:
    after = replace(KNOWN, value=9.0)
    assert _line(Improvement(None, KNOWN, Status.TIME_LIMIT)) == "n: 8, gap 25%, time_limit"
    changed = _line(Improvement(KNOWN, after, Status.GAP_LIMIT))
    assert changed == "n: 9, gap 11.1% (was 8, gap 25%), gap_limit"
    proven = replace(KNOWN, bound=8.0)
    assert _line(Improvement(proven, proven, None)) == "n: 8, gap 0%, proven before"


def test_rows_show_the_numbers_and_who_has_found_them() -> None:
    assert _row(KNOWN) == ("n", "8.000", "10.000", "25%", "open", "recourse")
    plain = _plain(KNOWN)
    assert (plain["value"], plain["bound"], plain["gap"]) == (8.0, 10.0, 0.25)
    assert plain["bound_by"] == "benders: configuration LP"
    assert {"check", "gap_percent"}.isdisjoint(plain)
