"""Names that are nearly right: read where case alone differs, suggested where more does."""

from __future__ import annotations

import pytest

import oasis
from baselines import make
from experiments.evaluation.policies import POLICIES, entry_of
from oasis.model.choices import choice, did_you_mean
from offline import solve
from tests.builders import rows


@pytest.mark.parametrize("name", ["FIFO", "Fifo", "fifo"])
def test_case_does_not_count(name):
    assert choice(name, POLICIES) == "fifo"
    assert entry_of(name).name == "fifo"


@pytest.mark.parametrize(("name", "meant"), rows(__file__, "names.toml")["meant"])
def test_a_policy_is_suggested(name, meant):
    suggested = f"; did you mean {meant!r}?"
    assert did_you_mean(name, POLICIES) == suggested
    with pytest.raises(ValueError, match=r"^expected one of oasis, recourse, ") as caught:
        entry_of(name)
    assert str(caught.value).endswith(f"got {name!r}{suggested}")


@pytest.mark.parametrize("name", ["", "zzz", "1", None, 3])
def test_nothing_is_suggested_where_nothing_is_near(name):
    assert did_you_mean(name, POLICIES) == ""
    with pytest.raises(ValueError, match=r"^expected one of "):
        choice(name, POLICIES)


def test_names_that_differ_in_case_alone_are_not_guessed():
    assert choice("a", ["a", "A"]) == "a"
    with pytest.raises(ValueError, match=r"got 'Ab'; did you mean 'ab' or 'AB'\?$"):
        choice("Ab", ["ab", "AB"])


def test_python_reads_and_suggests_the_same_names():
    small = {"jobs": 2, "worker_servers": 1, "ps_servers": 1, "horizon": 4, "seed": 1}
    instance = oasis.generate("Testbed", **small)
    assert instance == oasis.generate("testbed", **small)
    with pytest.raises(ValueError, match=r"preset: .*, got 'testbet'; did you mean 'testbed'\?"):
        oasis.generate("testbet", **small)
    assert solve(instance, "MILP", time_limit=5).method == "milp"
    with pytest.raises(ValueError, match=r"method: .*, got 'bender'; did you mean 'benders'\?"):
        solve(instance, "bender")
    assert make("Drf", 0).name == "drf"
    with pytest.raises(oasis.OasisError, match=r"name: .* did you mean 'congested'\?"):
        oasis.read_example("congestd")
