"""Hypothesis profiles and the switch for the long searches.

The default profile is derandomised, so that CI gives the same answer twice; the nightly profile
draws anew every time and searches twenty times longer.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Where this is set, each of the many processes that tests start compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_KUBERNETES = Path(__file__).resolve().parent / "kubernetes"
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "default",
    max_examples=25,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.register_profile(
    "nightly",
    max_examples=2000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=_SLOW,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nightly",
        action="store_true",
        help="2,000 fresh Hypothesis examples a property, and the tests marked nightly",
    )
    parser.addoption(
        "--kubernetes",
        action="store_true",
        help="also tests/kubernetes, on a real control plane (make kubernetes-test)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/kubernetes alone unless it is asked for: it needs Go."""
    inside = _KUBERNETES in (collection_path, *collection_path.parents)
    unasked = inside and not config.getoption("--kubernetes")
    return True if unasked else None


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("nightly" if config.getoption("--nightly") else "default")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: the thousands of tests are all kept until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        return
    skip = pytest.mark.skip(reason="nightly search: run with --nightly")
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(skip)
