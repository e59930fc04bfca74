"""A wrong argument of a public name: an error that has its place, and what it got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import oasis
from oasis import LiveScheduler
from tests import builders

SMALL = oasis.generate("testbed", jobs=2, seed=1)
JOB = SMALL.jobs[0]


def service() -> LiveScheduler:
    return oasis.LiveScheduler.recourse(SMALL.cluster, 8)


@pytest.mark.parametrize(
    ("call", "field", "expected", "got"),
    [
        (partial(oasis.solve, SMALL, "x"), "method", "expected one of auto, milp, ", "'x'"),
        (
            partial(oasis.competitive_ratio, SMALL, method=None),
            "method",
            "expected one of auto, milp, ",
            "None",
        ),
        (
            partial(oasis.solve, SMALL, params=3),
            "params",
            "expected AutoParams for method 'auto'",
            "3",
        ),
        (
            partial(oasis.solve, SMALL, "milp", params={"presolve": 3}),
            "presolve",
            "expected true or false",
            "3",
        ),
        (
            partial(oasis.Schedule, "a", workers="x", ps=[]),
            "workers",
            "expected rows of integers (slot, server, count)",
            "'x'",
        ),
        (
            partial(oasis.Schedule, "a", workers=[], ps=[[0, 0, 1.5]]),
            "ps",
            "expected rows of integers (slot, server, count)",
            "[[0, 0, 1.5]]",
        ),
        (
            partial(oasis.Instance, 4, SMALL.cluster, [JOB, 1]),
            "jobs[1]",
            "expected an object of oasis.Job",
            "1",
        ),
        (
            partial(oasis.OASiS.from_instance, SMALL, scale="x"),
            "scale",
            "expected a finite number > 0",
            "'x'",
        ),
        (
            partial(oasis.OASiS.from_instance, SMALL, min_utility_fraction=None),
            "min_utility_fraction",
            "expected 0 <= phi < 1",
            "None",
        ),
        (partial(oasis.Recourse, seconds="x"), "seconds", "expected a number >= 0", "'x'"),
        (lambda: service().submit(3), "job", "expected an object of oasis.Job", "3"),  # type: ignore[arg-type]
        (
            lambda: service()._check_new(replace(JOB, arrival=4)),
            "arrival",
            "expected the present slot 0",
            "4",
        ),
        (lambda: service()._find("b"), "job_id", "expected a live job", "'b'"),
        (lambda: service()._locate("b", lost=False), "server", "expected the id of a se", "'b'"),
    ],
)
def test_the_error_has_field_expectation_and_value(
    call: Callable[[], Any], field: str, expected: str, got: str
) -> None:
    with pytest.raises(oasis.InputError) as caught:
        call()
    error = caught.value
    assert (error.field, error.got) == (field, got)
    assert error.expected.startswith(expected)
    assert ", got " not in error.expected


def test_a_cluster_that_is_none_is_a_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"cluster: expected an oasis\.Cluster, got None"):
        oasis.Instance(4, None, [builders.job()])  # type: ignore[arg-type]
