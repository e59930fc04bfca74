"""One group of servers in the ledger: room, the cheapest servers, commits, and shared columns."""

from __future__ import annotations

import numpy as np
import pytest
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


def test_an_idle_group_has_a_column_for_each_entry_of_the_cluster() -> None:
    group = idle()
    assert group.server.tolist() == [0, 3]
    assert group.copies.tolist() == [3, 1]
    assert group.capacity.tolist() == [[8.0, 4.0], [4.0, 1.0]]
    assert not group.used.any()
    assert group.expanded(group.used).shape == (HORIZON, 4, 2)


def test_idle_prices_are_the_lower_bounds_on_every_server() -> None:
    """An idle server costs L: 1 a CPU and 2 a GPU."""
    prices = idle().expanded(idle().price)
    assert prices[..., 0] == pytest.approx(np.full((HORIZON, 4), 1.0))
    assert prices[..., 1] == pytest.approx(np.full((HORIZON, 4), 2.0))


@pytest.mark.parametrize(
    ("demand", "most", "fits", "room"),
    [
        ([2.0, 1.0], 10, [4.0, 1.0], [12.0, 1.0]),
        ([3.0, 0.0], 10, [2.0, 1.0], [6.0, 1.0]),
        ([3.0, 0.0], 1, [1.0, 1.0], [3.0, 1.0]),
        ([9.0, 0.0], 10, [0.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], 5, [5.0, 5.0], [15.0, 5.0]),
        ([1e-320, 0.0], 5, [5.0, 5.0], [15.0, 5.0]),
    ],
)
def test_the_scarcest_resource_decides_what_fits(
    demand: list[float], most: int, fits: list[float], room: list[float]
) -> None:
    group = idle()
    assert group.fits(np.array(demand), at(0), most).tolist() == [fits]
    assert group.on_columns(group.fits(np.array(demand), at(0), most)).tolist() == [room]


def test_a_server_that_is_overfull_has_room_for_nothing() -> None:
    group = idle()
    group.commit(at(1), at(3), np.array([[5.0, 0.0]]), None)  # capacity 4
    assert group.fits(np.array([1.0, 0.0]), at(1), 9)[0].tolist()[-1] == 0.0


def test_a_tenth_fits_ten_times_whatever_its_last_bit() -> None:
    group = idle((Server("a", {"cpu": 1.0, "gpu": 0.0}),))
    assert group.fits(np.array([0.1, 0.0]), at(0), 99).tolist() == [[10.0]]


def test_a_commit_opens_columns_up_to_the_server_it_touches() -> None:
    group = idle()
    group.commit(at(2), at(1), np.array([[2.0, 1.0]]), PRICE)
    assert group.server.tolist() == [0, 1, 2, 3]
    assert group.copies.tolist() == [1, 1, 1, 1]
    used = group.expanded(group.used)
    assert used[2, 1].tolist() == [2.0, 1.0]
    assert used.sum() == 3.0


def test_a_commit_at_the_front_leaves_the_others_in_one_column() -> None:
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 9),))
    group.commit(at(0), at(0), np.array([[2.0, 1.0]]), None)
    assert group.copies.tolist() == [1, 8]
    assert group.server.tolist() == [0, 1]
    group.commit(at(0), at(4), np.array([[2.0, 1.0]]), None)
    assert group.server.tolist() == [0, 1, 2, 3, 4, 5]
    assert group.copies.tolist() == [1, 1, 1, 1, 1, 4]


def test_twice_as_many_columns_are_opened_as_were_before() -> None:
    """So that one column after the other is opened in a logarithmic number of steps."""
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 99),))
    found = []
    for server in range(40):
        group.commit(at(0), at(server), np.array([[1.0, 0.0]]), None)
        found.append(len(group.server))
    assert found[:5] == [2, 4, 4, 10, 10]
    assert len(set(found)) == 5


def test_only_what_is_touched_is_repriced() -> None:
    """4 of 8 CPUs: half-way between L and U, sqrt(1 * e^2) = e; the GPU alike, 2 e^(1/4)."""
    group = idle()
    group.commit(at(1), at(0), np.array([[4.0, 1.0]]), PRICE)
    price = group.price_at(at(1, 1, 0), at(0, 1, 0))
    expected = PRICE(np.array([4.0, 1.0]), np.array([8.0, 4.0]))
    assert price[0].tolist() == expected.tolist()
    assert price[1].tolist() == price[2].tolist() == [1.0, 2.0]
    assert (price[0] > price[1]).all()


def test_without_a_price_function_prices_stay() -> None:
    group = idle()
    group.commit(at(1), at(0), np.array([[4.0, 1.0]]), None)
    assert group.price_at(at(1), at(0)).tolist() == [[1.0, 2.0]]
    group.reprice(PRICE)
    assert group.price_at(at(1), at(0))[0, 0] > 1.0


def test_taking_back_what_was_committed_restores_amounts_and_prices() -> None:
    group, amounts = idle(), np.array([[2.0, 1.0], [4.0, 0.0]])
    group.commit(at(0, 1), at(2, 3), amounts, PRICE)
    group.commit(at(0, 1), at(2, 3), -amounts, PRICE)
    fresh = idle()
    assert not group.used.any()
    assert np.array_equal(group.expanded(group.price), fresh.expanded(fresh.price))


def filled(
    group: ServerGroup, demand: FloatArray, slots: IntArray, units: IntArray
) -> tuple[IntArray, ...]:
    return group.fill(demand, slots, units, group.fits(demand, slots, int(units.max())))


def test_cheap_servers_are_filled_first_and_equals_from_the_lowest_index() -> None:
    group = idle()
    slots, servers, counts = filled(group, np.array([4.0, 0.0]), at(0), at(4))
    assert (slots.tolist(), servers.tolist(), counts.tolist()) == ([0, 0], [0, 1], [2, 2])
    group.commit(at(0), at(0), np.array([[4.0, 0.0]]), PRICE)  # server 0 is now dearer
    _, servers, counts = filled(group, np.array([4.0, 0.0]), at(0), at(5))
    assert servers.tolist() == [1, 2, 3]
    assert counts.tolist() == [2, 2, 1]


def test_servers_of_one_column_are_filled_one_after_the_other() -> None:
    """Seven units, four on a server: 4 and 3; the last server of a column may be part full."""
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 5),))
    slots, servers, counts = filled(group, np.array([2.0, 1.0]), at(3, 1), at(7, 1))
    assert slots.tolist() == [0, 0, 1]
    assert servers.tolist() == [0, 1, 0]
    assert counts.tolist() == [4, 3, 1]


def test_no_units_use_no_servers() -> None:
    slots, servers, counts = filled(idle(), np.array([2.0, 1.0]), at(0, 1), at(0, 0))
    assert (len(slots), len(servers), len(counts)) == (0, 0, 0)


def test_the_cost_of_n_units_is_that_of_the_n_cheapest_places() -> None:
    """Server 3 made dear: five units of (4, 0) cost 4 each on a, and what b asks beyond six."""
    group = idle()
    group.commit(at(0), at(3), np.array([[0.0, 0.5]]), None)
    group.price[0, 0, group.server == 3] = 10.0
    demand = np.array([4.0, 0.0])
    room = group.on_columns(group.fits(demand, at(0), 9))
    table = group.total_costs(demand, at(0), room, 9)
    assert table.shape == (1, 10)
    assert table[0].tolist() == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 64.0, np.inf, np.inf]


@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_a_few_units_cost_what_they_cost_among_many(seed: int, most: int) -> None:
    """One or two units are placed without sorting; a table for more units begins with the same."""
    rng = np.random.default_rng(seed)
    group, demand, slots = idle(), np.array([2.0, 1.0]), at(0, 1, 2, 3)
    group.commit(at(0, 1, 2, 2), at(0, 1, 2, 3), 2.0 * rng.integers(0, 2, (4, 2)), PRICE)
    group.price[...] = rng.integers(1, 4, group.price.shape)  # many servers cost the same
    room = group.on_columns(group.fits(demand, slots, 9))
    few = group.total_costs(demand, slots, room.copy(), most)
    assert few.tolist() == group.total_costs(demand, slots, room, 9)[:, : most + 1].tolist()


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2.0, 1.0), (0.0, 1.0), (3.0, 1e-320)]))
def test_room_by_resource_is_the_room_for_each_resource_alone(
    seed: int, amounts: tuple[float, float]
) -> None:
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


def test_capacity_of_one_server_of_a_column_changes_alone() -> None:
    group = idle()
    group.set_capacity(1, np.zeros(2))
    assert group.fits(np.array([1.0, 0.0]), at(0), 9).tolist() == [[8.0, 0.0, 8.0, 4.0]]
    group.set_capacity(1, np.array([8.0, 4.0]), PRICE)
    assert group.fits(np.array([1.0, 0.0]), at(0), 9).tolist() == [[8.0, 8.0, 8.0, 4.0]]


def test_rolling_drops_the_past_and_appends_idle_slots() -> None:
    group = idle()
    group.commit(at(1, 3), at(0, 0), np.array([[4.0, 0.0], [2.0, 0.0]]), PRICE)
    price = group.price_at(at(3), at(0))
    group.roll(2, PRICE)
    assert group.expanded(group.used)[:, 0, 0].tolist() == [0.0, 2.0, 0.0, 0.0]
    assert group.price_at(at(1), at(0)).tolist() == price.tolist()
    assert group.price_at(at(2, 3), at(0, 0)).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_rolling_without_a_price_function_leaves_prices_in_their_rows() -> None:
    group = idle()
    group.price[0] = np.arange(HORIZON)[:, None]
    group.roll(1, None)
    assert group.price[0, :, 0].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_given_arrays_are_copied() -> None:
    capacity = np.array([[8.0, 4.0], [4.0, 1.0]])
    used, price = np.zeros((HORIZON, 2, 2)), np.ones((HORIZON, 2, 2))
    used[1, 0, 0] = 3.0
    group = ServerGroup.of_arrays(capacity, used, price)
    used[1, 0, 0] = 0.0
    assert group.used[0, 1, 0] == 3.0
    assert group.copies.tolist() == [1, 1]
    assert np.array_equal(group.expanded(group.price), price)


@given(
    st.lists(
        st.tuples(st.integers(0, HORIZON - 1), st.integers(0, 6), st.integers(1, 3)), max_size=8
    )
)
def test_columns_hide_nothing_from_a_group_that_has_one_for_each_server(
    commits: list[tuple[int, int, int]],
) -> None:
    """The same commits on shared columns and on a column for each server: equal in all answers."""
    servers = (Server("a", {"cpu": 8.0, "gpu": 4.0}, 5), Server("b", {"cpu": 4.0, "gpu": 1.0}, 2))
    shared = idle(servers)
    single = ServerGroup.of_arrays(
        np.repeat(shared.capacity.T, shared.copies, axis=0),
        shared.expanded(shared.used),
        shared.expanded(shared.price),
    )
    for slot, server, units in commits:
        amounts = units * np.array([[0.5, 0.25]])
        shared.commit(at(slot), at(server), amounts, PRICE)
        single.commit(at(slot), at(server), amounts, PRICE)
    for name in ("used", "price"):
        arrays: list[FloatArray] = [g.expanded(getattr(g, name)) for g in (shared, single)]
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


def test_on_a_lost_server_not_even_a_unit_that_asks_for_nothing_fits() -> None:
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


def test_a_closed_server_stays_closed_where_another_one_is_opened() -> None:
    group = idle((Server("a", {"cpu": 8.0, "gpu": 4.0}, 9),))
    closed = np.zeros(group.used.shape[1], dtype=bool)
    closed[0] = True
    group.close({2: closed})
    group.commit(at(0), at(7), np.ones((1, 2)), None)
    room = group.fits_on(np.ones(2), at(0, 1), np.arange(9), 9)
    assert room.tolist() == [[4, 4, 0, 4, 4, 4, 4, 3, 4], [4] * 9]
