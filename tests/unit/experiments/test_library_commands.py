"""The table of ``oasis library list``."""

from __future__ import annotations

from experiments.cli.commands.library import _plain, _row
from experiments.library import LibraryEntry

KNOWN = LibraryEntry(
    *("n", "f", "0" * 16, 8.0, 10.0, "recourse", "2026-01-31"),
    *("benders: configuration LP", "2026-01-31", "1" * 16),
)


def test_rows_show_the_numbers_and_who_has_found_them() -> None:
    assert _row(KNOWN) == ("n", "8.000", "10.000", "25%", "open", "recourse")
    plain = _plain(KNOWN)
    assert (plain["value"], plain["bound"], plain["gap"]) == (8.0, 10.0, 0.25)
    assert plain["bound_by"] == "benders: configuration LP"
    assert {"check", "gap_percent"}.isdisjoint(plain)
