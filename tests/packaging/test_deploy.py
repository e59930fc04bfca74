"""The manifests under deploy/ are those that ``oasis kubernetes install`` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from experiments.cli.commands.kubernetes.running import yaml_text
from oasis.kubernetes.objects.existing import JOB, parse_existing
from oasis.kubernetes.objects.manifests import everything
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.schema import reference

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
