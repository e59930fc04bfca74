"""Every number in the prose of a page is computed again here, or cannot be wrong (page_numbers)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.page_numbers import ROOT, Claim, claims_of, plain, text_of, unexplained
from tests.packaging.test_docs import blocks

CLAIMS = [
    claim
    for path in sorted(Path(__file__).parent.glob("claims_*.txt"))
    for claim in claims_of(path)
]
HISTORY = {"CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md"}
PAGES = sorted(
    page
    for path in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"))
    if "/_build/" not in (page := path.relative_to(ROOT).as_posix()) and page not in HISTORY
)


def name(claim: Claim) -> str:
    return f"{claim.page.removeprefix('docs/')}: {plain(claim.sentence)[:60]}"


@pytest.mark.parametrize("claim", CLAIMS, ids=name)
def test_a_page_says_what_is_computed(claim: Claim) -> None:
    claim.check()


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_computed_or_allowed(page: str) -> None:
    assert unexplained(page, [claim for claim in CLAIMS if claim.page == page]) == []


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
    claim = Claim("p", "@ jobs, @ times", "'Twelve', 1.354")
    claim.check()
    assert [line.partition(":")[0] for line in unexplained("p", [])] == [
        *("Twelve", "1.354", "0.25", "1000")
    ]
    allowed = Claim("p", "`0.25`", why="an example")
    allowed.check()
    assert [line.partition(":")[0] for line in unexplained("p", [claim, allowed])] == ["1000"]
    with pytest.raises(AssertionError, match="times"):
        Claim("p", "@ jobs, @ times", "'Twelve', 1.223").check()
    with pytest.raises(AssertionError, match="does not say"):
        Claim("p", "@ jobs are admitted", "'Twelve'").check()
    with pytest.raises(AssertionError, match="jobs"):
        Claim("p", "jobs, @ times", condition="printed[0] < 1.2").check()
    with pytest.raises(AssertionError, match=r"0\.25"):
        Claim("p", "`0.25`").check()
