"""Amounts of resources as arrays, machines by name, and the order of both."""

from __future__ import annotations

import pytest

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.resources import BANDWIDTH, ResourceVector, as_array, check_known


def test_an_array_follows_the_order_of_the_resources() -> None:
    amounts = ResourceVector({"cpu": 4, "gpu": 1})
    assert as_array(amounts, ("gpu", "cpu", BANDWIDTH)).tolist() == [1.0, 4.0, 0.0]
    assert as_array(amounts, ("cpu", "gpu")).tolist() == [4.0, 1.0]
    assert as_array({}, ("cpu",)).tolist() == [0.0]
    assert as_array(amounts, ()).shape == (0,)


def test_the_first_unknown_resource_is_named_even_if_none_of_it_is_asked_for() -> None:
    check_known({"cpu": 1.0}, ("gpu", "cpu"))
    with pytest.raises(InstanceError) as caught:
        check_known({"cpu": 1.0, "tpu": 0.0, "npu": 1.0}, ("gpu", "cpu"))
    assert str(caught.value) == "tpu: expected one of the resources gpu, cpu"


def test_a_vector_is_a_copy_that_shows_its_amounts() -> None:
    assert repr(ResourceVector({"cpu": 2})) == "ResourceVector({'cpu': 2.0})"
    assert ResourceVector({"cpu": 2}) == {"cpu": 2.0}
    assert ResourceVector.of({"cpu": 2}) == {"cpu": 2.0}
    with pytest.raises(KeyError):
        ResourceVector({"cpu": 2})["gpu"]


def test_a_resource_needs_a_name() -> None:
    with pytest.raises(InstanceError) as caught:
        ResourceVector({"": 1.0})
    assert str(caught.value) == "name: expected a non-empty string, got ''"


def test_clusters_are_equal_by_their_servers_not_by_how_rows_are_grouped() -> None:
    one = Cluster(["cpu"], [Server("w", {"cpu": 1}, 2)], [Server("p", {})], 1)  # type: ignore[arg-type]
    same = Cluster(("cpu",), (Server("w", {"cpu": 1.0}, 2),), (Server("p", {}),), 1.0)
    assert one == same
    assert one.resources == ("cpu",)
    apart = Server("w#0", {"cpu": 1.0}), Server("w#1", {"cpu": 1.0})
    other = Cluster(("cpu",), apart, (Server("p", {}),), 1.0)
    assert other != same
    assert other.worker_ids == same.worker_ids
    assert other.worker_capacity.tolist() == same.worker_capacity.tolist()
