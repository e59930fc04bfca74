"""Errors say where and what, are catchable by one class, and survive a trip between processes."""

from __future__ import annotations

import pickle

import pytest

from oasis.model.errors import InstanceError, OasisError, SolverError, VerificationError, located_at


@pytest.mark.parametrize("error", [InstanceError, SolverError, VerificationError])
def test_every_error_is_an_oasis_error(error: type[Exception]) -> None:
    assert issubclass(error, OasisError)


def test_instance_error_is_a_value_error_with_a_path() -> None:
    error = InstanceError("jobs[3].epochs", "expected an integer >= 1, got 0")
    assert isinstance(error, ValueError)
    assert str(error) == "jobs[3].epochs: expected an integer >= 1, got 0"
    assert str(InstanceError("", "expected JSON")) == "expected JSON"


def test_location_is_prepended_from_the_inside_out() -> None:
    def fail(path: str) -> None:
        with located_at("jobs[3]"), located_at("utility"):
            raise InstanceError(path, "wrong")

    for path, full in (
        ("kind", "jobs[3].utility.kind"),
        ("[2]", "jobs[3].utility[2]"),
        ("", "jobs[3].utility"),
    ):
        with pytest.raises(InstanceError) as caught:
            fail(path)
        assert caught.value.path == full


def test_location_leaves_other_errors_alone() -> None:
    with pytest.raises(KeyError), located_at("jobs[3]"):
        raise KeyError("x")


def test_verification_error_names_what_it_knows() -> None:
    error = VerificationError("(4) worker capacity", "9 > 8", slot=2, server="w1")
    assert str(error) == "(4) worker capacity [slot 2, server w1]: 9 > 8"
    assert (error.constraint, error.detail) == ("(4) worker capacity", "9 > 8")
    assert (error.job, error.slot, error.server) == (None, 2, "w1")
    assert str(VerificationError("(1)", "no")) == "(1): no"


@pytest.mark.parametrize(
    "error",
    [
        InstanceError("horizon", "expected an integer >= 1, got 0"),
        VerificationError("(4) worker capacity", "9 > 8", job="j", slot=2, server="w1"),
        SolverError("HiGHS failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: OasisError) -> None:
    """A worker process that fails must be able to say why."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
