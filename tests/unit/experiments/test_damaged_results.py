"""Results of commands are read back and verified; an edited one is refused by name, never a bug."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import oasis
from baselines import DRF, FIFO
from experiments.evaluation.comparison import compare, replay_each, with_optimum
from experiments.evaluation.competitive_ratio import CompetitiveRatio, competitive_ratio
from experiments.evaluation.provenance import (
    Recipe,
    check_digest,
    check_document,
    instance_digest,
    instance_reference,
)
from experiments.plotting.canvas import drawing_style
from experiments.plotting.files import picture_of
from experiments.report import sections
from experiments.report.sections import section_of
from oasis.model.errors import InputError, OasisError
from oasis.simulator import PlainJob, rigid_workload
from tests.builders import exit_code

INSTANCE = oasis.generate("testbed", jobs=5, seed=3)
RATIO = competitive_ratio(INSTANCE, method="milp")
ROWS = tomllib.loads(Path(__file__).with_name("wrong_results.toml").read_text(encoding="utf-8"))
WRONG = [None, True, "x", -1, 1e300, 10**30, [], {}, [1], {"a": 1}]
Place = tuple[str | int, ...]


@cache
def documents() -> dict[str, Any]:
    """A result of each kind, as its file has it."""
    makers = {"fifo": lambda seed: FIFO(seed=seed), "drf": lambda *_: DRF()}
    jobs = [PlainJob("a", 0.0, 60.0, 1), PlainJob("b", 0.0, 30.0, 1)]
    about = {"trace": {"file": "jobs.csv", "sha256": "0"}, "reading": {}}
    run = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    assert run.outcome is not None
    found = {
        "run": run.to_dict() | {"utilisation": run.outcome.utilisation},
        "solve": RATIO.offline.to_dict(),
        "ratio": RATIO.to_dict(),
        "schedules": {"schedules": RATIO.offline.to_dict()["schedules"]},
        "compare": with_optimum(compare(INSTANCE, {"fifo": FIFO}), RATIO.offline).to_dict(),
        "seeds": compare(INSTANCE, makers, {"fifo": [0, 1]}).to_dict(),
        "replay": replay_each(rigid_workload(jobs, 1, 1), {"fifo": {}}, about).to_dict(),
    }
    found["whatif"] = whatif()
    return {kind: json.loads(json.dumps(document)) for kind, document in found.items()}


def whatif() -> dict[str, Any]:
    """Two policies beside what really happened, at two loads."""
    rows = ["id,submitted,start,end,gpus,owner"]
    rows += [f"j{k},{k},{k + 9},{k + 90},{2 ** (k % 4)},{'ab'[k % 2]}" for k in range(12)]
    with TemporaryDirectory() as folder:
        trace, result = (Path(folder, name) for name in ("jobs.csv", "whatif.json"))
        trace.write_text("\n".join(rows) + "\n")
        more = ("--machines", "2x8", "--loads", "1.5", "--goal", "mean wait < 1h", "-o", result)
        assert exit_code("whatif", trace, "--policies", "fifo,srtf", *more) == 0
        found: dict[str, Any] = json.loads(result.read_text())
    return found


def places(data: Any, path: Place = ()) -> Iterator[Place]:
    """Every part of a document, of lists the first alone."""
    if path:
        yield path
    parts: dict[Any, Any] = data if isinstance(data, dict) else {}
    if isinstance(data, list):
        parts = dict(enumerate(data[:1]))
    for name, part in parts.items():
        yield from places(part, (*path, name))


def changed(document: Any, path: Place, value: Any) -> Any:
    """A copy with another value there; `...` leaves the part out."""
    copied, (name, *rest) = copy.copy(document), path
    if rest:
        copied[name] = changed(document[name], tuple(rest), value)
    elif value is ...:
        del copied[name]
    else:
        copied[name] = value
    return copied


def told(document: Any) -> None:
    """Put it on a page, without an instance: what is not verified is read all the same."""
    section_of("result.json", document, None)


READERS = {
    "checked": lambda data: check_document(INSTANCE, data),
    "read": told,
    "recipe": Recipe.of,
}


@pytest.mark.parametrize(
    ("reader", "row"),
    [(reader, row) for reader, rows in ROWS.items() for row in rows],
    ids=lambda value: value if isinstance(value, str) else f"{value['of']}-{value['at']}",
)
def test_the_part_that_is_wrong_is_named(reader, row):
    place = tuple(int(part) if part.isdigit() else part for part in row["at"].split("."))
    value = None if row.get("to") == "null" else row.get("to", ...)
    reference = {"instance": instance_reference(INSTANCE, "a.json")} if reader == "recipe" else {}
    document = changed(documents()[row["of"]] | reference, place, value)
    field = re.sub(r"\.(\d+)", r"[\1]", row["at"]) + ": " if reader == "read" else ""
    with pytest.raises(OasisError, match=f"^{re.escape(field + row['says'])}"):
        READERS[reader](document)


@pytest.mark.parametrize("kind", ["run", "solve", "ratio", "compare", "seeds", "replay", "whatif"])
def test_a_part_of_another_type_is_bad_input(kind, monkeypatch):
    # a picture takes as long as a hundred tables
    monkeypatch.setattr(sections, "picture_of", lambda *_: None)
    monkeypatch.setattr(sections, "picture", lambda *_: "")
    monkeypatch.setattr(sections, "pictures", lambda *_: ())
    document = documents()[kind]
    told(document)
    refused = 0
    for path in places(document):
        for value in (..., *WRONG):
            try:
                told(changed(document, path, value))
            except OasisError:
                refused += 1
    assert refused > 20


def test_a_damaged_comparison_is_not_drawn_either():
    damaged = changed(documents()["seeds"], ("policies", "fifo", "makespan"), [1])
    with drawing_style(None), pytest.raises(InputError, match=r"policies\.fifo\.makespan"):
        picture_of(damaged, "damaged", None)


def test_what_agrees_is_said_with_its_totals():
    earned, best = RATIO.run.total_utility, RATIO.offline.objective
    whole = documents() | {"total": documents()["schedules"] | {"total_utility": best}}
    for kind, schedules, totals in (
        ("run", 2, {"total_utility": earned}),
        ("solve", 3, {"objective": best}),
        ("ratio", 5, {"total_utility": earned, "objective": best}),
        ("schedules", 3, {"total_utility": best}),
        ("total", 3, {"total_utility": best}),
    ):
        found = check_document(INSTANCE, whole[kind])
        assert (found.schedules, found.totals) == (schedules, pytest.approx(totals)), kind


def test_a_ratio_that_was_interrupted_is_read_back_as_such():
    part = CompetitiveRatio(RATIO.run, RATIO.offline, None, is_complete=False)
    again = CompetitiveRatio.from_dict(json.loads(json.dumps(part.to_dict())))
    assert (again.proven, again.certificate, again.upper) == (False, None, part.upper)


def test_a_recipe_knows_its_instance_by_its_content():
    reference = instance_reference(INSTANCE, "a.json")
    recipe = Recipe.of(documents()["run"] | {"instance": reference, "version": "1.0"})
    assert (recipe.policy, recipe.file, recipe.version) == ("oasis", Path("a.json"), "1.0")
    assert reference["metadata"]["seed"] == 3
    assert recipe.sha256 == instance_digest(replace(INSTANCE, metadata={}))
    check_digest(INSTANCE, recipe.sha256)
    with pytest.raises(OasisError, match=r"^instance\.sha256: the result is of another"):
        check_digest(replace(INSTANCE, jobs=INSTANCE.jobs[:1]), recipe.sha256)


def test_frames_have_a_row_for_each_job_and_for_each_policy():
    assert set(RATIO.offline.to_frame()["job_id"]) == set(RATIO.offline.schedules)
    compared = compare(INSTANCE, {"fifo": FIFO, "drf": DRF})
    frame = compared.to_frame()
    assert list(frame["policy"]) == ["fifo", "drf"]
    assert frame["total_utility"][0] == compared.policies["fifo"]["total_utility"]
