"""Output of ``oasis --version``; a file of its own, as no command need be loaded for it."""

from oasis.version import __version__


def print_version() -> None:
    """Print name and version of the package."""
    print(f"oasis-scheduler {__version__}")  # noqa: T201
