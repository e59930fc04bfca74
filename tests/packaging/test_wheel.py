"""The wheel holds all of the packages and nothing else, and works where nothing else is."""

from __future__ import annotations

import email
import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.commands import ROOT, python

TOP = ("oasis", "offline", "baselines", "experiments")
NEEDS_SETUPTOOLS = 77


def setuptools_major() -> int:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if setuptools_major() < NEEDS_SETUPTOOLS:
        pytest.skip(f"building needs setuptools >= {NEEDS_SETUPTOOLS}; the test extra brings it")
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "wheel"))
    for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (*TOP, "tests", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    subprocess.run([*pip, "wheel", *options, str(source)], check=True, cwd=target)
    (path,) = target.glob("*.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_every_module_of_every_package(wheel: zipfile.ZipFile) -> None:
    expected = {
        path.relative_to(ROOT).as_posix() for name in TOP for path in (ROOT / name).rglob("*.py")
    }
    expected |= {"oasis/__init__.pyi", *(f"{name}/py.typed" for name in TOP)}
    expected |= {p.relative_to(ROOT).as_posix() for p in (ROOT / "oasis").rglob("*.schema.json")}
    data = ROOT / "experiments" / "library" / "data"
    expected |= {p.relative_to(ROOT).as_posix() for p in (*data.glob("*.csv"), *data.rglob("*.xz"))}
    expected |= {p.relative_to(ROOT).as_posix() for p in (ROOT / "oasis" / "examples").iterdir()}
    chart = (ROOT / "oasis" / "kubernetes" / "chart").rglob("*")
    expected |= {p.relative_to(ROOT).as_posix() for p in chart if p.is_file()}
    commands = ("commands.json", "commands/kubernetes/advice.json")
    expected |= {"oasis/traces/formats.toml", *(f"experiments/cli/{name}" for name in commands)}
    expected |= {"oasis/simulator/elastic.toml"}
    expected |= {"oasis/kubernetes/api/advice.json", "oasis/kubernetes/objects/template.yaml"}
    report = ROOT / "experiments" / "report"
    expected |= {p.relative_to(ROOT).as_posix() for p in report.glob("page.*") if p.suffix != ".py"}
    found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == expected


def test_wheel_states_what_it_is(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    import oasis

    assert metadata["Name"] == "oasis-scheduler"
    assert metadata["Version"] == oasis.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line.split(">")[0] for line in required] == ["numpy"]
    entry_points = wheel.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert "oasis = oasis.__main__:main" in entry_points


def test_unpacked_wheel_works_alone(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    wheel.extractall(site)
    code = (
        "import oasis; i = oasis.generate('testbed', jobs=2); "
        "print(oasis.__file__, oasis.simulate(i, oasis.OASiS.from_instance(i)).admitted)"
    )
    status, out, _ = python("-c", code, folder=elsewhere, PYTHONPATH=str(site))
    assert (status, out.startswith(str(site))) == (0, True)
