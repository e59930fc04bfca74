"""Tables at any width: whatever is shown is whole, and whatever is not shown is named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from experiments.cli.console import print_facts, print_notes, print_rows, printable

Captured = pytest.CaptureFixture[str]
WIDTHS = (20, 40, 60, 80, 132)
WORDS = st.sampled_from(
    [
        *("a", "fifo", "finish-time-fairness", "0.619", "ms", "±", "bandwidth_gbps", "負荷分散"),
        *("größe", "[bold]", "(0 to 24.2)*", "tab\there", "esc\x1b[2J", "line\u2028sep"),
    ]
)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)
HEADINGS = st.sampled_from(["policy", "mean_completion", "of bound", "admitted", "", "p95", "決定"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    count = draw(st.integers(1, 8))
    columns = [(draw(HEADINGS), draw(st.booleans())) for _ in range(count)]
    rows = draw(st.lists(st.lists(CELLS, min_size=count, max_size=count), max_size=4))
    return columns, rows


@given(table=tables(), width=st.sampled_from(WIDTHS))
@settings(max_examples=200, deadline=None)
def test_every_number_is_whole_or_its_column_is_named_as_not_shown(
    table: tuple[list[tuple[str, bool]], list[list[str]]], width: int
) -> None:
    columns, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        written: list[str] = []
        patch.setattr("experiments.cli.console._write", written.append)
        print_rows(columns, rows, title="the title of a table with_a_name/of/a/file.json")
    out = "".join(written)
    shown, _, left_out = " ".join(out.split()).partition("not shown for want of width: ")
    count = len(columns) - len(left_out.split(", ") if left_out else [])
    letters = "".join(shown.split())
    assert "with_a_name/of/a/file.json" in out
    for k in range(len(columns)):
        for row in rows if k < count else ():
            cell = printable(row[k])
            if k == 0 or columns[k][1]:
                assert all(line.strip() in out for line in cell.split("\n"))
            else:
                assert all(letter in letters for letter in "".join(cell.split()))
    assert "…" not in out
    if count > 2:
        assert max(map(cell_len, out.split("\n"))) <= max(width, 46)


def test_a_heading_breaks_between_words_only_where_that_helps(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (("policy", False), ("mean_completion", True), ("in slot", True))
    for width, lines in (
        (40, ["policy  mean_completion  in slot"]),
        (24, ["             mean_    in", "policy  completion  slot"]),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        print_rows(columns, [["las", "12", "3"]])
        assert capsys.readouterr().out.splitlines()[:-1] == lines


def test_off_a_terminal_a_table_has_80_columns(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = [("job", False), *((f"figure_{k}", True) for k in range(12))]
    print_rows(columns, [["j", *("12345.6789" for _ in range(12))]])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "not shown for want of width: figure_6, figure_7, " in " ".join(out.split())


def test_words_below_a_table_and_facts_are_whole(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    sentences = ["*: " + "some words " * 9 + "mine.py:APolicyWithAName 2", "short"]
    print_notes(sentences)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    assert out.split() == " ".join(sentences).split()
    print_facts("a/path/that/is/longer/than/the/line.json: verified", [("policy", "a " * 60)])
    out = capsys.readouterr().out
    assert "a/path/that/is/longer/than/the/line.json:" in out
    assert out.count(" a") >= 60
