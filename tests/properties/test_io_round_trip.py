"""An instance that is written and read again is the same instance, to the last bit."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, Constant, Deadline, Instance, Job, Piecewise, Server, Sigmoid
from tests.strategies import BANDWIDTH, all_instances

# The limits of docs/file-format.md.
LARGEST_AMOUNT, LARGEST_COUNT, SMALLEST_AMOUNT = 1e30, 2**53, 1e-30
names = st.text(min_size=1, max_size=8)
amounts = st.floats(0, LARGEST_AMOUNT)
lengths = st.floats(SMALLEST_AMOUNT, LARGEST_AMOUNT)
counts = st.integers(1, LARGEST_COUNT)
positive = st.floats(0, LARGEST_AMOUNT, exclude_min=True)


def vectors(resources):
    return st.dictionaries(st.sampled_from(resources), st.just(0.0) | lengths)


any_utility = st.one_of(
    st.builds(Sigmoid, amounts, amounts, amounts),
    st.builds(Constant, amounts),
    st.builds(Deadline, amounts, amounts),
    st.lists(st.tuples(amounts, amounts), min_size=1, max_size=4, unique_by=lambda p: p[0]).map(
        lambda points: Piecewise(
            tuple(sorted(delay for delay, _ in points)),
            tuple(sorted((value for _, value in points), reverse=True)),
        )
    ),
)


@st.composite
def any_instances(draw):
    """Any names, any finite amounts: nothing here needs to be schedulable."""
    resources = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    ids = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    machines = [Server(name, draw(vectors(resources)), draw(st.integers(1, 1))) for name in ids]
    horizon = draw(st.integers(1, 1000))
    cluster = Cluster(tuple(resources), tuple(machines[:1]), tuple(machines[1:]), draw(lengths))
    jobs = []
    for name in draw(st.lists(names, max_size=3, unique=True)):
        worker, ps = draw(vectors(resources)), draw(vectors(resources))
        if worker.get(BANDWIDTH, 0.0) > ps.get(BANDWIDTH, 0.0):
            worker[BANDWIDTH], ps[BANDWIDTH] = ps.get(BANDWIDTH, 0.0), worker[BANDWIDTH]
        sends = worker.get(BANDWIDTH, 0.0) > 0 and draw(st.booleans())
        jobs.append(
            Job(
                name,
                draw(st.integers(0, horizon - 1)),
                draw(counts),
                draw(counts),
                draw(counts),
                draw(positive),
                draw(amounts) if sends else 0.0,
                worker,
                ps,
                draw(any_utility),
            )
        )
    metadata = draw(st.dictionaries(names, st.one_of(names, st.integers(), amounts, st.none())))
    try:
        return Instance(horizon, cluster, tuple(jobs), metadata)
    except oasis.InstanceError as error:
        # amounts and counts that multiply to more work than the model takes
        assume("worker-slots" not in error.expected and "<= 1e+30" not in error.expected)
        raise


@given(st.one_of(any_instances(), all_instances()))
def test_written_and_read_again_is_equal_to_the_last_bit(tmp_path_factory, instance):
    path = tmp_path_factory.getbasetemp() / "instance.json"
    oasis.write(instance, path)
    again = oasis.read(path)
    assert again == instance
    assert again.metadata == instance.metadata
    for group in ("worker_capacity", "ps_capacity"):
        assert np.array_equal(getattr(again.cluster, group), getattr(instance.cluster, group))
    first = path.read_bytes()
    oasis.write(again, path)
    assert path.read_bytes() == first
