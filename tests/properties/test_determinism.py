"""The same seed gives the same bytes, whatever clock, hash seed, past or load there is."""

import json
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments import competitive_ratio
from offline import solve
from tests.background import beside
from tests.portable import switched_off
from tests.strategies import all_instances, fewer, of, schedulers

PRESETS = ("paper", "calibrated", "testbed", "testbed-observed", "kinds")
SIZES = {"jobs": 5, "worker_servers": 3, "ps_servers": 2, "horizon": 10}


def without_times(run):
    data = run.to_dict()
    del data["decision_seconds"]
    return json.dumps(data)


@fewer(4)
@given(of(*PRESETS), st.integers(0, 2**32))
def test_same_seed_writes_the_same_bytes(tmp_path_factory, preset, seed):
    files = [tmp_path_factory.getbasetemp() / f"seed{k}.json" for k in range(2)]
    for path in files:
        oasis.write(oasis.generate(preset, **SIZES, seed=seed), path)
    assert files[0].read_bytes() == files[1].read_bytes()
    other = oasis.generate(preset, **SIZES, seed=seed + 1)
    assert other.jobs != oasis.read(files[0]).jobs


@given(all_instances(), schedulers())
def test_same_instance_runs_the_same_and_decisions_survive_json(instance, make):
    one, other = (oasis.simulate(instance, make(instance)) for _ in range(2))
    assert without_times(one) == without_times(other)
    assert one.decisions == other.decisions
    for decision in one.decisions:
        again = oasis.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        assert again == decision


@pytest.mark.parametrize(
    ("there", "off"),
    [
        (("X86_V3",), ["X86_V3"]),
        (("X86_V3", "X86_V4", "AVX512_ICL"), ["X86_V4", "AVX512_ICL"]),
        (("AVX2", "FMA3", "AVX512F"), ["AVX512F"]),  # by the names of older releases of NumPy
        (("ASIMDHP",), ["ASIMDHP"]),
        ((), []),
    ],
)
def test_the_widest_instructions_of_a_processor_can_be_switched_off(there, off):
    """NumPy refuses to start where it is told to do without what is not there."""
    known = (*there, "NOT_THERE")
    assert switched_off(known, {name: name in there for name in known}) == off


# -- solves ----------------------------------------------------------------------------------------

METHODS = ("milp", "benders", "colgen", "auto")
WORK = 0.1


def instance(seed, jobs=8, worker_servers=5):
    return oasis.generate("testbed", jobs=jobs, worker_servers=worker_servers, seed=seed)


@contextmanager
def busy():
    """Another thread takes as much of the processor as it can get."""

    def spin(over):
        while not over.is_set():
            sum(range(1000))

    with beside(spin):
        yield


def repeatable(document):
    """The document as text, without the measured times."""

    def cleaned(value):
        if isinstance(value, dict):
            return {k: cleaned(v) for k, v in value.items() if not k.endswith("seconds")}
        return [cleaned(entry) for entry in value] if isinstance(value, list) else value

    return json.dumps(cleaned(document))


@pytest.mark.parametrize("method", METHODS[:-1])  # the ratio below is found by "auto"
def test_the_same_work_gives_the_same_bytes_on_a_busy_machine(method):
    problem = instance(0)
    first = solve(problem, method, work_limit=WORK, seed=3)
    with busy():
        second = solve(problem, method, work_limit=WORK, seed=3)
    assert repeatable(first.to_dict()) == repeatable(second.to_dict())
    assert first.parameters["work_limit"] == WORK
    assert first.parameters["seed"] == 3
    assert first.status in ("optimal", "work_limit")


@pytest.mark.parametrize("method", METHODS)
def test_no_work_at_all_keeps_the_schedules_of_oasis(method):
    problem = instance(0)
    result = solve(problem, method, work_limit=0.0)
    online = oasis.simulate(problem, oasis.OASiS.from_instance(problem))
    assert result.status == "work_limit"
    assert result.objective == pytest.approx(online.total_utility)


@pytest.mark.parametrize("method", ["milp", "benders", "auto"])
def test_unlimited_work_ends_with_a_proof(method):
    result = solve(instance(1, 5, 4), method, work_limit=float("inf"))
    assert result.status == "optimal"
    assert result.parameters["work_limit"] is None


def test_a_ratio_repeats():
    problem = instance(0)
    first, second = (
        competitive_ratio(problem, work_limit=WORK, seed=1).to_dict() for _ in range(2)
    )
    assert repeatable(first) == repeatable(second)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), True, "2"])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match=r"^work_limit: expected units of work >= 0"):
        solve(instance(0), work_limit=limit)
