"""Options as data: what is read off signatures and dataclasses, and what values they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from experiments.evaluation.options import Option, described, options_of
from experiments.evaluation.policies import entry_of
from oasis.model.errors import InputError


@dataclass(frozen=True, slots=True)
class Speeds:
    """A dataclass of options.

    Parameters
    ----------
    fast, slow : float
        Metres a second.
    kind : {"a", "b"}
        Which
        of two.

    Notes
    -----
    label : is no parameter.
    """

    fast: float = 2.0
    slow: float | None = None
    kind: Literal["a", "b"] = "a"
    label: str = described("x", "what it is called", denial="")
    other: object = None


class Base:
    """Base.

    Parameters
    ----------
    seed : int
        Of the counts.
    """

    def __init__(self, seed: int = 0, *, needed: int, steps: tuple[int, int] = (1, 2)) -> None:
        self.seed, self.needed, self.steps = seed, needed, steps


class Derived(Base):
    """No section of its own."""


def test_fields_and_their_sentences() -> None:
    found = options_of(Speeds)
    assert list(found) == ["fast", "slow", "kind", "label"]  # text cannot express an object
    assert found["fast"] == Option("fast", float, 2.0, "Metres a second")
    assert found["slow"].help == "Metres a second"
    assert found["kind"].help == "Which of two"
    assert found["label"].help == "what it is called"


def test_parameters_of_a_constructor_are_documented_by_its_bases_too() -> None:
    found = options_of(Derived, without=("needed",))
    assert found["seed"] == Option("seed", int, 0, "Of the counts")
    assert found["steps"].is_row
    assert "needed" not in options_of(Derived), "it has no default, so it is no option"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "3", 3),
        (float, "3", 3.0),
        (float, " -1e-3", -0.001),
        (bool, "true", True),
        (bool, "False", False),
        (str, "3", "3"),
        (str, "", ""),
        (Literal["strict", "loose"], "loose", "loose"),
        (float | None, "none", None),
        (float | None, "2", 2.0),
        (tuple[float, ...], "0.5, 2", (0.5, 2.0)),
        (tuple[float, ...], "[0.5]", (0.5,)),
        (tuple[float, ...], "", ()),
        (tuple[float, float], "1,2", (1.0, 2.0)),
    ],
)
def test_text_becomes_the_type_of_the_option(kind: Any, text: str, value: Any) -> None:
    option = Option("x", kind, None)
    found = option.parse(text)
    assert found == value
    assert type(found) is type(value)
    assert option.check(found) == found, "what is parsed is right"


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, 1.5, "expected an integer, got 1.5"),
        (int, True, "expected an integer, got True"),
        (float, "2", "expected a finite number, got '2'"),
        (float, math.inf, "expected a finite number, got inf"),
        (float, math.nan, "expected a finite number, got nan"),
        (float, None, "expected a finite number, got None"),
        (bool, 1, "expected true or false, got 1"),
        (str, 1, "expected text, got 1"),
        (Literal["a", "b"], "c", "expected a or b, got 'c'"),
        (tuple[float, float], [1.0], r"expected 2 numbers, got \[1.0\]"),
        (tuple[float, ...], 1.0, "expected numbers, got 1.0"),
        (tuple[float, ...], [1.0, "2"], "expected a finite number, got '2'"),
    ],
)
def test_wrong_values_are_refused(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Option("x", kind, None).check(value)


def test_an_error_names_the_policy_and_the_option() -> None:
    with pytest.raises(InputError) as caught:
        entry_of("las").resolve({"line": "loose"})
    assert (caught.value.field, caught.value.got) == ("las.line", "'loose'")
    with pytest.raises(InputError) as caught:
        entry_of("las").resolve({"line": "loose"}, named=False)
    assert caught.value.field == "line"
