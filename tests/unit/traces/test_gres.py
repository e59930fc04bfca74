"""Slurm's lists of resources: each entry is read whole, and what is not understood is named."""

from __future__ import annotations

import pytest

from oasis.traces.slurm import Resources, resources_of
from oasis.traces.table import MalformedError


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("cpu=16,gres/gpu=4", 4),
        ("gres/gpu:a100=4,gres/gpu=4", 4),
        ("gres/gpu=8,gres/gpu:a100=4,gres/gpu:v100=4", 8),
        ("gres/gpu:a100=4,gres/gpu:v100=2", 6),
        ("gres/gpu", 1),
        ("gres/gpu=1K", 1024),
        ("gpu:2", 2),
        ("gpu", 1),
        ("gpu:tesla", 1),
        ("gpu:tesla,gpu:v100:3", 4),
        ("gpu:a100:2,gpu:v100:1", 3),
        ("gpu:2(IDX:0-1)", 2),
        ("gpu:4(S:0-1)", 4),
        ("gpu:a100:3(IDX:0,2-3),gpu:v100(IDX:1)", 4),
        ("gpu(S:0)", 1),
        ("gpu:(null):2(IDX:0-1)", 2),
        ("gpu:1k", 1024),
        ("gres:gpu:4", 4),
        ("gres:gpu:a100:2", 2),
        ("gres/gpu:2", 2),
        ("GPU:2", 2),
        ("gpu:0", 0),
        ("gpu:nvidia_a100-sxm4-80gb:8", 8),
        ("license/abq_gpu=8", 0),
        ("cpu=4,license/abq_gpu=8,gres/gpu=2", 2),
        ("gres/gpumem=80G,gres/gpuutil=97,cpu=4", 0),
        ("cpu=4,mem=8G,billing=4,energy=1.5M,fs/disk=1", 0),
        ("craynetwork:2", 0),
        ("abq_gpu:8", 0),
        ("(null)", 0),
        ("N/A", 0),
        ("", 0),
    ],
)
def test_gpus_of_a_list(text: str, gpus: int) -> None:
    assert resources_of(text).gpus == gpus


def test_nodes_and_other_generic_resources() -> None:
    assert resources_of("cpu=4,node=3,gres/a100=2,gres/nic=1") == Resources(
        0, 3, ("gres/a100", "gres/nic")
    )


@pytest.mark.parametrize(
    "entry", ["gres/gpu=x", "gres/gpu=", "gres/gpu=2.5", "gpu:a:b", "gpu:2:3:4", "gpu:2(IDX:0"]
)
def test_what_is_not_understood_is_named(entry: str) -> None:
    with pytest.raises(MalformedError) as caught:
        resources_of(f"cpu=4,{entry}")
    assert str(caught.value) == f"resources not understood: {entry}"


@pytest.mark.parametrize(
    "entry", ["gres/shard=2", "gres/mps:100", "gpu:1g.5gb:1", "gres/gpu:a100_3g.20gb=2", "mig:1"]
)
def test_parts_of_gpus_are_no_whole_ones(entry: str) -> None:
    with pytest.raises(MalformedError) as caught:
        resources_of(f"{entry},gres/gpu=1")
    assert str(caught.value) == f"a part of a GPU, not a whole one: {entry}"
