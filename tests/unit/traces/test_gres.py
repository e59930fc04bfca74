"""Slurm's lists of resources: each entry is read whole, and what is not understood is named."""

from __future__ import annotations

import pytest

from oasis.traces.gres import Resources, resources_of
from oasis.traces.table import MalformedError
from tests.builders import rows

ROWS = rows(__file__, "gres.toml")


@pytest.mark.parametrize("kind", ["gpus", "parts"])
def test_gpus_of_a_list(kind):
    for text, gpus in ROWS[kind]:
        found = resources_of(text)
        assert (found.gpus, found.is_share) == (gpus, kind == "parts"), text


def test_nodes_and_other_generic_resources():
    assert resources_of("cpu=4,node=3,gres/a100=2,gres/nic=1") == Resources(
        0, 3, ("gres/a100", "gres/nic")
    )


@pytest.mark.parametrize("entry", ROWS["odd"])
def test_what_is_not_understood_is_named(entry):
    with pytest.raises(MalformedError) as caught:
        resources_of(f"cpu=4,{entry}")
    assert str(caught.value) == f"resources not understood: {entry}"
