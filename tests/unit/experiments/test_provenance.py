"""The origin that a result states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.evaluation.provenance import (
    Recipe,
    check_digest,
    instance_digest,
    instance_reference,
)

INSTANCE = oasis.generate("testbed", jobs=2, seed=3)
RESULT: dict[str, Any] = {
    "policy": "fifo",
    "parameters": {"seed": 1},
    "version": "1.0",
    "instance": instance_reference(INSTANCE, "a.json"),
}


def test_digest_follows_the_content_not_the_metadata() -> None:
    assert instance_digest(replace(INSTANCE, metadata={})) == instance_digest(INSTANCE)
    shorter = replace(INSTANCE, jobs=INSTANCE.jobs[:1])
    assert instance_digest(shorter) != instance_digest(INSTANCE)


def test_reference_holds_file_digest_and_metadata() -> None:
    reference = RESULT["instance"]
    assert reference["file"] == "a.json"
    assert len(reference["sha256"]) == 64
    assert reference["metadata"]["seed"] == 3
    assert instance_reference(INSTANCE, None)["file"] is None


def test_recipe_is_read_back_and_knows_its_instance() -> None:
    recipe = Recipe.of(RESULT)
    assert recipe == Recipe("fifo", {"seed": 1}, Path("a.json"), instance_digest(INSTANCE), "1.0")
    check_digest(INSTANCE, recipe.sha256)
    with pytest.raises(oasis.OasisError, match=r"^instance\.sha256: the result is of another"):
        check_digest(replace(INSTANCE, horizon=INSTANCE.horizon + 1), recipe.sha256)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected an object, got []"),
        ({}, "instance: missing; this key is required"),
        (RESULT | {"instance": {"file": None}}, "instance.sha256: missing; this key is required"),
        (RESULT | {"instance": {"file": 1, "sha256": ""}}, "instance.file: expected text, got 1"),
        (RESULT | {"policy": 3}, "policy: expected text, got 3"),
        (RESULT | {"parameters": []}, r"parameters: expected an object, got []"),
    ],
)
def test_other_documents_are_refused_by_key(document: Any, message: str) -> None:
    with pytest.raises(oasis.OasisError) as caught:
        Recipe.of(document)
    assert str(caught.value).startswith(message)
