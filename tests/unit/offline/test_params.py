"""Parameters of methods: defaults that are allowed, plain data and back, one clear line else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from offline import solve
from offline.benders.params import BendersParams, MasterParams
from offline.column_generation.params import ColumnGenerationParams, ConfigurationParams
from offline.enumeration import EnumerationParams
from offline.heuristics.params import WindowParams
from offline.model.milp import CompactParams
from offline.params import Params, Range, hints_of
from offline.patterns import CutParams
from offline.solve import METHOD_BY_NAME, METHODS, AutoParams

KINDS = (
    AutoParams,
    BendersParams,
    ConfigurationParams,
    CompactParams,
    EnumerationParams,
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


def test_what_is_left_out_is_as_the_method_has_it_not_as_its_part_has_it() -> None:
    assert BendersParams().pricing.tolerance != ColumnGenerationParams().tolerance
    changed = BendersParams.from_dict({"pricing": {"smoothing_step": 0.2}})
    expected = replace(BendersParams().pricing, smoothing_step=0.2)
    assert changed == replace(BendersParams(), pricing=expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"pays": -1}, "pays: expected a number >= 0, got -1"),
        ({"cuts": {"deep": 2}}, "cuts.deep: expected a number from 0 to 1, got 2"),
        ({"cuts": {"classes": 1.5}}, "cuts.classes: expected a whole number >= 1, got 1.5"),
        ({"cuts": {"classes": True}}, "cuts.classes: expected a whole number >= 1, got True"),
        ({"pays": float("nan")}, "pays: expected a number >= 0, got nan"),
        ({"pays": float("inf")}, "pays: expected a number >= 0, got inf"),
        ({"cuts": 3}, "cuts: expected parameters by name: "),
        ({"pricing": {"classes": 3}}, "pricing.classes: expected several numbers"),
        ({"pricing": {"classes": [0]}}, "pricing.classes: expected a whole number"),
        ({"master": CutParams()}, "master: expected MasterParams, got CutParams"),
        ({"cut": {}}, "cut: no such parameter; expected one of pricing, windows"),
    ],
)
def test_what_is_not_allowed_is_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(oasis.InputError) as error:
        BendersParams.from_dict(data)
    assert str(error.value).startswith(message)
    assert error.value.field == message.partition(":")[0]


@pytest.mark.parametrize("method", METHODS)
def test_parameters_of_another_method_are_refused(method: str) -> None:
    expected = f"^params: expected .*Params for method '{method}', got Window"
    with pytest.raises(oasis.InputError, match=expected):
        solve(TINY, method, params=WindowParams())


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
    params = AutoParams(compact_size=0, benders=BendersParams(master=MasterParams(window=7)))
    for given_params in (params, params.to_dict()):
        result = solve(TINY, params=given_params)
        assert result.method == "benders"
        assert result.parameters["params"]["master"]["window"] == 7
    assert solve(TINY).method == "milp"
