"""The examples in the docstrings run, and every public function and class has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")
MODULES = [
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
] + ["oasis.traces"]  # of which formats.toml has the examples of options
PUBLIC = (
    "oasis",
    "oasis.online.dp",
    "oasis.scheduling",
    "oasis.simulator",
    "oasis.traces",
    "oasis.workloads",
    "offline",
    "baselines",
    "experiments",
)


def public(package: str) -> dict[str, object]:
    """The functions and classes that `package` exports, by name."""
    module = importlib.import_module(package)
    exported = {name: getattr(module, name) for name in module.__all__}
    if package == "oasis":  # the names of the other packages are in the packages that have them
        mine = ("oasis.", "experiments.evaluation.comparison")
        exported = {
            name: found
            for name, found in exported.items()
            if getattr(found, "__module__", "").startswith(mine) and name != "Comparison"
        }
    return {
        name: found
        for name, found in exported.items()
        if inspect.isclass(found) or inspect.isroutine(found)
    }


def has_example(found: object) -> bool:
    own = found.__dict__.get("__doc__") if inspect.isclass(found) else found.__doc__
    return ">>>" in (own or "")


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_give_what_they_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner()
    report: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(example, out=report.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(report)
    assert list(tmp_path.iterdir()) == [], "an example leaves no file behind"


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_function_and_class_has_an_example(package: str) -> None:
    bare = {name for name, found in public(package).items() if not has_example(found)}
    assert bare == set()
