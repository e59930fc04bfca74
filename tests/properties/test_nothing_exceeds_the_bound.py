"""No policy earns more on elastic jobs than its LP, and none has a mean time below its bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.evaluation.elastic_comparison import elastic_policy, utility_of
from experiments.evaluation.policies import POLICIES
from oasis.simulator import elastic_from_dict, replay
from offline.elastic_bound import ROUNDING, elastic_bound, mean_completion_bound
from tests.strategies import fewer

SLOT = 60.0
EXAMPLES = {"dorm": fewer(20), "recourse": fewer(10), "oasis": fewer(5)}
WORTH = (
    {"kind": "deadline", "value": 3.0, "deadline": 100.0},
    {"kind": "sigmoid", "priority": 5.0, "decay": 0.02, "target": 200.0},
    {"kind": "sigmoid", "priority": 50.0, "decay": 0.5, "target": 90.0},
    {"kind": "constant", "value": 1.0},
    {"kind": "piecewise", "delays": [0.0, 300.0], "values": [9.0, 0.0]},
)


@st.composite
def elastic(draw):
    """Elastic jobs with all that can slow them down: locality, changes, parameter servers."""
    jobs = []
    for k in range(draw(st.integers(1, 5))):
        least = draw(st.integers(1, 2))
        most = least + draw(st.integers(0, 3))
        jobs.append(
            {
                "id": f"j{k}",
                "arrival": draw(st.sampled_from([0.0, 0.0, 30.0, 60.0, 100.0, 301.5])),
                "work": draw(st.sampled_from([1.0, 60.0, 119.0, 240.0, 600.0])),
                "workers": {"min": least, "initial": draw(st.integers(least, most)), "max": most},
                "parameter_servers": draw(st.integers(0, 1)),
                "worker": {"gpu": 1, "gb": draw(st.integers(0, 2))},
                "ps": {"gb": draw(st.integers(0, 1))},
                "gradient_mb": draw(st.sampled_from([0.0, 100.0])),
                "step_seconds": 0.5,
                "speedup": draw(st.sampled_from([[], [1.0, 1.6, 2.4, 3.5, 3.5]])),
                "curve": [[0.0, 1.0], [0.3, 0.1], [1.0, 0.0]],
                "utility": draw(st.sampled_from(WORTH)),
            }
        )
    change = draw(st.sampled_from([0.0, 7.0]))
    machine = {"id": "m", "count": draw(st.integers(1, 3)), "capacity": {"gpu": 2, "gb": 6}}
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["gpu", "gb"],
            "machines": [machine | {"link_gbps": 10.0}],
            "costs": dict.fromkeys(("start", "resume", "resize", "migrate"), change),
            "observation": {"interval": 10.0},
            "jobs": jobs,
        }
    )


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_earns_more_than_the_bound(name):
    @given(made=elastic(), length=st.sampled_from([SLOT, 25.0]))
    def check(made, length):
        outcome = replay(made.workload, elastic_policy(name, {}, made, SLOT), **made.options)
        earned, bound = utility_of(made, outcome), elastic_bound(made, length)
        assert earned is not None
        assert earned <= bound.value + 1e-6 * (1.0 + bound.value)
        if len(outcome.completions) == len(made.workload.jobs):
            assert outcome.mean_completion >= mean_completion_bound(made)

    EXAMPLES.get(name, fewer(4))(check)()


def test_a_lonely_job_that_fills_its_slots_earns_all_of_it():
    """The bound is met, so that no smaller one would hold."""
    job = {
        "id": "a",
        "arrival": 0.0,
        "work": 60.0,
        "workers": 1,
        "worker": {"gpu": 1},
        "utility": {"kind": "piecewise", "delays": [0.0, 600.0], "values": [10.0, 0.0]},
    }
    made = elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["gpu"],
            "machines": [{"id": "m", "capacity": {"gpu": 1}}],
            "jobs": [job],
        }
    )
    outcome = replay(made.workload, elastic_policy("fifo", {}, made), **made.options)
    assert utility_of(made, outcome) == 9.0
    utility = made.workload.jobs[0].utility
    assert elastic_bound(made, 60.0).value == utility(60.0 * (1 - ROUNDING))
