"""The online scheduler as an object: order of arrival, reasons, checkpoints, options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import (
    Cluster,
    Constant,
    Deadline,
    InputError,
    Instance,
    InstanceError,
    Job,
    OasisError,
    Server,
    Sigmoid,
)
from oasis.model.files import save_state, saved_state
from oasis.model.groups import GROUPS
from oasis.online.oasis import CHECKPOINT, OASiS
from tests.unit.states import changed_and_loaded

CLUSTER = Cluster(("cpu",), (Server("w", {"cpu": 2.0}),), (Server("p", {"cpu": 2.0}),), 1.0)
JOB = Job("a", 1, 1, 2, 1, 1.0, 0.0, {"cpu": 1.0}, {}, Constant(4.0))
INSTANCE = Instance(4, CLUSTER, (JOB, replace(JOB, id="b"), replace(JOB, id="c", arrival=2)))


def scheduler(**options: Any) -> OASiS:
    return OASiS.from_instance(INSTANCE, **options)


def arrays(*, price: float = 0.0, used: float = 0.0) -> list[np.ndarray]:
    return [np.full((4, 1, 1), value) for value in (price, 0.0, used, 0.0)]


def test_jobs_are_submitted_in_order_of_arrival():
    online = scheduler()
    online.submit(replace(JOB, arrival=2))
    expected = r"arrival: expected 2..3, in order of arrival, got 1 \(job 'b'\)"
    with pytest.raises(InstanceError, match=expected):
        online.submit(replace(JOB, id="b"))
    assert len(online.decisions) == 1
    assert online.now == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival": 4}, r"arrival: expected 0..3, in order of arrival, got 4"),
        ({"worker": {"gpu": 1.0}}, r"worker\.gpu: expected one of the resources cpu"),
    ],
)
def test_a_job_of_another_horizon_or_cluster_is_refused(changes, message):
    with pytest.raises(InstanceError, match=message):
        scheduler().quote(replace(JOB, **changes))


def test_a_job_is_submitted_once_admitted_or_not():
    online = scheduler()
    hopeless = replace(JOB, id="no", minibatch_time=50.0)
    for job in (JOB, hopeless):
        online.submit(job)
        with pytest.raises(InstanceError, match=f"id: expected a new job, got {job.id!r} again"):
            online.quote(job)


def test_job_with_room_only_when_it_is_worthless_says_what_lateness_would_cost():
    """Slot 1 is taken; later there is room, at a price, but the deadline is over."""
    online = scheduler()
    online.submit(JOB)
    decision = online.submit(replace(JOB, id="due", utility=Deadline(4.0, 0.0)))
    assert decision.reason.startswith("no room: 0 of 2 worker-slots free by slot 1")
    assert decision.rejection.utility_factor is None
    assert decision.rejection.smallest_utility_completion == 2
    assert decision.rejection.smallest_utility == pytest.approx(2 * online.bounds.worker.lower[0])


def test_payoff_of_exactly_zero_is_rejected():
    """Alg. 1 admits at mu > 0: worth 4, costs 4."""
    assert oasis.best_schedule(JOB, CLUSTER, 4, *arrays(price=2.0)).schedule is None
    cheaper = np.nextafter(2.0, 0.0)
    assert oasis.best_schedule(JOB, CLUSTER, 4, *arrays(price=cheaper)).schedule is not None


def test_free_slots_are_never_counted_beyond_the_work_in_a_no_room_reason():
    """A utility that underflows to 0.0 pays nothing, but there is room: the reason must not lie.

    The job needs 200 slots and is then worth e^-1194: its logarithm counts, its value is 0.0.
    """
    long = replace(JOB, chunks=1, minibatch_time=200.0, utility=Sigmoid(1.0, 6.0, 1.0))
    for fraction in (1e-3, 0.0):
        instance = Instance(300, CLUSTER, (long, replace(JOB, id="other")))
        online = OASiS.from_instance(instance, min_utility_fraction=fraction)
        decision = online.quote(long)
        assert not decision.admitted
        assert "no room" not in decision.reason


@pytest.mark.parametrize(
    ("capacity", "used", "demand", "room"),
    [
        (0.3, 0.0, 0.1, 3),  # 0.3 / 0.1 is 2.9999999999999996
        (1.0, 0.3, 0.1, 7),  # 0.7 / 0.1 is 6.999999999999999
        (0.7, 0.6, 0.1, 1),  # 0.7 - 0.6 is 0.09999999999999998
        (1.1 * 3, 0.0, 1.1, 3),
        (0.3 - 1e-8, 0.0, 0.1, 2),
    ],
)
def test_server_holds_as_many_units_as_its_capacity_says(capacity, used, demand, room):
    """The last bit of a quotient costs no worker and no parameter server."""
    amounts = {"cpu": capacity, "bandwidth_gbps": 100.0}
    cluster = Cluster(tuple(amounts), (Server("w", amounts),), (Server("p", amounts),), 1.0)
    taken = np.array([[[used, 0.0]]])
    free, prices = np.zeros((1, 1, 2)), np.ones((1, 1, 2))
    for small, large in (("worker", "ps"), ("ps", "worker")):
        demands = {
            small: {"cpu": demand, "bandwidth_gbps": 1.0},
            large: {"cpu": 0.0, "bandwidth_gbps": 1.0},
        }
        worker_used, ps_used = (taken, free) if small == "worker" else (free, taken)
        for count in (room, room + 1):
            job = replace(JOB, arrival=0, chunks=count, utility=Constant(1e6), **demands)
            found = oasis.best_schedule(job, cluster, 1, prices, prices, worker_used, ps_used)
            assert (found.schedule is not None) == (count == room)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04broken"])
def test_file_that_is_no_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(OasisError, match=r"state.npz: expected 'oasis-scheduler 1', got"):
        OASiS.load(path)
    save_state(path, "else", {})
    with pytest.raises(OasisError, match="expected 'oasis-scheduler 1', got 'else'"):
        OASiS.load(path)


def test_a_checkpoint_that_was_changed_is_refused_in_one_line(tmp_path):
    """Also with a checksum that fits; what still loads is a state that the servers can hold."""
    instance, path = oasis.generate("testbed", jobs=4, seed=1), tmp_path / "state"
    online = OASiS.from_instance(instance)
    for job in instance.jobs_by_arrival():
        online.submit(job)
    online.save(path)
    with pytest.raises(InstanceError, match=r"expected a new job, got .* again"):
        OASiS.load(path).submit(job)

    def check(loaded: OASiS) -> None:
        for group in GROUPS:
            held, price = group.of(loaded.ledger), group.of(loaded.bounds)
            capacity = held.capacity.T
            assert (held.used >= 0).all()
            assert (np.moveaxis(held.used, 0, 2) <= capacity * (1 + 1e-8)).all()
            follows = np.moveaxis(price(np.moveaxis(held.used, 0, 2), capacity), 2, 0)
            np.testing.assert_allclose(held.price, follows, rtol=1e-9)

    assert changed_and_loaded(path, CHECKPOINT, OASiS.load, 100, check) > 50


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cost": 0.5}, "cost"),
        ({"payoff": float("nan")}, "payoff"),
        ({"admitted": False}, ""),
        ({"completion": 3}, ""),
        ({"job": None}, "payoff"),
        ({"job_id": "b"}, ""),
        ({"schedule": {"job_id": "a", "workers": [[0, 0, 2]], "ps": []}}, "schedule.worker"),
        ({"schedule": {"job_id": "a", "workers": [[1, 1, 2]], "ps": []}}, "schedule.worker"),
        ({"schedule": {"job_id": "a", "workers": [[1, 0, -5]], "ps": []}}, "schedule.worker"),
        ({"schedule": {"job_id": "a", "workers": [], "ps": []}}, "schedule.workers"),
    ],
)
def test_a_decision_that_does_not_follow_is_refused(changes, field, tmp_path):
    online, path = scheduler(), tmp_path / "state"
    online.submit(JOB)
    online.save(path)
    state = saved_state(path, CHECKPOINT)
    state["decisions"][0] |= changes
    save_state(path, CHECKPOINT, state)
    with pytest.raises(InputError) as caught:
        OASiS.load(path)
    assert caught.value.field == f"decisions[0].{field}".rstrip(".")
    assert caught.value.sources == (path,)
