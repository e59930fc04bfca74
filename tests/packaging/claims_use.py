"""What the pages for users and the benchmark pages say in numbers (page_numbers)."""

from __future__ import annotations

from tests.packaging.page_numbers import Claim

PAGES: tuple[str, ...] = ()  # every number on these pages is claimed or allowed

CLAIMS: list[Claim] = []

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {}
