"""Decisions as plain data: what they say of a job by default, and the way through JSON and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.decision import Bottleneck, Decision, Rejection
from oasis.model.errors import InstanceError
from oasis.model.schedule import Schedule

names = st.text(min_size=1, max_size=5)
amounts = st.floats(0.0, 1e6)
bottlenecks = st.builds(
    Bottleneck,
    names,
    st.sampled_from(["worker", "ps"]),
    st.lists(names, max_size=3).map(tuple),
    st.lists(st.integers(0, 99), max_size=3).map(tuple),
    amounts,
    st.floats(0.0, 1.0),
)
rejections = st.builds(
    Rejection, amounts, st.integers(0, 99), st.none() | amounts, st.none() | bottlenecks
)
rows = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=4
)
schedules = st.builds(Schedule, names, rows, rows)
decisions = st.builds(
    Decision,
    names,
    st.booleans(),
    amounts,
    amounts,
    amounts,
    st.none() | st.integers(0, 99),
    st.none() | schedules,
    st.none() | names,
    st.none() | rejections,
)


@given(decisions)
def test_a_decision_survives_json(decision):
    plain = json.loads(json.dumps(decision.to_dict()))
    assert Decision.from_dict(plain) == decision
    assert Decision.from_dict(decision.to_dict()) == decision  # and without JSON in between


def test_a_missing_or_a_misspelt_field_is_no_decision_and_further_keys_do_not_matter():
    plain = Decision("j", admitted=True).to_dict()
    assert Decision.from_dict(plain | {"instance": {}}) == Decision("j", admitted=True)
    rest = {name: plain[name] for name in plain if name != "payoff"}
    for data in (rest, rest | {"payof": 1.0}):
        with pytest.raises(InstanceError, match=r"^payoff: missing"):
            Decision.from_dict(data)
