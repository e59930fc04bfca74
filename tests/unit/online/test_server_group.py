"""One group of servers in the ledger: room, the cheapest servers, commits, and shared columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Cluster, Server
from oasis.model.rounding import FloatArray, IntArray
from oasis.online.prices import PriceFunction
from oasis.online.server_group import ServerGroup

HORIZON = 4
PRICE = PriceFunction(np.log([1.0, 2.0]), np.array([2.0, 1.0]), 1.0)
SERVERS = (Server("a", {"cpu": 8.0, "gpu": 4.0}, 3), Server("b", {"cpu": 4.0, "gpu": 1.0}))


def idle(servers: tuple[Server, ...] = SERVERS) -> ServerGroup:
    cluster = Cluster(("cpu", "gpu"), servers, (Server("p", {}),), 1.0)
    return ServerGroup.idle(servers, cluster.worker_capacity, HORIZON, PRICE)


def at(*places: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(places, dtype=np.int64)


def test_a_commit_at_the_front_leaves_the_others_in_one_column():
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 9),))
    group.commit(at(0), at(0), np.array([[2.0, 1.0]]), None)
    assert group.copies.tolist() == [1, 8]
    assert group.server.tolist() == [0, 1]
    group.commit(at(0), at(4), np.array([[2.0, 1.0]]), None)
    assert group.server.tolist() == [0, 1, 2, 3, 4, 5]
    assert group.copies.tolist() == [1, 1, 1, 1, 1, 4]


def test_twice_as_many_columns_are_opened_as_were_before():
    """So that one column after the other is opened in a logarithmic number of steps."""
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 99),))
    found = []
    for server in range(40):
        group.commit(at(0), at(server), np.array([[1.0, 0.0]]), None)
        found.append(len(group.server))
    assert found[:5] == [2, 4, 4, 10, 10]
    assert len(set(found)) == 5


def filled(
    group: ServerGroup, demand: FloatArray, slots: IntArray, units: IntArray
) -> tuple[IntArray, ...]:
    return group.fill(demand, slots, units, group.fits(demand, slots, int(units.max())))


@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_a_few_units_cost_what_they_cost_among_many(seed, most):
    """One or two units are placed without sorting; a table for more units begins with the same."""
    rng = np.random.default_rng(seed)
    group, demand, slots = idle(), np.array([2.0, 1.0]), at(0, 1, 2, 3)
    group.commit(at(0, 1, 2, 2), at(0, 1, 2, 3), 2.0 * rng.integers(0, 2, (4, 2)), PRICE)
    group.price[...] = rng.integers(1, 4, group.price.shape)  # many servers cost the same
    room = group.on_columns(group.fits(demand, slots, 9))
    few = group.total_costs(demand, slots, room.copy(), most)
    assert few.tolist() == group.total_costs(demand, slots, room, 9)[:, : most + 1].tolist()


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2.0, 1.0), (0.0, 1.0), (3.0, 1e-320)]))
def test_room_by_resource_is_the_room_for_each_resource_alone(seed, amounts):
    rng = np.random.default_rng(seed)
    group, demand, slots = idle(), np.array(amounts), at(0, 2, 3)
    group.commit(at(0, 2, 3), at(0, 3, 0), 2.0 * rng.integers(0, 2, (3, 2)), PRICE)
    rooms = group.room_by_resource(demand, slots, 7)
    asked = np.flatnonzero(demand)
    assert rooms.shape == (len(asked), 3)
    for k, r in enumerate(asked):
        alone = np.where(np.arange(2) == r, demand, 0.0)
        assert (
            rooms[k].tolist() == group.on_columns(group.fits(alone, slots, 7)).sum(axis=1).tolist()
        )


@given(
    st.lists(
        st.tuples(st.integers(0, HORIZON - 1), st.integers(0, 6), st.integers(1, 3)), max_size=8
    )
)
def test_columns_hide_nothing_from_a_group_that_has_one_for_each_server(commits):
    """The same commits on shared columns and on a column for each server: equal in all answers."""
    servers = (Server("a", {"cpu": 8.0, "gpu": 4.0}, 5), Server("b", {"cpu": 4.0, "gpu": 1.0}, 2))
    shared = idle(servers)
    single = ServerGroup.of_arrays(
        np.repeat(shared.capacity.T, shared.copies, axis=0),
        shared.expand(shared.used),
        shared.expand(shared.price),
    )
    for slot, server, units in commits:
        amounts = units * np.array([[0.5, 0.25]])
        shared.commit(at(slot), at(server), amounts, PRICE)
        single.commit(at(slot), at(server), amounts, PRICE)
    for name in ("used", "price"):
        arrays: list[FloatArray] = [g.expand(getattr(g, name)) for g in (shared, single)]
        assert np.array_equal(*arrays)
    demand, slots = np.array([1.0, 0.5]), np.arange(HORIZON)
    rooms = [g.on_columns(g.fits(demand, slots, 9)).sum(axis=1) for g in (shared, single)]
    assert np.array_equal(*rooms)
    units = np.minimum(rooms[0], 6).astype(np.int64)
    fills = [
        [part.tolist() for part in filled(group, demand, slots, units)]
        for group in (shared, single)
    ]
    assert fills[0] == fills[1]
    assert np.bincount(fills[0][0], weights=fills[0][2], minlength=HORIZON).tolist() == list(units)


def test_on_a_lost_server_not_even_a_unit_that_asks_for_nothing_fits():
    """It is no server without capacity, where such a unit has its place."""
    group, nothing = idle(), np.zeros(2)
    assert group.fits(nothing, at(0, 1), 5).tolist() == [[5.0, 5.0]] * 2
    group.lose(1)
    servers = dict(zip(group.server.tolist(), group.fits(nothing, at(0), 5)[0], strict=True))
    assert [servers[k] for k in (0, 1, 3)] == [5.0, 0.0, 5.0]
    assert group.fits(np.array([1.0, 0.0]), at(0), 5)[0][list(servers).index(1)] == 0
    group.set_capacity(1, np.array([8.0, 4.0]))
    assert 0.0 not in group.fits(nothing, at(0), 5)
    group.set_capacity(3, np.zeros(2))
    assert 0.0 not in group.fits(nothing, at(0), 5)


def test_a_closed_server_stays_closed_where_another_one_is_opened():
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 9),))
    closed = np.zeros(group.used.shape[1], dtype=bool)
    closed[0] = True
    group.close({2: closed})
    group.commit(at(0), at(7), np.ones((1, 2)), None)
    room = group.fits_on(np.ones(2), at(0, 1), np.arange(9), 9)
    assert room.tolist() == [[4, 4, 0, 4, 4, 4, 4, 3, 4], [4] * 9]
