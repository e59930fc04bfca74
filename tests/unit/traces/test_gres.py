"""Slurm's lists of resources: each entry is read whole, and what is not understood is named."""

from __future__ import annotations

import pytest

from oasis.traces.gres import Resources, resources_of
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
    ("text", "gpus"),
    [
        ("gres/shard=2", 1),
        ("gres/mps:100", 1),
        ("gpu:1g.5gb:1", 1),
        ("gres/gpu:a100_3g.20gb=2", 2),
        ("gres/gpu=2,gres/gpu:a100_3g.20gb=2", 2),
        ("mig:1", 1),
        ("1g.10gb=1", 1),
        ("7g.80gb", 1),
        ("nvidia.com/mig-1g.10gb=2", 2),
    ],
)
def test_parts_of_gpus_count_as_gpus_and_are_told(text: str, gpus: int) -> None:
    found = resources_of(text)
    assert (found.gpus, found.is_share) == (gpus, True)
    whole = resources_of("gpu:2")
    assert (whole.gpus, whole.is_share) == (2, False)


@pytest.mark.parametrize(
    "text",
    ["nvidia.com/gpu=4", "amd.com/gpu: 4", '{"nvidia.com/gpu": "4"}', "cpu=2,nvidia.com/gpu=4"],
)
def test_names_of_kubernetes_are_gpus(text: str) -> None:
    assert resources_of(text) == Resources(4)
