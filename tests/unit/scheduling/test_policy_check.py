"""A policy is checked before its run, and an error names the line of its author's code."""

from __future__ import annotations

import copy
import functools
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

import oasis
from baselines import FIFO
from oasis.model.errors import PolicyError
from oasis.scheduling import BasePolicy, Plan
from oasis.scheduling.policy_check import check_interface, in_words, parameters_of, report_of
from oasis.simulator import PlainJob, replay, rigid_workload

HERE = "test_policy_check.py:"


def workload() -> Any:
    return rigid_workload([PlainJob("a", 5.0, 60.0, 4), PlainJob("b", 5.0, 30.0, 8)], 1, 8)


class Duck:
    name, slotted, told_remaining, parameters = "duck", False, False, {}

    def reset(self, site: Any) -> None:
        pass

    def decide(self, view: Any) -> Plan:
        return Plan()


def without(attribute: str) -> Any:
    kept = {name: value for name, value in vars(Duck).items() if name != attribute}
    return type("Duck", (), kept)()


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("name", "policy Duck: .*name: missing; expected text, what results call it; "),
        ("slotted", "policy duck: .*slotted: missing; expected True or False, whether it is "),
        ("parameters", "policy duck: .*parameters: missing; expected a mapping, its options"),
        ("reset", r"policy duck: .*reset: expected a method reset\(site\), which .*, missing"),
    ],
)
def test_an_attribute_that_is_missing_is_named(attribute, expected):
    with pytest.raises(PolicyError, match=expected):
        replay(workload(), without(attribute))


def test_an_error_has_line_time_and_cause():
    class Broken(Duck):
        def decide(self, view: Any) -> Plan:
            return {}["gpu"]

    with pytest.raises(PolicyError, match=r"KeyError: 'gpu' in decide at time 5$") as caught:
        replay(workload(), Broken())
    line = Broken.decide.__code__.co_firstlineno + 1
    assert f"{HERE}{line}: " in str(caught.value)
    assert type(caught.value.__cause__) is KeyError
    assert caught.value.time == 5.0
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_innermost_line_of_the_authors_code_is_named():
    def helper(key: str) -> Any:
        return sorted([{}], key=lambda entry: entry[key])

    class Broken(FIFO):
        def key(self, job: Any, workers: int, view: Any) -> float:
            return functools.reduce(lambda *_: helper("a"), [1, 2])  # the last frame is here

    with pytest.raises(PolicyError) as caught:
        replay(workload(), Broken())
    assert f"{HERE}{helper.__code__.co_firstlineno + 1}: KeyError: 'a' in decide" in str(
        caught.value
    )


def test_a_long_message_of_several_lines_is_one_short_line():
    found = in_words(ValueError("a\n  b\n" + "x" * 9999))
    assert found.startswith("ValueError: a b xxx")
    assert found.endswith("...")
    assert len(found) < 350


def test_parameters_and_report_are_plain_data():
    class Telling(Duck):
        report = {"rows": [1, {"a": (None, True)}]}  # noqa: RUF012

    assert report_of(Telling()) == {"rows": [1, {"a": (None, True)}]}
    assert (report_of(Duck()), parameters_of(Duck())) == ({}, {})
    Telling.report = {"rows": [1, {2: "a"}]}
    with pytest.raises(PolicyError, match=r"report\.rows\[1\]: expected texts as keys, got 2"):
        report_of(Telling())


class Small(BasePolicy):
    def __init__(self, most: int = 4, *more: int, rule: Any = FIFO, **others: Any) -> None:
        self.most = most

    def decide(self, view: Any) -> Plan:
        return Plan()


def test_defaults_of_the_base_class():
    made = Small()
    check_interface(made)
    assert (made.name, made.slotted, made.told_remaining) == ("Small", False, False)
    site = workload().site
    made.reset(site)
    assert made.site is site
    made.name = "another"
    assert (made.name, Small.name, type("Deep", (Small,), {}).name) == ("another", "Small", "Deep")


def test_parameters_are_what_the_constructor_was_given():
    assert Small().parameters == {"most": 4, "rule": "FIFO"}
    given = Small(2, 5, 6, rule=FIFO(), extra={"a": (1,)})
    expected = {"most": 2, "more": [5, 6], "rule": "FIFO", "extra": {"a": [1]}}
    assert given.parameters == expected
    for same in (copy.copy(given), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        assert same.parameters == expected


def test_a_dataclass_may_be_one():
    @dataclass
    class Rated(BasePolicy):
        rate: float = 0.5

        def decide(self, view: Any) -> Plan:
            return Plan()

    assert replay(workload(), Rated(0.25)).parameters == {"rate": 0.25}
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        Rated(speed=1)


def test_a_job_of_a_trace_is_worth_the_same_at_any_time():
    job = workload().jobs[0]
    assert not job.has_utility
    assert [float(job.utility(delay)) for delay in (0.0, 1e9)] == [1.0, 1.0]
    assert job.utility([0, 1]).tolist() == [1.0, 1.0]
    assert job.utility.log_value([0, 1]).tolist() == [0.0, 0.0]
    assert isinstance(job.utility, oasis.Utility)


async def waits(self: Any, view: Any) -> Any:
    return Plan()


def yields(self: Any, view: Any) -> Any:
    yield Plan()


@pytest.mark.parametrize(
    ("decide", "got"),
    [(waits, r"a coroutine \(async def\)"), (yields, r"a generator \(yield\)")],
)
def test_a_method_that_answers_later_is_refused_before_the_run(decide, got):
    policy: Any = type("Late", (Duck,), {"decide": decide})()
    expected = rf"{HERE}\d+: decide: expected decide\(view\), which gives a Plan, got {got}$"
    with pytest.raises(PolicyError, match=expected):
        check_interface(policy)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31mred"])
def test_a_name_stands_on_one_line_of_a_table(name):
    policy: Any = type("Named", (Duck,), {"name": name})()
    with pytest.raises(PolicyError, match="name: expected text, what results call it, got "):
        check_interface(policy)
