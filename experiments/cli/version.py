"""What ``oasis --version`` prints."""

from oasis.version import __version__


def print_version() -> None:
    """Print name and version of the package."""
    print(f"oasis-scheduler {__version__}")  # noqa: T201
