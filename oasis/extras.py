"""The optional parts of the installation, and one clear line where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

PROJECT = "oasis-scheduler"
EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "click": "cli",
    "zstandard": "cli",
    "pulp": "solve",
    "highspy": "solve",
    "matplotlib": "plot",
    "jinja2": "report",
    **dict.fromkeys(("pandas", "pyarrow", "joblib", "scipy", "threadpoolctl"), "sweep"),
    "distributed": "dask",
    "hypothesis": "testing",
    **dict.fromkeys(("kubernetes", "prometheus_client", "yaml", "urllib3"), "kubernetes"),
}  # package -> the extra that brings it


def require(what: str, *packages: str) -> None:
    """Raise an error that names the extra to install unless `packages` are there, for `what`."""
    for package in packages:
        try:
            found = find_spec(package)
        except ModuleNotFoundError:  # a finder that refuses it
            found = None
        if found is None:
            message = f"{what} needs {package}: {install_line(EXTRAS[package])}"
            raise ModuleNotFoundError(message, name=package)


def install_line(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{PROJECT}[{extra}]'"
