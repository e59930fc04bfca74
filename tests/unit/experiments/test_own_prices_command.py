"""Prices of one's own on the command line: runs, their records, payments, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oasis
from experiments.cli import main
from oasis.model.examples import example_text

CODE = """
import numpy as np


class Flat:
    def __init__(self, price: float = 0.05):
        self.price = price

    def at(self, used, capacity):
        return np.full(used.shape, self.price)


class Broken:
    def at(self, used, capacity):
        return used[0] / 0
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.py").write_text(CODE)
    Path("i.json").write_text(example_text("congested"))


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main.main(list(words))
    return int(done.value.code or 0)


def test_a_run_at_own_prices_is_recorded_and_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "i.json", "--prices", "prices.py:Flat", "-o", "r.json") == 0
    document = json.loads(Path("r.json").read_text())
    assert document["parameters"]["prices"] == "prices.py:Flat"
    assert document["policy_files"][0]["file"] == "prices.py"
    assert run("run", "--from", "r.json") == 0
    assert run("verify", "i.json", "r.json") == 0
    Path("prices.py").write_text(CODE.replace("0.05", "0.06"))
    capsys.readouterr()
    assert run("run", "--from", "r.json") == 2
    assert "prices.py (module prices) has changed" in capsys.readouterr().err


def test_payments_are_the_costs_of_admission(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "i.json", "--payments") == 0
    instance = oasis.read("i.json")
    result = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    assert set(result.payments) == set(result.schedules)
    assert 0 < result.revenue < result.total_utility
    printed = capsys.readouterr().out.splitlines()
    (total,) = [line.split() for line in printed if line.startswith("total  ")]
    assert total[1:3] == [f"{result.total_utility:.6g}", f"{result.revenue:.6g}"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prices", "prices.py:Fla"), "did you mean 'Flat'"),
        (("--prices", "prices.py:np"), "to be a class with a method at(used, capacity)"),
        (("--prices", "prices.py:Broken"), "Broken.at: failed with"),
        (("--prices", "absent.py:Flat"), "expected a Python file, got no absent.py"),
        (("--policy", "fifo", "--payments"), "expected a policy with prices, fifo has none"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "i.json", *words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
