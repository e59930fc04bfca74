"""The manifests under deploy/ are those that ``oasis kubernetes install`` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from experiments.cli.commands.kubernetes.running import yaml_text
from oasis.kubernetes.objects.existing import BY_NAME, JOB, parse_existing
from oasis.kubernetes.objects.manifests import everything
from oasis.kubernetes.objects.network import Gang, PodNetwork, address, environment
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.schema import reference
from tests.packaging.test_docs import blocks

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_manifests_are_those_that_install_prints() -> None:
    """After a change: ``oasis kubernetes install > deploy/oasis.yaml``."""
    assert (DEPLOY / "oasis.yaml").read_text(encoding="utf-8") == yaml_text(everything())


@pytest.mark.parametrize("name", ["oasis.yaml", "job.yaml", "existing.yaml"])
def test_every_document_is_an_object(name: str) -> None:
    documents = list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))
    assert documents
    for document in documents:
        assert {"apiVersion", "kind", "metadata"} <= document.keys()


def test_the_example_of_an_existing_kind_makes_sense() -> None:
    (found,) = yaml.safe_load_all((DEPLOY / "existing.yaml").read_text(encoding="utf-8"))
    found["metadata"] |= {"namespace": "default", "uid": "u"}
    spec = parse_existing(found, JOB, SlotClock(slot_seconds=60.0), DEFAULT_RESOURCES)
    assert (spec.min_workers, spec.job.chunks) == (1, 8)


def test_the_reference_is_made_from_the_schema() -> None:
    """After a change, `oasis.kubernetes.objects.schema.reference` goes into the page."""
    page = (DEPLOY.parent / "docs/kubernetes-reference.md").read_text(encoding="utf-8")
    assert page.partition("\n## ")[2] == reference().removeprefix("## ")


def specs_of_the_page(page: str) -> dict[str, JobSpec]:
    """Jobs whose objects stand on docs/training.md, by name."""
    clock, found = SlotClock(slot_seconds=60.0), {}
    for block in blocks(page, "yaml"):
        for made in yaml.safe_load_all(block):
            if made.get("kind") in (None, "Service"):
                continue
            made["metadata"]["uid"] = "u"
            if made["kind"] == "OasisJob":
                spec = parse_job(made, clock, DEFAULT_RESOURCES)
            else:
                spec = parse_existing(made, BY_NAME[made["kind"]], clock, DEFAULT_RESOURCES)
            found[spec.name] = spec
    return found


def test_the_page_on_training_has_objects_that_make_sense_and_what_their_pods_find() -> None:
    page = (DEPLOY.parent / "docs/training.md").read_text(encoding="utf-8")
    specs = specs_of_the_page(page)
    assert specs.keys() == {"bert", "gemma", "clicks", "llama", "mnist"}
    assert specs["llama"].network == PodNetwork("jax", 1234)
    assert (specs["mnist"].fixed_ps, specs["mnist"].network) == (1, None)
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
