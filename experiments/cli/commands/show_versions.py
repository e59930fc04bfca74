"""``oasis show-versions``: what is installed, to be copied into a report of a bug."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from experiments.cli import console
from experiments.cli.options import AsJson
from oasis.model.extras import EXTRAS
from oasis.version import __version__

DISTRIBUTIONS = {"yaml": "PyYAML", "prometheus_client": "prometheus-client"}


def command(as_json: AsJson = False) -> None:
    """Print the versions of Python, of this package and of what it uses.

    Copy it into a report of a bug. What is not installed has a dash, and the extra that brings it.

    Example: oasis show-versions
    """
    versions = {
        "oasis-scheduler": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "numpy": installed("numpy"),
        **{package: installed(DISTRIBUTIONS.get(package, package)) for package in EXTRAS},
    }
    if as_json:
        console.print_json(versions)
        return
    missing = {
        name: f"- (extra {EXTRAS[name]})" if name in EXTRAS else "-"
        for name, seen in versions.items()
        if seen is None
    }
    console.print_facts(
        "Versions", [(name, missing.get(name, str(versions[name]))) for name in versions]
    )


def installed(distribution: str) -> str | None:
    """The version of a distribution; None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
