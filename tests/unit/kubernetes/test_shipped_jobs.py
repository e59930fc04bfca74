"""The examples that are shipped, and those of the page on training, are jobs that make sense."""

from __future__ import annotations

import re

import yaml

from oasis.kubernetes.objects.existing import BY_NAME, JOB, parse
from oasis.kubernetes.objects.network import Gang, PodNetwork, address, environment
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.packaging.commands import ROOT
from tests.packaging.test_docs import DOCS, blocks


def test_the_example_of_an_existing_kind_makes_sense() -> None:
    (found,) = yaml.safe_load_all((ROOT / "deploy/existing.yaml").read_text(encoding="utf-8"))
    found["metadata"] |= {"namespace": "default", "uid": "u"}
    spec = parse(found, JOB, SlotClock(slot_seconds=60.0), DEFAULT_RESOURCES)
    assert (spec.min_workers, spec.job.chunks) == (1, 8)


def specs_of_the_page(page: str) -> dict[str, JobSpec]:
    """Jobs whose objects stand on docs/training.md, by name."""
    clock, found = SlotClock(slot_seconds=60.0), {}
    shown = [
        (DOCS / name).read_text(encoding="utf-8")
        for name in re.findall(r"^```{literalinclude} (.*)$", page, re.MULTILINE)
    ]
    for block in [*blocks(page, "yaml"), *shown]:
        for made in yaml.safe_load_all(block):
            if made.get("kind") in (None, "Service"):
                continue
            made["metadata"]["uid"] = "u"
            if made["kind"] == "OasisJob":
                spec = parse_job(made, clock, DEFAULT_RESOURCES)
            else:
                spec = parse(made, BY_NAME[made["kind"]], clock, DEFAULT_RESOURCES)
            found[spec.name] = spec
    return found


def test_the_page_on_training_has_objects_that_make_sense_and_what_their_pods_find() -> None:
    page = (DOCS / "training.md").read_text(encoding="utf-8")
    specs = specs_of_the_page(page)
    assert specs.keys() == {"bert", "gemma", "clicks", "llama"}
    assert specs["llama"].network == PodNetwork("jax", 1234)
    shown = blocks(page, "text")
    for name, has_ps in (("bert", False), ("gemma", False), ("clicks", True)):
        spec = specs[name]
        assert spec.network is not None
        hosts = {k: address(name, "worker", k) for k in range(3)}
        span = (spec.min_workers, spec.job.chunks) if spec.resize == "elastic" else None
        gang = Gang(name, hosts, {0: address(name, "ps", 0)} if has_ps else {}, span)
        found = environment(spec.network, gang, "worker", 2)
        lines = [f"{key}={value}" for key, value in found.items() if not key.startswith("OASIS_")]
        assert "\n".join(lines) + "\n" in shown
