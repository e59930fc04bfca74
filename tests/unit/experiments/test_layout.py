"""Tables at any width: whatever is shown is whole, and whatever is not shown is named."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from experiments.cli.console import print_facts, print_notes, print_rows
from experiments.cli.layout import SHORT, lay_out, printable, wrapped
from experiments.evaluation.tables import COMPARED

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
    layout = lay_out(columns, rows, width)
    assert squeezed(out).startswith("thetitleofatablewith_a_name/of/a/file.json")
    for k, (heading, numeric) in enumerate(columns):
        if k >= len(layout.columns):
            name = heading or f"column {k + 1}"
            assert squeezed(name) in squeezed(layout.notes[-1])
            continue
        for row in rows:
            cell = printable(row[k])
            parts = cell.split("\n") if numeric else cell.split()
            assert all(part.strip() in out for part in parts), (parts, out)
        assert all(piece in out for piece in layout.columns[k].heading.split())
    assert "…" not in out
    fits = sum(column.width + 2 for column in layout.columns) - 2 <= width
    assert fits or len(layout.columns) <= 2
    longest_word = max(map(cell_len, layout.notes[-1].split())) if layout.notes else 0
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


ROW = ("finish-time-fairness", "153 ± 140", "12", "3.333", "46%", "4.12", "6.79")
BUSIEST = ("66% worker bandwidth_gbps", "0.619 ms")


def test_compare_says_which_columns_have_no_place() -> None:
    """The case of the issue: at 80 columns the last heading was cut to "dec"."""
    layout = lay_out(COMPARED, [(*ROW, *BUSIEST)], 80)
    headings = [column.heading for column in layout.columns]
    assert headings == ["policy", "utility", "adm.", "done", "waste", "mean", "p95", "busiest"]
    assert layout.notes == (
        "adm.: admitted",
        "not shown for want of width: decision; --json has them",
    )
    whole = lay_out(COMPARED, [(*ROW, *BUSIEST)], 100)
    assert [column.heading for column in whole.columns] == [name for name, _ in COMPARED]
    assert whole.notes == ()


def test_a_heading_is_short_only_where_that_helps() -> None:
    columns = (("policy", False), ("admitted", True), ("utility", True))
    narrow = lay_out(columns, [["las", "12", "1234567890"]], 24)
    assert [column.heading for column in narrow.columns] == ["policy", "adm.", "utility"]
    wide = lay_out(columns, [["las", "12", "1234567890"]], 28)
    assert [column.heading for column in wide.columns] == ["policy", "admitted", "utility"]
    assert all(len(short) < len(name) for name, short in SHORT.items())


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("mean_completion", 10, ["mean_", "completion"]),
        ("mean_completion", 15, ["mean_completion"]),
        ("in slot", 4, ["in", "slot"]),
        ("finish-time", 3, ["finish-time"]),
        ("", 3, [""]),
        ("two\nlines", 9, ["two", "lines"]),
    ],
)
def test_headings_break_between_words_and_behind_underscores(
    text: str, width: int, lines: list[str]
) -> None:
    assert wrapped(text, width, is_heading=True).split("\n") == lines


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
