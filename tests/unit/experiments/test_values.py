"""What words and values are read as, and the one line that refuses others, also of a command."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

import oasis
from baselines import LAS
from experiments.cli.commands.kubernetes.reading import named_job
from experiments.cli.commands.learn import read_training_log
from experiments.cli.console import number, percent
from experiments.cli.options import Limits, comma_list, numbers
from experiments.evaluation.policies import make_policy
from experiments.evaluation.tables import SPACE, duration_text
from experiments.evaluation.whatif_result import Goal
from experiments.figures.settings import FigureSettings
from experiments.machines import machine_list
from experiments.options import (
    Duration,
    Option,
    described,
    options_of,
    read_seconds,
    read_share,
)
from experiments.sweep import expand
from tests.sweeping import small

VALUES = tomllib.loads(Path(__file__).with_name("values.toml").read_text(encoding="utf-8"))
INSTANCE = oasis.generate("testbed", jobs=3, seed=1)
KINDS = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "kind": Literal["strict", "loose"],
    "maybe": float | None,
    "row": tuple[float, ...],
    "pair": tuple[float, float],
}


def ratio_options(**task: Any) -> Any:
    """The options of a cell of a sweep of ratios."""
    return expand(small(task={"name": "ratio", **task}))[0].options


def of_a_file(read: Callable[[Path], Any]) -> Callable[[str], Any]:
    """Let `read` read a file of a text, in the working directory."""

    def reader(text: str) -> Any:
        Path("file.csv").write_text(text)
        return read(Path("file.csv"))

    return reader


READERS: dict[str, Callable[[Any], Any]] = {
    "seconds": read_seconds,
    "work": partial(read_seconds, what="units of work", is_time=False),
    "share": read_share,
    "machines": machine_list,
    "list": lambda text: comma_list(text, "--x"),
    "counts": numbers(int, "counts", most=4),
    "job": lambda name: named_job(name, None),
    "duration": lambda text: duration_text(float(text)).replace(SPACE, " "),
    "number": lambda text: number(float(text)),
    "percent": lambda text: percent(float(text)),
    "goal": Goal.read,
    "log": of_a_file(read_training_log),
    "nodes": of_a_file(lambda path: machine_list(str(path))),
    "space": lambda options: oasis.Space(**options),
    "task": lambda options: ratio_options(**options),
    "policy": lambda options: make_policy(instance=INSTANCE, **options),
    "figure": lambda options: FigureSettings(**options),
}


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [(reader, *row) for reader, rows in VALUES["right"].items() for row in rows.items()],
)
def test_what_a_word_is_read_as(reader, text, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if reader in KINDS:
        option = Option("x", KINDS[reader], None)
        found = option.parse(text)
        assert option.check(found) == found, "what is parsed is right"
    else:
        found = READERS[reader](text)
    if isinstance(value, list):
        assert list(found) == value
    else:
        assert found == pytest.approx(value)
        assert isinstance(found, type(value))


@pytest.mark.parametrize(
    ("reader", "value", "says"),
    [
        (reader, value, says)
        for reader, rows in VALUES["wrong"].items()
        for says, values in rows.items()
        for value in values
    ],
)
def test_a_wrong_value_is_refused_in_one_line(reader, value, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read = Option("x", KINDS[reader], None).check if reader in KINDS else READERS[reader]
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        read(value)
    assert str(refused.value).removeprefix("file.csv: ").startswith(says)
    assert "--" not in str(refused.value).removeprefix("--x"), "flags are no matter of Python"


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
    seed: int | Path = 0


def test_fields_and_their_sentences():
    found = options_of(Speeds)
    assert list(found) == ["fast", "slow", "kind", "label", "seed"]  # text cannot express an object
    assert found["seed"].parse("3") == 3
    assert found["fast"] == Option("fast", float, 2.0, "Metres a second")
    assert found["slow"].help == "Metres a second"
    assert found["slow"].parse("none") is None
    assert found["kind"].help == "Which of two"
    assert found["label"].help == "what it is called"


class Derived(LAS):
    """No section of its own."""

    def __init__(self, seed: int = 0, *, needed: int) -> None:
        super().__init__(seed)


def test_parameters_of_a_constructor_are_documented_by_its_bases_too():
    assert list(options_of(Derived)) == ["seed"], "the other has no default, so it is no option"
    assert options_of(Derived)["seed"].help == options_of(LAS)["seed"].help != ""
    assert options_of(LAS)["thresholds"].is_row
    assert "seed" not in options_of(LAS, without=("seed",))


def test_units_of_work_are_no_time():
    assert isinstance(read_seconds("5s"), Duration)
    units = {"work_limit": 3.0, "no_improvement": 5.0}
    assert Limits(**units).given() == units
    with pytest.raises(ValueError, match="--no-improvement: expected units of work with --work"):
        Limits(None, 3.0, no_improvement=read_seconds("5s")).given()


def test_a_sweep_reads_the_same_units():
    made = ratio_options(time_limit="2m", gap="5%", no_improvement="500ms")
    assert made == ratio_options(time_limit=120.0, gap=0.05, no_improvement=0.5)
    assert ratio_options(time_limit="inf").time_limit is None
