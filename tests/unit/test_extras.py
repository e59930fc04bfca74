"""A part that is not installed is named, with the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import oasis
from oasis import extras
from oasis.extras import EXTRAS, install_line, require
from tests.packaging.commands import BLOCK

ROOT = Path(oasis.__file__).parents[1]
SAYING = """
try:
    {statement}
except ModuleNotFoundError as error:
    print(error.name, "|", error)
"""


def test_what_is_installed_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    require("anything", *EXTRAS)  # the tests need all of them
    monkeypatch.setattr(extras, "find_spec", lambda package: None)
    message = r"^drawing needs matplotlib: pip install "
    with pytest.raises(ModuleNotFoundError, match=message) as error:
        require("drawing", "matplotlib")
    assert error.value.name == "matplotlib"


def test_every_extra_exists_and_brings_its_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = project["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert install_line(extra) == f"pip install '{project['name']}[{extra}]'"
        distribution = {"yaml": "PyYAML"}.get(package, package)
        if package not in ("click", "urllib3"):  # they come with typer and with kubernetes
            assert any(line.startswith(distribution) for line in brought[extra]), package
    # a cluster may be run by any policy that knows no instance, Optimus among them
    assert any(line.startswith("scipy") for line in brought["kubernetes"])


@pytest.mark.parametrize(
    ("package", "statement", "extra"),
    [
        ("highspy", "import offline", "solve"),
        ("pulp", "import offline", "solve"),
        ("matplotlib", "import experiments.plotting", "plot"),
        ("joblib", "import experiments.sweep", "sweep"),
        (
            "highspy",
            "import oasis, baselines; i = oasis.generate('testbed', jobs=2, seed=1); "
            "oasis.simulate(i, baselines.Dorm())",
            "solve",
        ),
    ],
)
def test_the_error_in_python_names_the_extra(package: str, statement: str, extra: str) -> None:
    program = BLOCK.format(name=package) + SAYING.format(statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    name, _, message = done.stdout.partition(" | ")
    assert name == package
    assert message.endswith(f"needs {package}: {install_line(extra)}\n")
