"""Searches in turn: who gains most goes on, nobody waits for ever, who has nothing to do leaves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from oasis.solvers.budget import Budget, WorkCounter
from offline.heuristics import recombination
from offline.heuristics.recombination import Alternation


class Log:
    """Searches that gain what they are told to, and who had its turn for how long."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, float]] = []
        state = SimpleNamespace(enter=lambda phase: None)
        self.best: Any = SimpleNamespace(value=0.0, is_proven=False, state=state)

    def search(
        self, name: str, gain: float, spend: float = 1.0, has_tried: bool = True
    ) -> Callable[[Budget], bool]:
        def run(budget: Budget) -> bool:
            self.turns.append((name, budget.left))
            self.best.value += gain
            budget.charge(budget.left * spend)
            return has_tried

        return run

    def names(self) -> str:
        return "".join(name for name, _ in self.turns)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recombination, "GROWTH", 2.0)
    monkeypatch.setattr(recombination, "MOST_WAIT", 3)


def run(log: Log, searches: list[tuple[str, Callable[[Budget], bool]]], work: float) -> None:
    Alternation(searches, log.best, 1.0).search(Budget(work, WorkCounter()))


def test_the_search_that_gains_most_gets_most_turns_but_not_all() -> None:
    log = Log()
    run(log, [("a", log.search("a", 1.0)), ("b", log.search("b", 5.0))], 12.0)
    assert log.names() == "abbbabbbabbb"


def test_searches_that_gain_nothing_take_longer_turns_one_after_the_other() -> None:
    log = Log()
    run(log, [("a", log.search("a", 0.0)), ("b", log.search("b", 0.0))], 14.0)
    assert log.turns == [("a", 1.0), ("b", 1.0), ("a", 2.0), ("b", 2.0), ("a", 4.0), ("b", 4.0)]


def test_a_search_that_does_nothing_has_no_further_turn() -> None:
    log = Log()
    run(log, [("a", log.search("a", 0.0, spend=0.0)), ("b", log.search("b", 1.0))], 3.0)
    assert log.names() == "abbb"


def test_a_search_that_had_nothing_to_try_has_no_further_turn_though_time_passed() -> None:
    log = Log()
    idle = log.search("a", 0.0, spend=0.25, has_tried=False)
    run(log, [("a", idle), ("b", log.search("b", 1.0))], 3.0)
    assert log.names().count("a") == 1
    assert log.names().startswith("ab")


def test_it_ends_where_no_search_has_anything_to_do_or_nothing_is_left_to_gain() -> None:
    log = Log()
    run(log, [("a", log.search("a", 0.0, spend=0.0))], 3.0)
    assert log.names() == "a"
    log.best.is_proven = True
    run(log, [("b", log.search("b", 1.0))], 3.0)
    assert log.names() == "a"


def test_what_others_have_found_can_be_taken_up_before_each_turn() -> None:
    log, seen = Log(), list[str]()
    searches = [("a", log.search("a", 1.0)), ("b", log.search("b", 2.0))]
    search = Alternation(searches, log.best, 1.0, before_turn=lambda: seen.append(log.names()))
    search.search(Budget(4.0, WorkCounter()))
    assert seen == ["", "a", "ab", "abb"]


def test_no_turn_takes_all_that_is_left() -> None:
    log = Log()
    searches = [("a", log.search("a", 0.0)), ("b", log.search("b", 0.0))]
    budget = Budget(16.0, WorkCounter())
    search = Alternation(searches, log.best, 9.0, 0.25)
    search._turns[1].search = log.search("b", 0.0, spend=4.0)  # takes more than it is given
    search.search(budget)
    assert log.turns[:2] == [("a", 4.0), ("b", 3.0)]
    assert budget.passed
