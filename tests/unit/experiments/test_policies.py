"""The registry of policies: every policy is made from its options, and says which it has."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import baselines
import oasis
from experiments.evaluation.options import GenerateOptions, options_of
from experiments.evaluation.policies import (
    OASIS,
    POLICIES,
    OasisOptions,
    entry_of,
    having,
    make_policy,
)
from tests.unit.experiments.unusual import UNUSUAL

INSTANCE = oasis.generate("testbed", jobs=3, seed=1)


def test_every_policy_has_options_that_differ_from_its_defaults_in_the_tests() -> None:
    assert set(UNUSUAL) == set(POLICIES)
    for name, options in UNUSUAL.items():
        # Prices of one's own exclude the other options of prices (test_own_prices_command).
        apart = {"prices", "trust"} if name == OASIS else set()
        assert set(options) == set(POLICIES[name].options) - apart, name
        for option, value in options.items():
            assert value != POLICIES[name].options[option].default
            assert POLICIES[name].options[option].help, (name, option)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("unusual", [False, True])
def test_parameters_of_a_policy_are_all_its_options(name: str, unusual: bool) -> None:
    given: dict[str, Any] = UNUSUAL[name] if unusual else {}
    policy = make_policy(name, INSTANCE, **given)
    assert dict(policy.parameters) == POLICIES[name].resolve(given)
    again = make_policy(name, INSTANCE, **policy.parameters)
    assert again.parameters == policy.parameters


@pytest.mark.parametrize(
    ("options", "function"),
    [(OasisOptions, oasis.OASiS.from_instance), (GenerateOptions, oasis.generate)],
)
def test_options_are_those_of_the_library(options: type, function: Any) -> None:
    own = {name: option.default for name, option in options_of(options).items()}
    parameters = inspect.signature(function).parameters.values()
    assert own == {p.name: p.default for p in parameters if p.name != "instance"}


def test_a_new_policy_gets_its_options_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fair(baselines.FIFO):
        """A user's own policy.

        Parameters
        ----------
        patience : float
            How long jobs wait.
        """

        name = "fair"

        def __init__(self, seed: int = 0, patience: float = 1.0) -> None:
            super().__init__(seed)
            self.patience = patience

    from experiments.evaluation import policies

    monkeypatch.setitem(baselines.POLICIES, "fair", Fair)
    entry = policies._baseline("fair", Fair)
    assert entry.options["patience"].help == "How long jobs wait"
    made = entry.make(None, {"patience": 3})
    assert isinstance(made, Fair)
    assert made.patience == 3.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "lifo",
            {},
            f"expected one of {', '.join(POLICIES)}, got 'lifo'",
        ),
        ("rrh", {"line": "fit"}, "rrh.line: no such option; rrh has seed, threshold"),
        ("drf", {"seed": 1}, "drf.seed: no such option; drf has by, placement"),
        ("fifo", {"seed": 1.5}, "fifo.seed: expected an integer, got 1.5"),
        ("fifo", {"seed": -1}, "fifo.seed: expected an integer >= 0, got -1"),
        ("las", {"line": "x"}, "las.line: expected strict or fit, got 'x'"),
        ("dorm", {"theta_1": 2.0}, "dorm: expected theta_1 and theta_2 in 0..1, got 2.0, 0.1"),
        (OASIS, {"scale": 0}, "oasis.scale: expected a finite number > 0, got 0"),
        (OASIS, {"granularity": "x"}, "oasis.granularity: expected worker-slot or chunk, got 'x'"),
        (OASIS, {"min_utility_fraction": 1}, "oasis.min_utility_fraction: expected 0 <= fraction"),
    ],
)
def test_wrong_options_are_refused_by_name(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        make_policy(name, INSTANCE, **options)
    assert "--" not in str(caught.value), "flags are no matter of Python callers"


def test_policies_that_draw_are_those_with_a_seed() -> None:
    found = having("seed")
    assert found[:5] == ["recourse", "fifo", "rrh", "srtf", "las"]
    without = {OASIS, "drf", "dorm", "locality-aware", "dragon", "kod2", "priority-queue", "specon"}
    without |= {"optimus", "elasticflow"}
    assert set(found) == set(POLICIES) - without
    assert list(entry_of("drf").options) == ["by", "placement"]
    with pytest.raises(ValueError, match=r"^expected one of fifo, got 'oasis'$"):
        entry_of(OASIS, ("fifo",))
