"""Every number in the prose of a page is computed again here, or cannot be wrong (page_numbers)."""

from __future__ import annotations

import pytest

from tests.packaging import (
    claims_benchmarks,
    claims_figures,
    claims_specon_and_kod2,
    claims_studies,
    claims_traces,
    claims_understand,
    claims_use,
)
from tests.packaging.page_numbers import ROOT, Claim, plain, prose, text_of, unexplained
from tests.packaging.test_docs import blocks

PARTS = (
    *(claims_use, claims_traces, claims_benchmarks, claims_understand),
    *(claims_figures, claims_studies, claims_specon_and_kod2),
)
CLAIMS = [claim for part in PARTS for claim in part.CLAIMS]
ALLOWED = {page: known for part in PARTS for page, known in part.ALLOWED.items()}
PAGES = [page for part in PARTS for page in part.PAGES]
HISTORY = {"CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md"}


def name(claim: Claim) -> str:
    return f"{claim.page.removeprefix('docs/')}: {plain(claim.sentence)[:60]}"


@pytest.mark.parametrize("claim", CLAIMS, ids=name)
def test_a_page_says_what_is_computed(claim: Claim) -> None:
    claim.check()


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_computed_or_allowed(page: str) -> None:
    own = [claim for claim in CLAIMS if claim.page == page]
    assert unexplained(page, own, ALLOWED.get(page, {})) == []


@pytest.mark.parametrize("page", ALLOWED)
def test_what_is_allowed_is_on_the_page(page: str) -> None:
    assert [part for part in ALLOWED[page] if plain(part) not in prose(page)] == []
    assert all(ALLOWED[page].values())


def test_every_page_is_looked_at_once() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages |= {path.name for path in ROOT.glob("*.md")} - HISTORY
    assert sorted(PAGES) == sorted(page for page in pages if "/_build/" not in page)


def test_pages_have_no_output_that_was_typed_in_but_what_tests_compare() -> None:
    """The transcripts of the README (test_docs) and of a cluster (tests/kubernetes)."""
    run = ("install", "submit", "observe", "operate")
    compared = {"README.md", *(f"docs/kubernetes-{name}.md" for name in run)}
    typed = set()
    for page in PAGES:
        for block in blocks(text_of(page), "console"):
            commands = block.replace("\\\n", " ").splitlines()
            if any(line and not line.startswith("$ ") for line in commands):
                typed.add(page)
    assert typed - compared == set()


def test_a_number_that_nobody_computes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Twelve jobs, 1.354 times, `0.25` of `--gap 0.5`, equation (22) and $x_1 \\le 1000$."
    monkeypatch.setattr("tests.packaging.page_numbers.prose", lambda _: text)
    claim = Claim("p", "@ jobs, @ times", lambda: ("Twelve", "1.354"))
    claim.check()
    assert [line.partition(":")[0] for line in unexplained("p", [], {})] == [
        *("Twelve", "1.354", "0.25", "1000")
    ]
    assert [line.partition(":")[0] for line in unexplained("p", [claim], {"`0.25`": "why"})] == [
        "1000"
    ]
    with pytest.raises(AssertionError, match="times"):
        Claim("p", "@ jobs, @ times", lambda: ("Twelve", "1.223")).check()
    with pytest.raises(AssertionError, match="does not say"):
        Claim("p", "@ jobs are admitted", lambda: ("Twelve",)).check()
    with pytest.raises(AssertionError, match="jobs"):
        Claim("p", "jobs, @ times", holds=lambda times: times < 1.2).check()
