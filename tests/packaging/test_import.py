"""``import oasis`` is light and changes nothing around it."""

from __future__ import annotations

import importlib
import json
import re
from operator import attrgetter
from pathlib import Path

import pytest

from tests.packaging.commands import ROOT, python

HEAVY = (
    *("scipy", "pulp", "highspy", "networkx", "pandas", "matplotlib"),
    *("typer", "click", "rich", "offline", "baselines", "experiments"),
)

PROBE = """
import json, logging, multiprocessing, sys, threading, warnings
before = list(warnings.filters), list(logging.getLogger().handlers), logging.getLogger().level
import oasis
at_once = sorted(sys.modules)
from oasis import _modules  # those of other packages need more than numpy
own = [k for k, v in _modules().items() if v.startswith("oasis.") and "solvers" not in v]
everything = [getattr(oasis, name) for name in own]
after = list(warnings.filters), list(logging.getLogger().handlers), logging.getLogger().level
handlers = [
    name for name, logger in logging.Logger.manager.loggerDict.items()
    if name.split(".")[0] == "oasis" and getattr(logger, "handlers", [])
]
print(json.dumps({
    "at_once": at_once,
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "changed": before[1:] != after[1:],
    "handlers": handlers,
    "start_method": multiprocessing.get_start_method(allow_none=True),
    "threads": threading.active_count(),
    "solver": "oasis.solvers" in sys.modules,
}))
"""


def probe() -> dict[str, object]:
    code, out, err = python("-W", "error", "-c", PROBE)
    assert (code, err) == (0, "")
    found: dict[str, object] = json.loads(out)
    return found


def test_import_needs_numpy_alone_and_leaves_no_trace() -> None:
    found = probe()
    modules = found["modules"]
    assert isinstance(modules, list)
    assert "numpy" in modules
    assert isinstance(found["at_once"], list)
    # most names are imported when first used: these rooms, and files of examples, are not needed
    later = ("simulator", "scheduling", "traces", "workloads", "solvers", "kubernetes")
    begun = [name for name in found["at_once"] if name.startswith("oasis.")]
    assert [name for name in begun if name.split(".")[1] in later] == []
    assert "oasis.model.examples" not in begun
    assert len(begun) < 40
    assert [name for name in HEAVY if name in modules] == []
    assert found["solver"] is False
    assert found["changed"] is False
    assert found["handlers"] == []
    assert found["start_method"] is None
    assert found["threads"] == 1


def test_rooms_are_imported_when_they_are_named() -> None:
    import oasis

    assert attrgetter("model.utility.Sigmoid")(oasis) is oasis.Sigmoid
    assert dir(oasis) == oasis.__all__  # no rooms, and nothing that it imports for itself
    with pytest.raises(AttributeError, match="module 'oasis' has no attribute 'simulated'"):
        attrgetter("simulated")(oasis)


def test_every_public_name_is_in_the_documentation() -> None:
    import oasis

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{names\} (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    listed = [
        (module if "." not in name else name.rpartition(".")[0], name.rpartition(".")[2])
        for module, lines in blocks
        if module not in ("oasis.kubernetes", "oasis.testing")  # imported alone
        for name in re.findall(r"^[\w.]+", lines, re.MULTILINE)
    ]
    assert {"__version__", *(name for _, name in listed)} == set(oasis.__all__)
    for module, name in listed:
        assert getattr(oasis, name) is getattr(importlib.import_module(module), name)


USES = """
import sys
import oasis
instance = oasis.generate("testbed", jobs=3, seed=1)
found = oasis.compare(instance, {"fifo": oasis.FIFO, "drf": oasis.DRF})
ratio = oasis.competitive_ratio(instance, oasis.FIFO(), offline=oasis.solve(instance, "milp"))
assert ratio.proven
oasis.ratio_page({"fifo": ratio})
import baselines, experiments
from experiments.mine import MINE
print(baselines.OWN, experiments.OWN, MINE, sorted(found.policies))
"""


@pytest.mark.parametrize(
    ("script", "first"),
    [("main.py", ""), ("main.py", "import baselines, experiments\n"), ("experiments.py", "")],
)
def test_what_a_user_calls_as_our_packages_is_left_alone_and_hides_none_of_ours(
    tmp_path: Path, script: str, first: str
) -> None:
    for name in ("baselines", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = __name__\n", encoding="utf-8")
    (tmp_path / "experiments" / "mine.py").write_text("MINE = 1\n", encoding="utf-8")
    program, said = first + USES, "baselines experiments 1 ['drf', 'fifo']\n"
    if script == "experiments.py":
        (tmp_path / "experiments" / "__init__.py").unlink()
        program, said = USES.partition("import baselines")[0] + "print(1)\n", "1\n"
    (tmp_path / script).write_text(program, encoding="utf-8")
    assert python(script, folder=tmp_path) == (0, said, "")


# Each before those that import it: it is listed before anything has asked for its names.
EXPORTING = (
    *("oasis", "oasis.workloads", "oasis.traces", "oasis.solvers", "oasis.scheduling"),
    *("oasis.simulator", "offline", "baselines", "experiments", "experiments.library"),
    "experiments.figures",
)
LISTING = """
import importlib, json, sys
for package in sys.argv[1:]:
    fresh = package not in sys.modules
    found = importlib.import_module(package)
    print(json.dumps([package, fresh, dir(found), list(found.__all__)]))
"""


def test_what_a_package_exports_is_there_and_listed() -> None:
    """In a process of its own, where nothing else has asked for the names."""
    told = [json.loads(line) for line in python("-c", LISTING, *EXPORTING)[1].splitlines()]
    assert [package for package, *_ in told] == list(EXPORTING)
    for package, fresh, listed, exported in told:
        assert fresh, package
        assert set(exported) <= set(listed), package
        assert all(hasattr(importlib.import_module(package), name) for name in exported), package
