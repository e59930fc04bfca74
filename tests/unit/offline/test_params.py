"""Parameters of methods: defaults that are allowed, plain data and back, one clear line else."""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from offline import solve
from offline.params import (
    AutoParams,
    BendersParams,
    ColumnGenerationParams,
    CompactParams,
    ConfigurationParams,
    EnumerationParams,
    Params,
    Range,
    hints_of,
)
from offline.solve import METHOD_BY_NAME, METHODS

KINDS = (
    AutoParams,
    BendersParams,
    ConfigurationParams,
    CompactParams,
    EnumerationParams,
    ColumnGenerationParams,
)
TINY = oasis.generate("testbed", jobs=2, worker_servers=1, ps_servers=1, horizon=3, seed=3)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values that a field of this type allows."""
    if get_origin(hint) is Annotated:
        allowed: Range = get_args(hint)[1]
        most = min(allowed.most, 1e6)
        if allowed.is_integer:
            return st.integers(int(allowed.least), int(most))
        return st.floats(allowed.least, most, allow_subnormal=False)
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    return st.booleans() if hint is bool else params(hint)


def params(kind: type[Params]) -> st.SearchStrategy[Params]:
    return st.builds(kind, **{name: values(hint) for name, hint in hints_of(kind).items()})


@given(st.sampled_from(KINDS).flatmap(params))
def test_plain_data_says_it_all(made: Params) -> None:
    read = json.loads(json.dumps(made.to_dict()))
    assert type(made).from_dict(read) == made


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"benders": {"pays": -1}}, "benders.pays: expected a number >= 0, got -1"),
        ({"colgen": {"bound_share": 2}}, "colgen.bound_share: expected a number from 0 to 1, got"),
        ({"benders": {"span": 1.5}}, "benders.span: expected a whole number >= 1, got 1.5"),
        ({"benders": {"span": True}}, "benders.span: expected a whole number >= 1, got True"),
        ({"benders": {"pays": float("nan")}}, "benders.pays: expected a number >= 0, got nan"),
        ({"benders": {"pays": float("inf")}}, "benders.pays: expected a number >= 0, got inf"),
        ({"benders": 3}, "benders: expected parameters by name: "),
        ({"milp": BendersParams()}, "milp: expected CompactParams, got BendersParams"),
        ({"bender": {}}, "bender: no such parameter; expected one of compact_size, "),
    ],
)
def test_what_is_not_allowed_is_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(oasis.InputError) as error:
        AutoParams.from_dict(data)
    assert str(error.value).startswith(message)
    assert error.value.field == message.partition(":")[0]


@pytest.mark.parametrize(
    ("classes", "message"),
    [(3, "classes: expected several numbers"), ([0], "classes: expected a whole number")],
)
def test_several_numbers_are_checked_one_by_one(classes: Any, message: str) -> None:
    with pytest.raises(oasis.InputError, match=f"^{message}"):
        ColumnGenerationParams.from_dict({"classes": classes})


@pytest.mark.parametrize("method", METHODS)
def test_parameters_of_another_method_are_refused(method: str) -> None:
    expected = f"^params: expected .*Params for method '{method}', got Column"
    with pytest.raises(oasis.InputError, match=expected):
        solve(TINY, method, params=ColumnGenerationParams())


@pytest.mark.parametrize("method", METHOD_BY_NAME)
def test_a_result_has_the_parameters_that_it_can_be_made_again_with(method: str) -> None:
    result = solve(TINY, method, work_limit=0.5, seed=4)
    told = json.loads(json.dumps(result.parameters))
    kind = METHOD_BY_NAME[method].kind
    assert kind.from_dict(told["params"]) == kind()
    again = solve(TINY, method, work_limit=0.5, seed=4, params=told["params"])
    assert again.parameters == result.parameters
    assert again.objective == result.objective


def test_parameters_reach_the_method_that_auto_chooses() -> None:
    params = AutoParams(compact_size=0, benders=BendersParams(window=7))
    for given_params in (params, params.to_dict()):
        result = solve(TINY, params=given_params)
        assert result.method == "benders"
        assert result.parameters["params"]["window"] == 7
    assert solve(TINY).method == "milp"
