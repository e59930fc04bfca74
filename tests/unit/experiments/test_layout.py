"""Tables at any width: whatever is shown is whole, and whatever is not shown is named."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from experiments.cli.console import lay_out, print_facts, print_notes, print_rows, printable
from experiments.evaluation.comparison import Comparison
from experiments.evaluation.tables import comparison_table

Captured = pytest.CaptureFixture[str]
WIDTHS = (20, 40, 60, 80, 100, 132, 200)
WORDS = st.sampled_from(
    [
        *("a", "fifo", "finish-time-fairness", "0.619", "ms", "±", "bandwidth_gbps", "負荷分散"),
        *("größe", "x" * 70, "[bold]", "(0 to 24.2)*", "tab\there", "esc\x1b[2J", "line\u2028sep"),
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


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("width", WIDTHS)
@given(table=tables())
@settings(max_examples=60, deadline=None)
@example(table=([("a", True), ("b", True)], [["1 2", "x" * 70 + " y"]]))
def test_every_word_is_whole_or_its_column_is_named_as_not_shown(
    width: int, table: tuple[list[tuple[str, bool]], list[list[str]]]
) -> None:
    columns, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        written: list[str] = []
        patch.setattr("experiments.cli.console._write", written.append)
        print_rows(columns, rows, title="the title of a table with_a_name/of/a/file.json")
    out = "".join(written)
    shown, cells, note = lay_out(columns, rows, width)
    assert squeezed(out).startswith("thetitleofatablewith_a_name/of/a/file.json")
    for k, (heading, numeric) in enumerate(columns):
        if k >= len(shown.columns):
            name = heading or f"column {k + 1}"
            assert squeezed(name) in squeezed(note)
            continue
        for row in rows:
            cell = printable(row[k])
            parts = cell.split("\n") if numeric else cell.split()
            assert all(part.strip() in out for part in parts), (parts, out)
        assert all(piece in out for piece in str(shown.columns[k].header).split())
    assert "…" not in out
    fits = cells <= width
    assert fits or len(shown.columns) <= 2
    longest_word = max(map(cell_len, note.split()), default=0)
    if fits and max(longest_word, 46) <= width:
        assert max(map(cell_len, out.split("\n"))) <= width


@given(facts=st.lists(st.tuples(HEADINGS, CELLS), max_size=4), width=st.sampled_from(WIDTHS))
@settings(max_examples=60, deadline=None)
def test_no_fact_is_cut(facts: list[tuple[str, str]], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        written: list[str] = []
        patch.setattr("experiments.cli.console._write", written.append)
        print_facts("a/path/that/is/longer/than/the/line.json: verified", facts)
    out = "".join(written)
    assert "a/path/that/is/longer/than/the/line.json:" in out
    for name, value in facts:
        assert name in out
        assert all(word in out for word in printable(value).split())


COLUMNS, _ = comparison_table(Comparison("compare", {}, {}))
ROW = ("finish-time-fairness", "153 ± 140", "12", "3.333", "46%", "4.12", "6.79")
BUSIEST = ("66% worker bandwidth_gbps", "0.619 ms")


def test_compare_says_which_columns_have_no_place() -> None:
    narrow, _, note = lay_out(COLUMNS, [(*ROW, *BUSIEST)], 80)
    headings = [str(column.header) for column in narrow.columns]
    assert headings == ["policy", "utility", "admitted", "done", "waste", "mean", "p95"]
    assert note == "not shown for want of width: busiest, decision; --json has them"
    whole, _, note = lay_out(COLUMNS, [(*ROW, *BUSIEST)], 100)
    assert [str(column.header) for column in whole.columns] == [name for name, _ in COLUMNS]
    assert note == ""


def test_a_heading_breaks_behind_underscores_only_where_that_helps() -> None:
    columns = (("policy", False), ("mean_completion", True), ("in slot", True))
    for width, headings in (
        (40, ["policy", "mean_completion", "in slot"]),
        (24, ["policy", "mean_\ncompletion", "in slot"]),
    ):
        table, needed, note = lay_out(columns, [["las", "12", "3"]], width)
        assert [str(column.header) for column in table.columns] == headings
        assert (needed <= width, note) == (True, "")


def test_off_a_terminal_a_table_has_80_columns(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = [("job", False), *((f"figure_{k}", True) for k in range(12))]
    print_rows(columns, [["j", *("12345.6789" for _ in range(12))]])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "not shown for want of width: figure_6, figure_7, " in " ".join(out.split())


def test_sentences_below_a_table_are_as_wide_as_it(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    sentences = ["*: " + "some words " * 9 + "mine.py:APolicyWithAName 2", "short"]
    print_notes(sentences)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    assert out.split() == " ".join(sentences).split()
    assert out.endswith("\nshort\n")
