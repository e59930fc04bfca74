"""Numbers in the prose of pages are those of the code and of the tables beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.figure_rows import ROOT, text_of
from tests.packaging.page_numbers import Claim, claims_of
from tests.packaging.test_docs import blocks

CLAIMS = [
    claim
    for path in sorted(Path(__file__).parent.glob("claims_*.txt"))
    for claim in claims_of(path)
]


def name(claim: Claim) -> str:
    return f"{claim.page.removeprefix('docs/')}: {claim.sentence[:60]}"


@pytest.mark.parametrize("claim", CLAIMS, ids=name)
def test_a_page_says_what_is_computed(claim: Claim) -> None:
    claim.check()


def test_pages_have_no_output_that_was_typed_in_but_what_tests_compare() -> None:
    """The transcripts of the README (test_docs) and of a cluster (tests/kubernetes)."""
    run = ("install", "submit", "observe", "operate")
    compared = {"README.md", *(f"docs/kubernetes-{name}.md" for name in run)}
    typed = set()
    for path in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        page = path.relative_to(ROOT).as_posix()
        if "/_build/" in page:
            continue
        for block in blocks(text_of(page), "console"):
            commands = block.replace("\\\n", " ").splitlines()
            if any(line and not line.startswith("$ ") for line in commands):
                typed.add(page)
    assert typed - compared == set()


def test_a_number_that_is_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Twelve jobs, 1.354 times"
    monkeypatch.setattr("tests.packaging.page_numbers.prose", lambda _: text)
    Claim("p", "@ jobs, @ times", "'Twelve', 1.354").check()
    for claim, said in (
        (Claim("p", "@ jobs, @ times", "'Twelve', 1.223"), "times"),
        (Claim("p", "@ jobs are admitted", "'Twelve'"), "does not say"),
        (Claim("p", "jobs, @ times", condition="printed[0] < 1.2"), "jobs"),
        (Claim("p", "@ jobs"), "jobs"),
    ):
        with pytest.raises(AssertionError, match=said):
            claim.check()
